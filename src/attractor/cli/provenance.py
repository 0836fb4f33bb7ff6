"""Where the reports of commands come from."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor import results, training
from attractor.files import DataSet, LoadedTokens, data_hash
from attractor.results.paper import MAX_MARGIN, TRANSFORMERS_AS_SVMS
from attractor.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from attractor.results.provenance import Provenance
    from attractor.training import Trajectory

_STATEMENT = "direction of attention under gradient descent"


def report_provenance(
    command: str,
    arguments: Mapping[str, Any],
    *,
    source: LoadedTokens | Trajectory | DataSet | None = None,
    seeds: Iterable[int] = (),
    settings: Mapping[str, Any] | None = None,
    bibtex: Iterable[str] | None = None,
) -> Provenance:
    """Where the report of a command comes from.

    Args:
        command: The command.
        arguments: What it was called with, but for files.
        source: What the file held that the command was called with.
        seeds: The seeds used.
        settings: What was in force.
        bibtex: What it cites; default: the direction of attention, of the paper on what is trained.
    """
    if bibtex is None:
        paper = MAX_MARGIN if "p" in _parameterization(source) else TRANSFORMERS_AS_SVMS
        bibtex = [paper.bibtex(_STATEMENT)]
    data = source.hash if isinstance(source, DataSet) else None
    if isinstance(source, LoadedTokens | training.Trajectory):
        data = data_hash(source.tokens, source.head)
    return results.provenance.Provenance.record(
        "report",
        command,
        arguments={**arguments, "data": source is not None},
        data=data,
        seeds=seeds,
        settings=settings,
        bibtex=bibtex,
    )


def sweep_provenance(
    data: xr.Dataset, of: Sequence[str], arguments: Mapping[str, Any]
) -> Provenance:
    """Where a drawing of a sweep comes from.

    Args:
        data: What the store holds.
        of: The measures drawn.
        arguments: What the command was called with, but for files.
    """
    described = {name: str(data.attrs[name]) for name in ("experiment", "settings")}
    return results.provenance.Provenance.record(
        "report",
        "sweep draw",
        arguments={**arguments, "data": True},
        data=results.provenance.fingerprint.digest(
            *(data[name].to_numpy() for name in of),
            *(data[name].to_numpy() for name in data[of[0]].dims),
        ),
        settings=described,
    )


def code_of(names: Iterable[str]) -> dict[str, str]:
    """Versions of what computes, and hashes of the files that ``module:name`` is in.

    Args:
        names: Names of optimizers and norms; modules are imported already.
    """
    found = {"attractor": __version__}
    for library in ("numpy", "scipy", "jax", "optax", "torch", "transformers"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    for name in names:
        file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
        if file is not None:
            found[name] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return found


def _parameterization(source: Any) -> str:
    if isinstance(source, training.Trajectory):
        return str(source.settings["parameterization"])
    return source.parameterization if isinstance(source, LoadedTokens) else ""
