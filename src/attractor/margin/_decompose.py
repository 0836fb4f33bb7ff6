"""From the final weights of attention to the finite and directional parts they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.checks import check_flags, check_kinds, check_number
from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius, Geometry
from attractor.margin._solve import solve
from attractor.margin.decomposition import Decomposition
from attractor.margin.problem import MarginProblem
from attractor.precision import as_float64
from attractor.selection import Selection
from attractor.tokens import Tokens


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
    """Finite and directional part that the final weights of attention stand for.

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
    finite = MarginProblem(
        problem.left,
        problem.right,
        ratios,
        problem.equality,
        problem.equality & problem.present,
        sequence=problem.sequence,
        query=problem.query,
        token=problem.token,
    )
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
    instance, slot = np.nonzero(whole.equality & whole.present)
    assert whole.sequence is not None and whole.query is not None and whole.token is not None
    sequence, query, token = (
        numbers[instance, slot] for numbers in (whole.sequence, whole.query, whole.token)
    )
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
    ratios[instance, slot] = found
    return ratios.reshape(problem.bounds.shape)
