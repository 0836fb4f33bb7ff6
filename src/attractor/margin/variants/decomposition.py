"""Attention that keeps several tokens a row: a finite part and a direction to infinity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Frobenius, Geometry
from attractor.geometry.vectors import cosines, ordinary_factor
from attractor.margin._solve import solve
from attractor.margin.problem import MarginProblem, derived, norms_of, places_of
from attractor.margin.selection import Selection
from attractor.margin.solution import Solution, texts_of
from attractor.results import Rows, Summary
from attractor.results.labeled import labeled
from attractor.support.checks import check_flags, check_kinds, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

_SAME_WEIGHTS = 1e-8
"""Largest difference of log ratios, relative to their size, of a matrix that has the weights."""
_ROUNDING = 1e-14
"""Rounding of a difference of scores, relative to the norms that make a score."""


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(Summary):
    """The finite part and the directional part of attention that keeps several tokens a row.

    With O_i the tokens that keep their weight in row i, training is predicted to follow

        W(k) ~ W_fin + ||W(k)|| W_dir / ||W_dir||

    where W_dir keeps the tokens of each O_i equal and all others below them by a margin of one,
    and W_fin is the smallest matrix that gives the tokens of each O_i the ratios of their final
    weights (*Transformers as Support Vector Machines*, the generalization to several tokens).

    Attributes:
        selection: The tokens kept.
        ambiguous: Rows where a token that is not kept has more than a negligible weight,
            ``(*instances, n, K)``: what such a row keeps is a matter of the threshold.
        directional: Solution for W_dir.
        finite: Solution for W_fin; infeasible where no matrix gives all ratios of the weights.
    """

    selection: Selection
    ambiguous: Bool[np.ndarray, "*instances sequence query"]
    directional: Solution
    finite: Solution

    @property
    def all_kept(self) -> Bool[np.ndarray, "*instances"]:
        """Whether every row keeps all its tokens, so that there is no direction to infinity."""
        problem = self.directional.problem
        return np.asarray(~(problem.present & ~problem.equality).any(-1))

    def predict(self, norm: float | Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "..."]:
        """``W_fin + norm W_dir / ||W_dir||``; W_fin alone where all tokens are kept.

        Args:
            norm: Norm of the trained matrix; leading axes broadcast against the instances.
        """
        W = self.directional.W
        size = np.asarray(self.directional.geometry.norm(W))
        scale = as_float64("norm", norm) / np.where(size > 0, size, 1.0)
        return self.finite.W + scale[..., None, None] * W

    def multiplier(self, W: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch"]:
        """The R for which ``W_fin + R W_dir`` is nearest to W in the Frobenius norm.

        Zero where all tokens are kept; NaN where W is not finite.

        Args:
            W: Matrices; leading axes broadcast against the instances.
        """
        direction = self.directional.W
        square = _inner(direction, direction)
        product = _inner(self._matrices(W) - self.finite.W, direction)
        return np.where(square > 0, product / np.where(square > 0, square, 1.0), product * 0)

    def nearest(self, W: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch d e"]:
        """``W_fin + R W_dir`` with the multiplier R nearest to W.

        Args:
            W: Matrices; leading axes broadcast against the instances.
        """
        return self.finite.W + self.multiplier(W)[..., None, None] * self.directional.W

    def correlation(self, W: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch"]:
        """Correlation of W with ``nearest(W)``; NaN if W is not finite or a part has no solution.

        Args:
            W: Matrices; leading axes broadcast against the instances.
        """
        return cosines(self._matrices(W), self.nearest(W))

    def closed_form_correlation(
        self, W: Float[np.ndarray, "*batch d e"]
    ) -> Float[np.ndarray, "*batch"]:
        """The correlation from inner products alone, for a W that has the weights itself.

        In the Frobenius norm W_fin is then the projection of W on the span of the ties, and W_dir
        is orthogonal to it, so that

            corr(W, W_fin + R W_dir)^2 = (||W_fin||^2 + <W, W_dir>^2 / ||W_dir||^2) / ||W||^2.

        Args:
            W: Matrices; leading axes broadcast against the instances.

        Raises:
            InvalidInputError: If the geometry is another, or W gives the kept tokens other ratios
                of weights.
        """
        if self.directional.geometry != Frobenius():
            raise InvalidInputError(
                "geometry",
                f"it is {self.directional.geometry!r}",
                "The closed form holds in the Frobenius norm; use correlation(W)",
            )
        W = self._matrices(W)
        problem = self.finite.problem
        factor = ordinary_factor(np.abs(W).max((-1, -2)))
        W = W * factor[..., None, None]
        margins = np.where(problem.present, problem.margins(W), 0.0)
        ratios = np.where(problem.present, problem.bounds, 0.0) * factor[..., None]
        least = _SAME_WEIGHTS * np.maximum(np.abs(ratios).max(-1, initial=0.0), factor)
        off = np.abs(margins - ratios).max(-1, initial=0.0)
        if (off > least + _ROUNDING * self._reach(W)).any():
            raise InvalidInputError(
                "W",
                "it gives the kept tokens other ratios of weights than those decomposed",
                "Take the weights from the same matrix, or use correlation(W)",
            )
        finite, direction = self.finite.W * factor[..., None, None], self.directional.W
        square, product = _inner(direction, direction), _inner(W, direction)
        along = product**2 / np.where(square > 0, square, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.sqrt((_inner(finite, finite) + along) / _inner(W, W))
        return np.asarray(cosine)

    def to_xarray(self) -> xr.Dataset:
        """Both parts and what was kept, as labeled arrays."""
        lead = self._lead
        rows, matrix = (*lead, "sequence", "query"), (*lead, "row", "column")
        data: dict[str, Any] = {
            "directional": (matrix, self.directional.W),
            "finite": (matrix, self.finite.W),
            "selected": ((*rows, "token"), self.selection.mask),
            "ambiguous": (rows, self.ambiguous),
            "all_kept": (lead, self.all_kept),
        }
        for name, part in (("directional", self.directional), ("finite", self.finite)):
            data[f"{name}_status"] = (lead, texts_of(part.status))
        return labeled(data, attributes={"geometry": self.directional.geometry.name})

    def _matrices(self, W: Any) -> Float[np.ndarray, "*batch d e"]:
        """W as an array of matrices of the right shape; those not finite are NaN."""
        array, shape = as_float64("W", W, finite=False), self.directional.problem.shape
        if array.shape[-2:] != shape:
            raise InvalidInputError(
                "W", f"the shape is {array.shape}", f"Give {shape}, with any axes before"
            )
        return np.where(np.isfinite(array).all((-1, -2), keepdims=True), array, np.nan)

    def _reach(self, W: Float[np.ndarray, "*batch d e"]) -> Float[np.ndarray, "*batch"]:
        """Largest product of norms that bounds a difference of scores."""
        sizes = norms_of(self.finite.problem)
        return np.asarray(sizes.max(-1, initial=0.0) * np.linalg.norm(W, axis=(-1, -2)))

    @property
    def _lead(self) -> tuple[str, ...]:
        return () if self.directional.problem.instances is None else ("instance",)

    def _summary(self) -> tuple[str, Rows]:
        kept = self.selection.mask.sum(-1)
        rows = [
            ("geometry", self.directional.geometry.name),
            ("tokens kept a row", f"{kept.min()} to {kept.max()}, mean {kept.mean():.3g}"),
            ("ambiguous rows", f"{int(self.ambiguous.sum())} of {self.ambiguous.size}"),
        ]
        if self.all_kept.any():
            rows.append(("all tokens kept", f"{int(self.all_kept.sum())} of {self.all_kept.size}"))
        for name, part in (("directional part", self.directional), ("finite part", self.finite)):
            if self._lead:
                solved = np.isfinite(part.value)
                text = f"solved in {int(solved.sum())} of {solved.size}"
            else:
                text = f"{part.status}, norm {part.norm:.6g}"
            rows.append((name, text))
        return "Decomposition", rows


def _inner(a: Any, b: Any) -> Float[np.ndarray, "*batch"]:
    """``<A, B>`` of matrices."""
    return np.asarray((np.asarray(a) * np.asarray(b)).sum((-1, -2)))


def decompose(
    tokens: Tokens,
    weights: Any,
    geometry: Geometry | str = Frobenius(),  # noqa: B008 - immutable
    *,
    logarithmic: bool = False,
    selection: Selection | None = None,
    threshold: float = 1e-3,
    negligible: float = 1e-6,
    tolerance: float = 1e-9,
) -> Decomposition:
    """Finite and directional part of attention, from its final weights.

    Args:
        tokens: The data set, or several with an axis of instances.
        weights: Final softmax weights ``(*instances, n, K, T)``, without the axis K where each
            sequence has one query; masked entries are ignored.
        geometry: The norm both parts are smallest in, or its name.
        logarithmic: Whether ``weights`` are logarithms, up to a constant a row: with
            ``tokens.scores(W)`` no digit is lost, however small weights become.
        selection: The tokens kept; those with weights of at least ``threshold`` if None.
        threshold: Smallest weight that is kept.
        negligible: A row where a token that is not kept has a weight above this is ambiguous.
        tolerance: Relative duality gap to solve to.

    Raises:
        InvalidInputError: If shapes do not fit, a kept token has weight zero, or the thresholds
            are not in order.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> kept = at.decompose(tokens, [[0.5, 0.5], [1.0, 0.0]])
        >>> kept
        Decomposition
          geometry           frobenius
          tokens kept a row  1 to 2, mean 1.5
          ambiguous rows     0 of 2
          directional part   optimal, norm 0.316228
          finite part        optimal, norm 0
    """
    check_kinds(tokens=(tokens, Tokens))
    check_flags(logarithmic=logarithmic)
    threshold = check_number("threshold", threshold, above=0.0, most=1.0, example=1e-3)
    negligible = check_number("negligible", negligible, least=0.0, most=1.0, example=1e-6)
    logs = _log_weights(tokens, weights, logarithmic)
    if not 0 <= negligible <= threshold <= 1 / tokens.length:
        raise InvalidInputError(
            "threshold",
            f"it is {threshold}, with {negligible} negligible",
            f"Give 0 <= negligible <= threshold <= {1 / tokens.length:.3g}, one over the tokens "
            "of a sequence: the largest weight of a row is at least that",
        )
    if selection is None:
        kept = logs > -np.inf if threshold == 0 else logs >= np.log(threshold)
        selection = Selection(kept, np.zeros(kept.shape[:-1], dtype=bool))
    problem = MarginProblem.from_selection(tokens, selection, ties="equal")
    left_over = np.where(selection.mask, -np.inf, logs)
    ambiguous = np.exp(left_over).max(-1) > negligible
    ratios = _log_ratios(problem, selection, logs)
    equalities = problem.equality & problem.present
    finite = derived(problem, bounds=ratios, present=equalities, selection=None)
    return Decomposition(
        selection,
        ambiguous,
        solve(problem, geometry, tolerance=tolerance),
        solve(finite, geometry, tolerance=tolerance),
    )


def _log_weights(
    tokens: Tokens, weights: Any, logarithmic: bool
) -> Float[np.ndarray, "*instances sequence query token"]:
    """Logarithms of the weights, which add up to one in each row."""
    array, shape = as_float64("weights", weights, finite=False), tokens.mask.shape
    if tokens.queries_per_sequence == 1 and array.shape == (*shape[:-2], shape[-1]):
        array = array[..., None, :]
    if array.shape != shape:
        raise InvalidInputError(
            "weights", f"the shape is {array.shape}", f"Give {shape}: one real number a token"
        )
    given = np.where(tokens.mask, array, -np.inf if logarithmic else 0.0)
    if np.isnan(given).any() or (given == np.inf).any() or (not logarithmic and (given < 0).any()):
        raise InvalidInputError(
            "weights",
            "some are NaN, infinite or negative",
            "Give softmax weights, or their logarithms with logarithmic=True",
        )
    with np.errstate(divide="ignore"):
        logs = given if logarithmic else np.log(given)
    total = np.logaddexp.reduce(logs, axis=-1, keepdims=True)
    if not np.isfinite(total).all():
        raise InvalidInputError(
            "weights", "all weights of a row are zero", "Give weights that add up to one"
        )
    return logs - total


def _log_ratios(
    problem: MarginProblem,
    selection: Selection,
    logs: Float[np.ndarray, "*instances sequence query token"],
) -> Float[np.ndarray, "*instances m"]:
    """``log(s_r / s_t)`` of the first selected token r and the token t of each equality; else 0."""
    whole = problem.batched()
    equalities = whole.equality & whole.present
    instance, sequence, query, token = places_of(whole, equalities)
    logs = logs.reshape(-1, *logs.shape[-3:])
    first = selection.mask.reshape(logs.shape).argmax(-1)[instance, sequence, query]
    with np.errstate(invalid="ignore"):
        found = logs[instance, sequence, query, first] - logs[instance, sequence, query, token]
    if not np.isfinite(found).all():
        row = np.flatnonzero(~np.isfinite(found))[0]
        raise InvalidInputError(
            "selection",
            f"it keeps a token of weight zero in sequence {sequence[row]}, query {query[row]}",
            "Keep tokens with positive weight only",
        )
    ratios = np.zeros(whole.bounds.shape)
    ratios[equalities] = found
    return ratios.reshape(problem.bounds.shape)
