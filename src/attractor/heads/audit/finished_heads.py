"""Heads that an audit is done with: kept in a folder for when it is killed, and put together."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attractor.files import data_hash
from attractor.heads.captured.captured import Captured, CapturedLayer
from attractor.results import load_data, save_data
from attractor.support.containers import read_json
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import owned_folder, write_file
from attractor.support.storage.markers import CHECKPOINT
from attractor.version import __version__

_KIND = "audit of one attention head"
_FORMAT = "attractor audit of heads 1"


@dataclass(frozen=True)
class FinishedHeads:
    """The answers of heads that are done, a file each; of none where there is no folder."""

    folder: Path | None

    def read(self, name: str, layers: Sequence[CapturedLayer], head: int) -> dict[str, Any] | None:
        """An answer of a head, or None if it is not there.

        Args:
            name: The name of the answer.
            layers: The layer that it is of, at every checkpoint that it looks at.
            head: The number of the head in it.

        Raises:
            InvalidInputError: If it is that of other keys or queries.
            FileFormatError: If the file is damaged.
        """
        if self.folder is None or not (file := self.folder / f"{name}.nc").exists():
            return None
        data = load_data(file, _KIND)
        if data.attrs.pop("sha256", None) != _hash(layers, head):
            raise _another(self.folder, f"the head of {file.name} had other keys or queries")
        words = {name: str(text) for name, text in data.attrs.items()}
        arrays = {name: array.to_numpy() for name, array in data.data_vars.items()}
        numbers = {
            str(name): array if array.ndim else float(array) for name, array in arrays.items()
        }
        return words | numbers

    def write(
        self, name: str, layers: Sequence[CapturedLayer], head: int, answer: Mapping[str, Any]
    ) -> None:
        """Keeps an answer of a head, as ``read`` finds it.

        Raises:
            WriteError: If it cannot be written.
        """
        if self.folder is None:
            return

        words = {name: value for name, value in answer.items() if isinstance(value, str)}
        arrays = {name: np.asarray(answer[name]) for name in answer if name not in words}
        data = xr.Dataset(
            {
                name: ([f"{name}_{axis}" for axis in range(array.ndim)], array)
                for name, array in arrays.items()
            },
            attrs={**words, "sha256": _hash(layers, head)},
        )
        save_data(data, self.folder / f"{name}.nc", _KIND)


@contextlib.contextmanager
def finished_heads(
    store: str | os.PathLike[str] | None,
    captured: Captured,
    settings: Mapping[str, Any],
    of: str = "settings",
) -> Iterator[FinishedHeads]:
    """Holds the folder of an audit for this run alone.

    Args:
        store: The folder, new or of an earlier call; None keeps nothing.
        captured: What is audited.
        settings: All that the answers depend on besides.
        of: What they are settings of, where the folder serves several audits of the same queries.

    Yields:
        The heads that are done.

    Raises:
        InvalidInputError: If the folder is not ours, or holds another audit.
        FileFormatError: If the file that identifies the audit is damaged.
    """
    if store is None:
        yield FinishedHeads(None)
        return
    own = {
        "format": _FORMAT,
        "version": __version__,
        of: {name: value for name, value in settings.items() if name != "alpha"},
        "queries": data_hash(
            document=captured.document, position=captured.position, special=captured.special
        ),
    }
    with owned_folder(store, CHECKPOINT, argument="store") as folder:
        marker = folder / CHECKPOINT
        held = read_json(marker, "checkpoint") if marker.exists() else own
        if not isinstance(held, dict) or held.get("format") != _FORMAT:
            raise FileFormatError(f"{marker}: it identifies no audit.")
        differing = [name for name in own if held.get(name, own[of]) != own[name]]
        if differing:
            raise _another(folder, f"{', '.join(differing)} differ")
        if not marker.exists() or of not in held:
            write_file(marker, json.dumps(held | own, indent=1) + "\n")
        yield FinishedHeads(folder)


def _hash(layers: Sequence[CapturedLayer], head: int) -> str:
    return " ".join(_hash_of(layer, head) for layer in layers)


def _hash_of(layer: CapturedLayer, head: int) -> str:
    shared, made, values = layer.key_head(head), layer.projections, layer.values
    return data_hash(
        keys=layer.keys[:, shared],
        queries=layer.queries[:, head],
        attention=layer.attention[:, head],
        allowed=layer.allowed,
        values=None if values is None else values[:, shared],
        made_query=None if made is None else made.query[head],
        made_bias=None if made is None or made.bias is None else made.bias[head],
        made_key=None if made is None or made.key is None else made.key[shared],
    )


def _another(folder: Path, why: str) -> InvalidInputError:
    return InvalidInputError(
        "store",
        f"{folder} holds another audit: {why}",
        "Repeat the call that began it, or give another folder",
    )


Found = dict[str, Any]
"""The variables of one head."""


def labeled(
    found: Mapping[tuple[int, ...], Found],
    places: Mapping[str, Sequence[Any]],
    meanings: Mapping[str, str],
    *,
    axes: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int],
    empty: Mapping[str, Any],
) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]]:
    """Arrays of all variables that any head has, as datasets of xarray are made of.

    Args:
        found: The variables of each head, by its place along ``places``.
        places: The axes that say which head it is, with their labels.
        meanings: All variables, each with its meaning.
        axes: Further axes of variables.
        sizes: How long these are.
        empty: What stands where a variable is not known: the empty text for words; else NaN.
    """
    variables = {}
    for name, meaning in meanings.items():
        if not any(name in one for one in found.values()):
            continue
        more, blank = axes.get(name, ()), empty.get(name, np.nan)
        shape = (*map(len, places.values()), *(sizes[axis] for axis in more))
        array = np.full(shape, blank, dtype=object if blank == "" else None)
        for place, one in found.items():
            if name in one:
                array[place] = one[name]
        array = array.astype(str) if blank == "" else array
        variables[name] = ((*places, *more), array, {"long_name": meaning})
    return variables
