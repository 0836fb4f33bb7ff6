"""Norms of matrices cut into blocks: the largest of the norms of the blocks, and their sum."""

from __future__ import annotations

import abc
import functools
import math
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from attractor.geometry.contract import Geometry
from attractor.geometry.exponent import exponent_text
from attractor.geometry.registry import get_geometry, register_geometry
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError

Span: TypeAlias = "tuple[int, int | None] | tuple[int, int | None, int | None]"
"""Where rows or columns begin and end, None being the last; a third entry cuts them by as many."""
Grid: TypeAlias = tuple[range, range, int, int]
"""Where blocks of a matrix begin, along rows and along columns, and their size."""

_LARGEST = np.iinfo(np.int64).max
_TERM = re.compile(r"(?:(\d[\w.+-]*)\s*\*?\s+)?([A-Za-z_][\w.+-]*)\s*\[([^\]]*)\]")
_SPAN = re.compile(r"\s*(\d*)\s*:\s*(\d*)\s*(?:by\s+(\d+)\s*)?")
_COMMA = re.compile(r",(?![^\[]*\])")
_WAYS = (
    "Write blocks like '2 spectral[0:10]' (rows), 'l_inf[:, 10:]' (columns), "
    "'spectral[: by 16]' (every 16 rows a block)"
)


class Piece(NamedTuple):
    """One block of a matrix of known shape."""

    rows: slice
    columns: slice
    weight: float
    geometry: Geometry

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start


@dataclass(frozen=True)
class Block:
    """A block of a matrix, or several of one size side by side, with a norm and a weight.

    Attributes:
        geometry: The norm of each block.
        rows: ``(start, stop)``, or ``(start, stop, height)`` for blocks of as many rows. A stop of
            None is the last row.
        columns: Likewise.
        weight: What the norm is multiplied by.
    """

    geometry: Geometry
    rows: tuple[int, int | None, int | None]
    columns: tuple[int, int | None, int | None]
    weight: float

    def __init__(
        self,
        geometry: Geometry | str,
        rows: Span = (0, None),
        columns: Span = (0, None),
        weight: float = 1.0,
    ) -> None:
        """Checks the block.

        Args:
            geometry: The norm, or its name.
            rows: ``(start, stop)`` or ``(start, stop, height)``.
            columns: ``(start, stop)`` or ``(start, stop, width)``.
            weight: Positive and finite.

        Raises:
            InvalidInputError: If the block is empty, or something is of another kind.
        """
        geometry = get_geometry(geometry)
        if isinstance(geometry, BlockNorm):
            raise InvalidInputError(
                "geometry", f"the block is itself in blocks: {geometry.name}", "List its blocks"
            )
        number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not number or not 0 < float(weight) < math.inf:
            raise InvalidInputError("weight", f"it is {weight!r}", "Give a positive finite number")
        object.__setattr__(self, "geometry", geometry)
        object.__setattr__(self, "rows", _checked_span("rows", rows))
        object.__setattr__(self, "columns", _checked_span("columns", columns))
        object.__setattr__(self, "weight", float(weight))

    @classmethod
    def from_text(cls, text: str) -> Block:
        """Reads a block as it is written in names, such as ``"2 spectral[0:10]"``.

        Raises:
            InvalidInputError: If it is written otherwise.
        """
        check_kinds(text=(text, str))
        found = _TERM.fullmatch(text.strip())
        if found is None:
            raise InvalidInputError("geometry", f"{text.strip()!r} is no block", _WAYS)
        weight, name, place = found.groups()
        spans = [_SPAN.fullmatch(part) for part in place.split(",")]
        if len(spans) > 2 or not all(spans):
            raise InvalidInputError("geometry", f"[{place}] of {text.strip()!r} is no place", _WAYS)
        try:
            factor = 1.0 if weight is None else float(weight)
        except ValueError:
            raise InvalidInputError("geometry", f"{weight!r} is no number", _WAYS) from None
        ends = [
            (int(start or 0), int(stop) if stop else None, int(by) if by else None)
            for start, stop, by in (span.groups() for span in spans if span)
        ]
        return cls(name, *ends, weight=factor)

    def __str__(self) -> str:
        """As it is written in names."""
        rows, columns = (_span_text(span) for span in (self.rows, self.columns))
        weight = "" if self.weight == 1 else f"{exponent_text(self.weight)} "
        return f"{weight}{self.geometry.name}[{rows}{'' if columns == ':' else f', {columns}'}]"

    def grid(self, shape: tuple[int, ...]) -> Grid:
        """Where blocks of a matrix begin, along rows and along columns, and their size.

        Raises:
            InvalidInputError: If the matrix is too small, or cannot be cut so.
        """
        starts, sizes = [], []
        for (start, stop, by), length, what in zip(
            (self.rows, self.columns), shape, ("rows", "columns"), strict=True
        ):
            stop = length if stop is None else stop
            size = stop - start if by is None else by
            if not start < stop <= length or (stop - start) % size:
                raise InvalidInputError(
                    "geometry",
                    f"{self} does not fit a matrix of {length} {what}",
                    f"Cut these {length} {what} into blocks with none left over",
                )
            starts.append(range(start, stop, size))
            sizes.append(size)
        return *starts, *sizes


