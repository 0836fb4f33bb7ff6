"""The identity of the run in a checkpoint folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from attractor.results.provenance.fingerprint import describe, differences
from attractor.support.containers import read_json
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.storage import write_file
from attractor.support.storage.markers import CHECKPOINT as MARKER
from attractor.version import __version__

_FORMAT = "attractor checkpoint 1"
_SECTIONS = ("settings", "data", "environment")


@dataclass(frozen=True)
class Checkpoint:
    """A folder for the state of a run, and the settings and data that identify the run.

    Attributes:
        path: A folder, new or empty or of an earlier call.
        settings: Everything that determines the result, but for arrays; nested mappings are fine.
            Functions are known by their qualified names.
        data: Named arrays that determine the result.
        every: Seconds between two writes, at least.
    """

    path: str | os.PathLike[str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, np.ndarray | Array | None] = field(default_factory=dict)
    every: float = 30.0


def recognize(folder: Path, checkpoint: Checkpoint, program: str, device: Any) -> str | None:
    """Recognizes the run in a folder, or begins one there.

    Args:
        folder: The folder, which is ours.
        checkpoint: What this call is.
        program: Digest of the compiled step.
        device: What it is trained on.

    Returns:
        ``None`` if the run can go on with bit-identical results; else why only a complete one can
        be read.

    Raises:
        InvalidInputError: If the folder holds another run.
        FileFormatError: If the file that identifies the run is damaged.
    """
    own = {
        "format": _FORMAT,
        "settings": describe(checkpoint.settings),
        "data": describe(checkpoint.data),
        "environment": {
            "attractor": __version__,
            "jax": jax.__version__,
            "device": f"{device.platform} {device.device_kind}",
        },
        "program": program,
    }
    marker = folder / MARKER
    if not marker.exists():
        write_file(marker, json.dumps(own, indent=1) + "\n")
    found = _read(marker)
    changed = differences(found["settings"], own["settings"])
    names = sorted(found["data"].keys() | own["data"].keys())
    other = [name for name in names if found["data"].get(name) != own["data"].get(name)]
    if other:
        changed.append(f"the values of {', '.join(other)} differ")
    moved = differences(found["environment"], own["environment"])
    if not changed and not moved and found["program"] != program:
        changed.append(
            "the compiled step differs, by a function of yours or by the code of the library"
        )
    if changed:
        raise InvalidInputError(
            "checkpoint",
            f"{folder} holds another run: {'; '.join(changed)}",
            "Repeat the call that began it, or give another folder",
        )
    return "; ".join(moved) or None


def _read(marker: Path) -> dict[str, Any]:
    found = read_json(marker, "checkpoint")
    try:
        if found["format"] != _FORMAT:
            raise FileFormatError(f"{marker}: {found['format']!r} is not {_FORMAT!r}.")
        if not all(isinstance(found[section], dict) for section in _SECTIONS):
            raise TypeError("a section is of another kind")
        found["program"]  # a KeyError if it is missing
    except (KeyError, TypeError) as error:
        raise FileFormatError(
            f"{marker}: damaged ({error!r}). Delete the folder to begin anew."
        ) from error
    return found
