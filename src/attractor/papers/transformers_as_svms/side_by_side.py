"""Data sets of different sizes trained side by side, so that one compiled program serves all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.attention import Head
from attractor.papers.figure import Request
from attractor.support.randomness import generator
from attractor.tokens import Tokens
from attractor.training import train

COMMON = (15, 1, 15, 20)
"""Sequences, queries a sequence, tokens and dimension that smaller data sets are padded to."""

Starts = Mapping[str, Float[np.ndarray, "instance rows columns"]]


class DataSets(NamedTuple):
    """Data sets of one size, and where their training starts.

    Attributes:
        tokens: The data sets.
        head: Their heads.
        starts: Initial parameters by name.
    """

    tokens: Tokens
    head: Head
    starts: Starts


def uniform_starts(tokens: Tokens, parameterization: str, width: int | None = None) -> Starts:
    """Random initial parameters, uniform on [-1/sqrt(d), 1/sqrt(d)] as linear layers have them.

    They depend on the number of the data set alone. Factors of width m are the first m columns
    of those of full width.

    Args:
        tokens: The data sets, keys and queries of one dimension d.
        parameterization: ``"W"`` or ``"KQ"``.
        width: Columns of both factors; default: d.
    """
    d = tokens.key_dimension
    drawn = []
    for number in tokens.instance_numbers:
        random = generator(int(number), purpose="initial weights")
        drawn.append(random.uniform(-(d**-0.5), d**-0.5, (2, d, d)))
    first, second = np.moveaxis(np.array(drawn), 1, 0)
    if parameterization == "W":
        return {"W": first}
    return {"K": first[..., :width], "Q": second[..., :width]}


def train_side_by_side(
    sets: Sequence[DataSets],
    request: Request,
    name: str,
    *,
    common: tuple[int, int, int, int] | None = COMMON,
    **arguments: Any,
) -> list[xr.Dataset]:
    """Trains on data sets of different sizes in few calls of ``train``.

    Smaller data sets are padded: with sequences and queries of one token, which have no gradient;
    with masked tokens; and with zeros in further dimensions, which stay zero. So do columns that
    are zero in both factors, so that narrow factors are wide ones with such columns. Rows of
    padding make the loss smaller by a factor, of which normalized descent takes no notice as long
    as it adds nothing to the gradient nor to its norm.

    Args:
        sets: The data sets.
        request: The request of a figure.
        name: What the work is, for checkpoints.
        common: What data sets that fit into it are padded to: sequences, queries a sequence,
            tokens and dimension. Others train size by size, as all do without it.
        **arguments: Further arguments of ``train``.

    Returns:
        Records of every size without padding, over (instance, step, ...).
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, one in enumerate(sets):
        size = _size(one.tokens)
        if common is not None and np.less_equal(size, common).all():
            size = common
        groups.setdefault(size, []).append(place)
    found: dict[int, xr.Dataset] = {}
    for size, places in groups.items():
        chosen = [sets[place] for place in places]
        tokens, head, starts = _together(chosen, size)
        run = train(
            tokens,
            head,
            initial=starts,
            weights="all",
            checkpoint=request.checkpoint("-".join([name, *map(str, size)])),
            progress=request.progress,
            **arguments,
        )
        cut = _cut(run.data.isel(seed=0, drop=True), chosen)
        found.update(zip(places, cut, strict=True))
    return [found[place] for place in range(len(sets))]


def _size(tokens: Tokens) -> tuple[int, int, int, int]:
    d = max(tokens.key_dimension, tokens.query_dimension)
    return tokens.sequences, tokens.queries_per_sequence, tokens.length, d


def _together(
    sets: Sequence[DataSets], size: tuple[int, ...]
) -> tuple[Tokens, Head, dict[str, np.ndarray]]:
    n, queries, length, d = size

    def joined(arrays: Iterable[Any], *shape: int, fill: float = 0.0) -> np.ndarray:
        return np.concatenate([_padded(np.asarray(array), shape, fill) for array in arrays])

    mask = joined((one.tokens.mask for one in sets), n, queries, length)
    mask[..., 0] |= ~mask.any(-1)
    tokens = Tokens(
        joined((one.tokens.keys for one in sets), n, length, d),
        joined((one.tokens.queries for one in sets), n, queries, d),
        joined((one.tokens.labels for one in sets), n, queries, fill=1.0),
        mask,
    )
    head = jax.tree.map(
        lambda *leaves: joined(leaves, *[d] * (leaves[0].ndim - 1)), *(one.head for one in sets)
    )
    starts = {name: joined((one.starts[name] for one in sets), d, d) for name in sets[0].starts}
    return tokens, head, starts


def _padded(array: np.ndarray, shape: tuple[int, ...], fill: float) -> np.ndarray:
    """An array over instances put into the corner of larger ones."""
    larger = np.full((len(array), *shape), fill, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def _cut(data: xr.Dataset, sets: Sequence[DataSets]) -> list[xr.Dataset]:
    """The records of each size, without its padding."""
    counts = [len(one.tokens.keys) for one in sets]
    ends = np.cumsum(counts)
    found = []
    for one, end, count in zip(sets, ends, counts, strict=True):
        n, queries, _, d = _size(one.tokens)
        sizes = {"sequence": n, "query": queries, "row": d, "column": d}
        if "K" in one.starts:
            sizes["width"] = one.starts["K"].shape[-1]
        place = {name: slice(size) for name, size in sizes.items()}
        mine = data.isel(place | {"instance": slice(end - count, end)})
        found.append(mine.assign_coords(instance=one.tokens.instance_numbers))
    return found
