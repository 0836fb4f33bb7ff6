"""Heads that an audit is done with, kept in a folder, so that a killed one goes on."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attractor.audit.captured import Captured, CapturedLayer
from attractor.containers import read_json
from attractor.errors import FileFormatError, InvalidInputError
from attractor.provenance import data_hash
from attractor.records import load_data, save_data
from attractor.storage import owned_folder, write_file
from attractor.storage.markers import CHECKPOINT
from attractor.version import __version__

_KIND = "audit of one attention head"
_FORMAT = "attractor audit of heads 1"


@dataclass(frozen=True)
class FinishedHeads:
    """The answers of heads that are done, a file each; of none where there is no folder."""

    folder: Path | None

    def read(self, layer: int, head: int, captured: CapturedLayer) -> dict[str, Any] | None:
        """The answer of a head, or None if it is not there.

        Raises:
            InvalidInputError: If it is that of other keys or queries.
            FileFormatError: If the file is damaged.
        """
        if self.folder is None or not (file := self._file(layer, head)).exists():
            return None
        data = load_data(file, _KIND)
        if data.attrs.pop("sha256", None) != _hash(captured, head):
            raise _another(self.folder, f"head {layer}.{head} had other keys or queries")
        words = {name: str(text) for name, text in data.attrs.items()}
        arrays = {name: array.to_numpy() for name, array in data.data_vars.items()}
        numbers = {
            str(name): array if array.ndim else float(array) for name, array in arrays.items()
        }
        return words | numbers

    def write(
        self, layer: int, head: int, captured: CapturedLayer, answer: Mapping[str, Any]
    ) -> None:
        """Keeps the answer of a head.

        Raises:
            WriteError: If it cannot be written.
        """
        if self.folder is None:
            return
        import xarray as xr

        words = {name: value for name, value in answer.items() if isinstance(value, str)}
        arrays = {name: np.asarray(answer[name]) for name in answer if name not in words}
        data = xr.Dataset(
            {
                name: ([f"{name}_{axis}" for axis in range(array.ndim)], array)
                for name, array in arrays.items()
            },
            attrs={**words, "sha256": _hash(captured, head)},
        )
        save_data(data, self._file(layer, head), _KIND)

    def _file(self, layer: int, head: int) -> Path:
        assert self.folder is not None
        return self.folder / f"head_{layer}_{head}.nc"


@contextlib.contextmanager
def finished_heads(
    store: str | os.PathLike[str] | None, captured: Captured, settings: Mapping[str, Any]
) -> Iterator[FinishedHeads]:
    """Holds the folder of an audit for this run alone.

    Args:
        store: The folder, new or of an earlier call; None keeps nothing.
        captured: What is audited.
        settings: All that the answers depend on besides.

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
        "settings": {name: value for name, value in settings.items() if name != "alpha"},
        "queries": data_hash(
            document=captured.document, position=captured.position, special=captured.special
        ),
    }
    with owned_folder(store, CHECKPOINT, argument="store") as folder:
        marker = folder / CHECKPOINT
        if not marker.exists():
            write_file(marker, json.dumps(own, indent=1) + "\n")
        held = read_json(marker, "checkpoint")
        if not isinstance(held, dict) or held.get("format") != _FORMAT:
            raise FileFormatError(f"{marker}: it identifies no audit.")
        differing = [name for name in own if held.get(name) != own[name]]
        if differing:
            raise _another(folder, f"{', '.join(differing)} differ")
        yield FinishedHeads(folder)


def _hash(captured: CapturedLayer, head: int) -> str:
    values = captured.values
    shared = captured.key_head(head)
    return data_hash(
        keys=captured.keys[:, shared],
        queries=captured.queries[:, head],
        attention=captured.attention[:, head],
        allowed=captured.allowed,
        values=None if values is None else values[:, shared],
    )


def _another(folder: Path, why: str) -> InvalidInputError:
    return InvalidInputError(
        "store",
        f"{folder} holds another audit: {why}",
        "Repeat the call that began it, or give another folder",
    )
