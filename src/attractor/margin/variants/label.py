"""The margin problem of a linear head: labels separated by the selected tokens alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Frobenius
from attractor.margin.problem import MarginProblem, check_tokens_kept
from attractor.margin.selection import Selection
from attractor.margin.solution import Solution
from attractor.support.checks import check_choice, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

HEAD = "head"
"""Name of the matrix that label problems predict."""
_LARGEST_GAP = 1e-6
"""Relative duality gap beyond which slacks say nothing of the exact solution."""
_ROUNDINGS = 16.0
"""Slack that values have to rounding, in units of it."""
_MOST_ROWS = 200
"""Rows up to which slacks are computed in fractions."""


def label_problem(tokens: Tokens, selection: Selection, *, ties: str = "refuse") -> MarginProblem:
    """The problem whose solution separates the labels by the selected tokens (label SVM).

        min ||v||   subject to   y_ik v^T r_ik >= 1,   r_ik the value of the selected token,

    for every query k of every sequence i, but for rows of weight zero. The matrix sought is the
    column v. Source: *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), joint
    training of head and prompt.

    Args:
        tokens: The data set, with labels -1 and +1.
        selection: One token for each row, with the same leading axes.
        ties: ``"refuse"`` rows with several tokens, or keep these ``"equal"``: attention then
            returns the mean of their values.

    Raises:
        InvalidInputError: If the tokens carry no labels or others than -1 and +1, or the
            selection does not fit them or keeps several tokens of a row, if that is refused.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> problem = at.label_problem(tokens, at.optimal_tokens(tokens, head))
        >>> at.solve(problem).W.T.round(6)
        array([[ 1., -0.]])
    """
    check_kinds(tokens=(tokens, Tokens), selection=(selection, Selection))
    labels = tokens.labels
    if labels is None or not (np.abs(labels) == 1).all():
        found = "they carry no labels" if labels is None else "some labels are not -1 or +1"
        raise InvalidInputError("tokens", found, "Give every query the label -1 or +1")
    check_choice("ties", ties, ("refuse", "equal"))
    if ties == "refuse":
        check_tokens_kept(tokens, selection)
        chosen = selection.mask.argmax(-1)[..., None]
        returned = np.take_along_axis(tokens.values, chosen, axis=-2)
    else:
        shares = selection.mask / selection.mask.sum(-1, keepdims=True)
        returned = shares @ tokens.values
    signed = labels[..., None] * returned
    rows = (*signed.shape[:-3], -1)
    sequence, query = np.indices(labels.shape[-2:])
    left = signed.reshape(*rows, signed.shape[-1])
    return MarginProblem(
        left,
        np.ones((*left.shape[:-1], 1)),
        present=True if tokens.weights is None else tokens.weights.reshape(rows) > 0,
        sequence=sequence.ravel(),
        query=query.ravel(),
        matrix=HEAD,
    )


def label_support(solution: Solution) -> Bool[np.ndarray, "*instances sequence query"]:
    """Rows at the smallest label margin: ``y_ik v^T r_ik = 1``.

    Slacks decide, as rows at the margin may have a zero multiplier. Rows count whose slack is no
    more than ``||r_ik|| delta``, where the duality gap proves ``||v - v*|| <= delta``: all others
    are beyond the margin. In the Frobenius norm those within that doubt are then decided in
    fractions, to the rounding of values, if those with multipliers show v to be the shortest.
    Without a bound ``delta`` (l_p with p = 1 or p > 2), those of ``Solution.support`` count. Where
    solutions are not unique the rows are those of the solution found.

    Args:
        solution: A solution of a label problem.

    Returns:
        A boolean for each row; False throughout where no solution with a gap of at most 1e-6 is
        at hand.

    Raises:
        InvalidInputError: If the solution is one of another problem.
    """
    check_kinds(solution=(solution, Solution))
    problem = solution.problem.batched()
    if problem.matrix != HEAD or problem.sequence is None or problem.query is None:
        raise InvalidInputError(
            "solution", "its problem is not one of labels", "Solve label_problem(tokens, selection)"
        )
    # All unitarily invariant norms of a column are its length.
    column = Frobenius() if solution.geometry.unitarily_invariant else solution.geometry
    certificate = solution.certificate
    distance = [
        column.distance_to_solution(float(value), float(gap)) + float(apart)
        for value, gap, apart in zip(
            certificate.value, certificate.gap, certificate.distance, strict=True
        )
    ]
    slack = problem.margins(solution.W.reshape(len(problem), *problem.shape)) - problem.bounds
    with np.errstate(invalid="ignore"):  # no distance is known where nothing was solved
        doubt = np.linalg.norm(problem.left, axis=-1) * np.reshape(distance, (-1, 1))
    solved = (certificate.gap <= _LARGEST_GAP)[:, None]
    support = np.where(np.isfinite(doubt), slack <= doubt, certificate.support) & solved
    if isinstance(column, Frobenius):
        weights = np.reshape(solution.multipliers, slack.shape)
        for i in range(len(problem)):
            _decide(support[i], slack[i], problem.left[i], problem.present[i], weights[i])
    n, k = (int(numbers.max()) + 1 for numbers in (problem.sequence, problem.query))
    lead = () if solution.problem.instances is None else (len(problem),)
    return support.reshape(*lead, n, k)


def _decide(
    support: Bool[np.ndarray, "m"],
    slack: Float[np.ndarray, "m"],
    left: Float[np.ndarray, "m d"],
    present: Bool[np.ndarray, "m"],
    multipliers: Float[np.ndarray, "m"],
) -> None:
    """Takes rows that are beyond the margin in fractions out of a support, in place."""
    lengths = np.linalg.norm(left, axis=-1)
    shortest = lengths[support & present].min(initial=np.inf)  # no more than 1 over that of v
    rounding = _ROUNDINGS * np.finfo(float).eps * lengths / shortest
    if not (support & present & (slack > rounding)).any() or present.sum() > _MOST_ROWS:
        return
    for share in (1e-9, 1e-6, 1e-3):
        held = np.flatnonzero(present & (multipliers > share * multipliers.max()))
        found = _exact_slack(left[present], np.searchsorted(np.flatnonzero(present), held))
        if found is not None and (found >= -rounding[present]).all():
            support[present] = found <= rounding[present]
            return


def _exact_slack(
    left: Float[np.ndarray, "m d"], held: Int[np.ndarray, "k"]
) -> Float[np.ndarray, "m"] | None:
    """``r_j^T v - 1`` for the shortest v that has the margin 1 in some rows, computed in fractions.

    None where another v is shorter and has at least that margin in these rows.
    """
    rows = [[Fraction(float(entry)) for entry in row] for row in left]
    chosen = [rows[j] for j in held]
    table = [[_dot(one, other) for other in chosen] + [Fraction(1)] for one in chosen]
    free = []
    for pivot in range(len(table)):
        if not table[pivot][pivot]:  # it follows from the rows before, and needs no multiplier
            free.append(pivot)
            continue
        for i, other in enumerate(table):
            if i != pivot and other[pivot]:
                factor = other[pivot] / table[pivot][pivot]
                table[i] = [x - factor * y for x, y in zip(other, table[pivot], strict=True)]
    weights = [Fraction(0) if j in free else row[-1] / row[j] for j, row in enumerate(table)]
    if min(weights) < 0:
        return None
    v = [_dot(weights, column) for column in zip(*chosen, strict=True)]
    return np.array([float(_dot(row, v) - 1) for row in rows])


def _dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(first, second, strict=True)), Fraction(0))