class BlockNorm(Geometry, abc.ABC):
    """What the two norms share: the blocks, their names and how matrices are cut.

    Attributes:
        blocks: The blocks, from the top and the left.
    """

    word: ClassVar[str]
    blocks: tuple[Block, ...]

    def __init__(self, *blocks: Block | str) -> None:
        """Takes the blocks in any order.

        Args:
            *blocks: Blocks, or how they are written: ``"2 spectral[0:10]"``.

        Raises:
            InvalidInputError: If there is none, or something is no block.
        """
        if not blocks:
            raise InvalidInputError("blocks", "there are none", _WAYS)
        for block in blocks:
            if not isinstance(block, (Block, str)):
                raise InvalidInputError("blocks", f"{block!r} is none", _WAYS)
        made = [block if isinstance(block, Block) else Block.from_text(block) for block in blocks]
        self.blocks = tuple(sorted(made, key=lambda block: (block.rows[0], block.columns[0])))
        self.name = f"{self.word}({', '.join(map(str, self.blocks))})"
        # A whole matrix in one block is in the norm of that block.
        one = len(made) == 1 and made[0].rows == made[0].columns == (0, None, None)
        self.unique = one and made[0].geometry.unique
        self.unitarily_invariant = one and made[0].geometry.unitarily_invariant

    @classmethod
    def each(
        cls, geometry: Geometry | str, rows: int | None = None, columns: int | None = None
    ) -> Any:
        """All blocks of one size and one norm, as of heads whose matrices stand in one.

        Args:
            geometry: The norm of each block, or its name.
            rows: Rows of a block; None for all.
            columns: Columns of a block; None for all.

        Raises:
            InvalidInputError: If a number is less than one.
        """
        return cls(Block(geometry, (0, None, rows), (0, None, columns)))

    @classmethod
    def from_name(cls, name: str) -> Any:
        """Reads ``"max(2 spectral[0:10], l_inf[10:20])"`` and the like."""
        text = name.strip()
        if not (text.startswith(f"{cls.word}(") and text.endswith(")")):
            return None
        return cls(*_COMMA.split(text[len(cls.word) + 1 : -1]))

    def pieces(self, shape: tuple[int, ...]) -> tuple[Piece, ...]:
        """The blocks of a matrix of that shape, one by one.

        Raises:
            InvalidInputError: If they do not cover it, or overlap.
        """
        return _layout(self, tuple(shape)).pieces

    def cut(self, W: Float[Any, "*batch d e"]) -> list[Float[Any, "*batch r c h w"]]:
        """The blocks of matrices: a grid of matrices for each entry of ``blocks``.

        Raises:
            InvalidInputError: If they do not cover the matrix, or overlap.
        """
        xp, found = W.__array_namespace__(), []
        for rows, columns, h, w in _layout(self, tuple(W.shape[-2:])).grids:
            part = W[..., rows.start : rows.stop, columns.start : columns.stop]
            part = xp.reshape(part, (*W.shape[:-2], len(rows), h, len(columns), w))
            found.append(xp.moveaxis(part, -2, -3))
        return found

    def joined(
        self, parts: list[Float[Any, "*batch r c h w"]], like: Float[Any, "*batch d e"]
    ) -> Float[Any, "*batch d e"]:
        """The matrices whose blocks are given, of the shape and kind of others: undoes ``cut``."""
        xp = like.__array_namespace__()
        empty = total = xp.zeros_like(like)
        grids = _layout(self, tuple(like.shape[-2:])).grids
        for (rows, columns, h, w), part in zip(grids, parts, strict=True):
            part = xp.moveaxis(part, -3, -2)
            part = xp.reshape(part, (*like.shape[:-2], len(rows) * h, len(columns) * w))
            beside = empty[..., columns.start : columns.stop]
            part = xp.concat(
                [beside[..., : rows.start, :], part, beside[..., rows.stop :, :]], axis=-2
            )
            part = xp.concat(
                [empty[..., : columns.start], part, empty[..., columns.stop :]], axis=-1
            )
            total = total + part
        return total

    def dual_norm_constants(
        self, rows: int, columns: int
    ) -> tuple[tuple[slice, slice, float], ...]:
        """Those of the blocks."""
        pieces = self.pieces((rows, columns))
        constants = self._constants(rows, columns)
        return tuple(
            (piece.rows, piece.columns, constant)
            for piece, constant in zip(pieces, constants, strict=True)
        )

    def norm_rounding(self, rows: int, columns: int) -> float:
        """The most that the norm of a block is off, and roundings by its weight and of a sum."""
        pieces = self.pieces((rows, columns))
        most = max(piece.geometry.norm_rounding(*piece.shape) for piece in pieces)
        if len(pieces) == 1 and pieces[0].weight == 1:
            return most
        return most + (len(pieces) + 3) * 2.0**-53

    def _norms(self, W: Any) -> Any:
        """The weighted norms of all blocks, along one axis."""
        return self._of_blocks(W, lambda block, part: block.weight * block.geometry.norm(part))

    def _dual_norms(self, G: Any) -> Any:
        """The dual norms of all blocks over their weights, along one axis."""
        return self._of_blocks(G, lambda block, part: block.geometry.dual_norm(part) / block.weight)

    def _of_blocks(self, W: Any, function: Callable[[Block, Any], Any]) -> Any:
        xp, found = W.__array_namespace__(), []
        for block, part in zip(self.blocks, self.cut(W), strict=True):
            count = part.shape[-4] * part.shape[-3]
            found.append(xp.reshape(function(block, part), (*W.shape[:-2], count)))
        return xp.concat(found, axis=-1)

    def _directions(self, G: Any) -> list[Any]:
        """The steepest direction of each block, over its weight."""
        return [
            block.geometry.steepest_descent_direction(part) / block.weight
            for block, part in zip(self.blocks, self.cut(G), strict=True)
        ]

    def _constants(self, rows: int, columns: int) -> list[float]:
        """``dual_norm_constant`` of all blocks, over their weights."""
        return [
            piece.geometry.dual_norm_constant(*piece.shape) / piece.weight
            for piece in self.pieces((rows, columns))
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(str(block)) for block in self.blocks)})"


