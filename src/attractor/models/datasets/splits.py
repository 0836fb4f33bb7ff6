"""Rows to train on, to choose by and to test with: disjoint, stratified, the same for a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_integers
from attractor.support.randomness import generator

NAMES = ("train", "validation", "test")
Size = int | float | None
_DEFAULT_TEST = 0.2


def draw_splits(
    whole: Any,
    groups: Int[np.ndarray, "n"],
    sizes: tuple[Size, Size, Size],
    *,
    seed: int,
    purpose: str,
) -> tuple[Any, ...]:
    """Draws three disjoint parts with the labels in the proportion of the whole.

    Rows of one group are copies of each other and never fall into two parts; a group with two
    labels is left out. What is drawn to choose by and to test with are rows without copies, as
    long as there are enough.

    Args:
        whole: ``Images`` or ``Reviews``. Where they come with a split, tests are drawn from its
            test part alone, and groups met there are taken out of the other.
        groups: The group of each row.
        sizes: Of the parts to train on, to choose by and to test with: a number of rows or a
            fraction. None is all that are left for the first; for the last, the whole given part
            or a fifth.
        seed: Names the draw.
        purpose: Of the random numbers, which names their stream.

    Returns:
        The parts, in this order, and the settings: sizes, seed, and the copies met and left out.

    Raises:
        InvalidInputError: If there are too few rows, or a size is no such number.
    """
    labels, given = whole.labels, whole.splits
    agreeing = _agreeing(labels, groups)
    settings: dict[str, Any] = {"seed": seed, "left_out_for_two_labels": int((~agreeing).sum())}
    random = generator(seed, purpose=purpose)
    train, validation, test = sizes
    pool = np.flatnonzero(agreeing)
    if given is None or len(set(given)) < 2:
        counts = _counts((train, validation, _DEFAULT_TEST if test is None else test), len(pool))
        parts = _draw(labels, groups, pool, counts, random)
    else:
        official = np.array(given) == "test"
        met = np.isin(groups, groups[official])
        settings["left_out_for_copies_in_test"] = int((met & ~official & agreeing).sum())
        pool = np.flatnonzero(agreeing & ~met)
        parts = _draw(labels, groups, pool, _counts((train, validation, 0), len(pool)), random)
        tests = np.flatnonzero(official)
        if test is not None:
            tests = np.flatnonzero(official & agreeing)
            counts = _counts((0, 0, test), len(tests))
            tests = _draw(labels, groups, tests, counts, random)[2]
        parts = (parts[0], parts[1], tests)
    settings |= {
        name: {"rows": len(part), "copies": len(part) - len(np.unique(groups[part]))}
        for name, part in zip(NAMES, parts, strict=True)
    }
    taken = (
        whole.take(rows, {"split": name} | settings)
        for name, rows in zip(NAMES, parts, strict=True)
    )
    return *taken, whole.settings | settings


def content_groups(contents: Iterable[bytes]) -> Int[np.ndarray, "n"]:
    """A number for each content, shared by its copies."""
    numbers: dict[bytes, int] = {}
    digests = (hashlib.blake2b(content, digest_size=16).digest() for content in contents)
    return np.array([numbers.setdefault(digest, len(numbers)) for digest in digests], np.int64)


def _agreeing(labels: Int[np.ndarray, "n"], groups: Int[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """True for rows whose whole group has their label."""
    most = np.full(groups.max(initial=-1) + 1, np.iinfo(labels.dtype).min)
    least = np.full(len(most), np.iinfo(labels.dtype).max)
    np.maximum.at(most, groups, labels)
    np.minimum.at(least, groups, labels)
    return (most == least)[groups]


def _counts(sizes: tuple[Size, Size, Size], rows: int) -> tuple[int | None, int, int]:
    """Sizes as numbers of rows; None for the rest."""
    train, validation, test = (
        _count(name, size, rows) for name, size in zip(NAMES, sizes, strict=True)
    )
    used = sum(count or 0 for count in (train, validation, test))
    if validation is None or test is None or used > rows or (train is None and used == rows):
        raise InvalidInputError(
            "train" if train else "validation",
            f"sizes {sizes} do not fit into {rows:,} different rows",
            "Give smaller sizes",
        )
    return train, validation, test


def _count(name: str, size: Size, rows: int) -> int | None:
    if size is None and name == "train":
        return None
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 0:
        return int(size)
    if isinstance(size, float) and 0 <= size < 1:
        return round(size * rows)
    raise InvalidInputError(
        name, f"got {size!r}", "Give a number of rows >= 0, or a fraction between 0 and 1"
    )


def _draw(
    labels: Int[np.ndarray, "n"],
    groups: Int[np.ndarray, "n"],
    pool: Int[np.ndarray, "m"],
    counts: tuple[int | None, int, int],
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a pool for each part: those with rare places, test and validation, first."""
    classes, sizes = np.unique(labels[pool], return_counts=True)
    parts: list[list[np.ndarray]] = [[], [], []]
    shares = [None if count is None else _shares(count, sizes) for count in counts]
    for number, label in enumerate(classes):
        rows = random.permutation(pool[labels[pool] == label])
        _, place, copies = np.unique(groups[rows], return_inverse=True, return_counts=True)
        # A stable sort keeps the random order within rows without copies, and within the others.
        rows = rows[np.argsort(copies[place] > 1, kind="stable")]
        for part in (2, 1, 0):
            share = shares[part]
            wanted = len(rows) if share is None else int(share[number])
            taken = rows if wanted == len(rows) else _whole_groups(rows, groups, wanted)
            if len(taken) < wanted:
                raise InvalidInputError(
                    NAMES[part],
                    f"there are not {wanted:,} different rows with label {label} left",
                    "Give smaller sizes",
                )
            parts[part].append(taken)
            rows = rows[~np.isin(rows, taken)]
    train, validation, test = (
        random.permutation(np.concatenate([pool[:0], *part])) for part in parts
    )
    return train, validation, test


def _shares(count: int, sizes: Int[np.ndarray, "classes"]) -> Int[np.ndarray, "classes"]:
    """Divides a count in the proportion of the classes, by largest remainders."""
    exact = count * sizes / max(1, sizes.sum())
    shares = np.floor(exact).astype(int)
    for place in np.argsort(shares - exact, kind="stable")[: count - shares.sum()]:
        shares[place] += 1
    return shares


def _whole_groups(
    rows: Int[np.ndarray, "m"], groups: Int[np.ndarray, "n"], wanted: int
) -> Int[np.ndarray, "_"]:
    """The first groups, in the order of the rows, that fill ``wanted`` places."""
    members: dict[int, list[int]] = {}
    for row in rows:
        members.setdefault(int(groups[row]), []).append(int(row))
    taken: list[int] = []
    for group in members.values():
        if len(taken) + len(group) <= wanted:
            taken.extend(group)
        if len(taken) == wanted:
            break
    return np.array(taken, dtype=rows.dtype)


def row_numbers(rows: Any, count: int) -> np.ndarray:
    """Checks numbers of rows; none at all are a part, too.

    Raises:
        InvalidInputError: If one is no row.
    """
    if isinstance(rows, np.ndarray | list | tuple) and not len(rows):
        return np.zeros(0, dtype=np.int64)
    return as_integers("rows", rows, ("m",), most=count - 1)
