"""Readings of the papers' figures, and the data that they are drawn from, at quick size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from tools.golden.collect import command

LONG = {
    "transformers-as-svms": (
        "local-convergence global-selection sequences margins-and-sample-size convergence-types "
        "several-tokens key-query-width concave-head"
    ),
    "mirror-descent": (
        "key-query directional-divergence joint-probabilities text-generalization text-selection "
        "attended-words weight-sparsity vision divergence-table entry-paths"
    ),
    "next-token": ("generalization optimizers sizes training rates assumptions"),
    "mechanics": "global-convergence",
    "linear-next-token": "overparameterized two-dimensional",
    "max-margin": "random-data vision-transformer basins",
    "large-prompt": (
        "official-runs trained-products softmax-norms order-of-limits length-and-time flows "
        "phase-diagram trained-models task-families"
    ),
}
"""Figures that take more than a few seconds; only `--whole` takes them."""


def figures(whole: bool = False, **_: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each figure by its name."""
    for name in sorted(command("figures")["figures"]):
        paper, _, short = name.partition("/")
        if whole or short not in LONG.get(paper, "").split():
            yield name, functools.partial(_figure, name)


def _figure(name: str) -> Any:
    """Values of readings by what is read; the picture itself is not looked at."""
    import xarray as xr
    from matplotlib.figure import Figure

    # Most of the time would go into pixels.
    save, Figure.savefig = Figure.savefig, functools.partialmethod(_small, Figure.savefig)
    try:
        (found,) = command("figures", name, "--out", "figures")["figures"].values()
    finally:
        Figure.savefig = save
    with xr.open_dataset(found["files"]["nc"], engine="h5netcdf") as data:
        return found["readings"], data.load()


def _small(figure: Any, save: Callable[..., Any], *words: Any, **named: Any) -> None:
    """Saves a picture of few pixels."""
    save(figure, *words, **named | {"dpi": 10})


ADAPTERS = {"figure": figures}
WITH_OPTIONS = {"figure"}