@register_geometry
class BlockMaximum(BlockNorm):
    """The largest norm of a block, ``max_b c_b ||W_b||_b``; its dual is ``sum_b ||G_b||_b* / c_b``.

    Each block has a norm and a weight of its own. Steepest descent takes in every block the
    steepest step of its norm, as optimizers do that treat heads or layers one by one: it is the
    modular norm of *Scalable Optimization in the Modular Norm* (arXiv 2405.14813). Blocks whose
    norm is below the largest are free, so that margin problems have many solutions; where
    no constraint joins two blocks, the one returned is the smallest in each block by itself.

    Attributes:
        blocks: The blocks, from the top and the left.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> norm = at.BlockMaximum("spectral[0:2]", "10 l_inf[2:3]")
        >>> W = np.array([[3.0, 0.0], [0.0, 4.0], [0.1, 0.2]])
        >>> norm.norm(W).item(), round(norm.dual_norm(W).item(), 6)  # 4 and 2; 3 + 4 + 0.3 / 10
        (4.0, 7.03)
        >>> at.BlockMaximum.each("spectral", rows=16).name
        'max(spectral[: by 16])'
    """

    word = "max"
    spelling = "max(<c> <norm>[<rows>, <columns>], ...)"

    @classmethod
    def examples(cls) -> tuple[BlockMaximum, ...]:
        """The longest row; the largest column sum; both with rows or columns of any number."""
        return cls.each("frobenius", rows=1), cls(Block("l_1", columns=(0, None, 1), weight=3))

    def norm(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """``max_b c_b ||W_b||_b``."""
        return W.__array_namespace__().max(self._norms(W), axis=-1)

    def dual_norm(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """``sum_b ||G_b||_b* / c_b``."""
        return G.__array_namespace__().sum(self._dual_norms(G), axis=-1)

    def steepest_descent_direction(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """The steepest direction of every block in its norm, over ``c_b``."""
        return self.joined(self._directions(G), G)

    def dual_norm_constant(self, rows: int, columns: int) -> float:
        """The root of the sum of the squares of those of the blocks, over their weights."""
        return math.hypot(*self._constants(rows, columns))


@register_geometry
class BlockSum(BlockNorm):
    """The sum of norms of blocks, ``sum_b c_b ||W_b||_b``; its dual is ``max_b ||G_b||_b* / c_b``.

    It is the norm of the group lasso (Yuan and Lin 2006), and few blocks of a solution are not
    zero. Steepest descent moves the block that gains most, alone.

    Attributes:
        blocks: The blocks, from the top and the left.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> norm = at.BlockSum.each("frobenius", rows=1)  # the lengths of rows
        >>> W = np.array([[3.0, 4.0], [0.0, 1.0]])
        >>> norm.norm(W).item(), norm.dual_norm(W).item()
        (6.0, 5.0)
    """

    word = "sum"
    spelling = "sum(<c> <norm>[<rows>, <columns>], ...)"

    @classmethod
    def examples(cls) -> tuple[BlockSum, ...]:
        """The lengths of rows; the largest entries of columns."""
        return cls.each("frobenius", rows=1), cls(Block("l_inf", columns=(0, None, 1), weight=3))

    def norm(self, W: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """``sum_b c_b ||W_b||_b``."""
        return W.__array_namespace__().sum(self._norms(W), axis=-1)

    def dual_norm(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch"]:
        """``max_b ||G_b||_b* / c_b``."""
        return G.__array_namespace__().max(self._dual_norms(G), axis=-1)

    def steepest_descent_direction(self, G: Float[Any, "*batch d e"]) -> Float[Any, "*batch d e"]:
        """That of the first block of the largest ``||G_b||_b* / c_b``, over ``c_b``; else zero."""
        return self.joined(self.only_largest(self._directions(G), self._dual_norms(G)), G)

    def only_largest(
        self, parts: list[Float[Any, "*batch r c h w"]], sizes: Float[Any, "*batch n"]
    ) -> list[Float[Any, "*batch r c h w"]]:
        """Blocks in the grids of ``cut``, all zero but for the first of the largest size.

        NaN where a size is.
        """
        xp, first, found = sizes.__array_namespace__(), 0, []
        place = xp.argmax(sizes, axis=-1, keepdims=True)
        lost = xp.sum(sizes, axis=-1)[..., None, None, None, None]
        lost = xp.where(xp.isnan(lost), lost, xp.zeros_like(lost))
        for part in parts:
            *lead, r, c, _, _ = part.shape
            here = xp.arange(first, first + r * c) == place
            here = xp.reshape(here, (*lead, r, c, 1, 1))
            found.append(xp.where(here, part, xp.zeros_like(part)) + lost)
            first += r * c
        return found

    def dual_norm_constant(self, rows: int, columns: int) -> float:
        """The largest of the blocks, over their weights."""
        return max(self._constants(rows, columns))


class _Layout(NamedTuple):
    """The blocks of a matrix of some shape: one by one, and the grid of each entry of a norm."""

    pieces: tuple[Piece, ...]
    grids: tuple[Grid, ...]


@functools.lru_cache(maxsize=1024)
def _layout(norm: BlockNorm, shape: tuple[int, ...]) -> _Layout:
    """Where the blocks of a norm lie.

    Raises:
        InvalidInputError: If they do not cover it, or overlap.
    """
    grids = tuple(block.grid(shape) for block in norm.blocks)
    found, times = [], np.zeros(shape, dtype=int)
    for block, (rows, columns, h, w) in zip(norm.blocks, grids, strict=True):
        for i in rows:
            for k in columns:
                place = slice(i, i + h), slice(k, k + w)
                times[place] += 1
                found.append(Piece(*place, block.weight, block.geometry))
    wrong: Any = np.argwhere(times != 1)
    if len(wrong):
        i, k = map(int, wrong[0])
        how = "no block" if times[i, k] == 0 else f"{times[i, k]} blocks"
        raise InvalidInputError(
            "geometry",
            f"row {i}, column {k} of a {shape[0]} x {shape[1]} matrix lies in {how}",
            "Give blocks that cover the matrix once",
        )
    return _Layout(tuple(found), grids)


def _checked_span(name: str, span: Any) -> tuple[int, int | None, int | None]:
    """Start, stop and size.

    Raises:
        InvalidInputError: Unless it is at least one row or column.
    """
    ends: tuple[Any, ...] = tuple(span) if isinstance(span, (tuple, list)) else ()
    whole = all(
        end is None or (isinstance(end, numbers.Integral) and not isinstance(end, bool))
        for end in ends
    )
    if len(ends) not in (2, 3) or not whole or ends[0] is None:
        raise InvalidInputError(
            name, f"they are {span!r}", "Give (start, stop) or (start, stop, size), whole numbers"
        )
    start, stop, size = (None if end is None else int(end) for end in (*ends, None)[:3])
    assert start is not None
    if start < 0 or (stop is not None and stop <= start) or (size is not None and size < 1):
        raise InvalidInputError(
            name,
            f"{_span_text((start, stop, size))} is empty",
            "Let each block have a row and a column at least",
        )
    if max(start, stop or 0, size or 0) > _LARGEST:
        raise InvalidInputError(
            name, f"{_span_text((start, stop, size))} is beyond any matrix", "Give smaller numbers"
        )
    return start, stop, size


def _span_text(span: tuple[int, int | None, int | None]) -> str:
    start, stop, size = span
    ends = ":" if (start, stop) == (0, None) else f"{start}:{'' if stop is None else stop}"
    return ends if size is None else f"{ends} by {size}"
