"""The margin problem of attention beside a head that not every sequence supports."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from attractor.margin.problem import MarginProblem, check_tokens_kept, derived
from attractor.margin.selection import Selection
from attractor.support.checks import check_kinds
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError
from attractor.support.precision import as_plain
from attractor.tokens import Tokens


def relaxed_problem(tokens: Tokens, selection: Selection, supports: Any) -> MarginProblem:
    """The problem of attention trained jointly with a head (relaxed Att-SVM).

        min ||W||   subject to   (x_i,alpha - x_it)^T W z_ik >= 1   in rows of label support,
                                                             >= 0   in all others.

    A row with slack in its label margin can afford attention that does not saturate as fast as
    that of the others, but not attention to another token. Source: *Max-Margin Token Selection in
    Attention Mechanism* (arXiv 2306.13596), joint regularization path of head and prompt.

    Args:
        tokens: The data set.
        selection: One token for each row, with the same leading axes.
        supports: True for rows at the smallest label margin, ``(*instances, n, K)``, or without
            the axis K where each sequence has one query: what ``label_support`` returns. Where
            no row with a choice is True the zero matrix is the solution.

    Raises:
        InvalidInputError: If the supports do not fit the tokens, or the selection does not or
            keeps several tokens of a row.
    """
    check_kinds(tokens=(tokens, Tokens), selection=(selection, Selection))
    rows = tokens.mask.shape[:-1]
    given = as_plain("supports", supports)
    if rows[-1] == 1 and given.shape == rows[:-1]:
        given = given[..., None]
    if given.shape != rows or given.dtype != bool:
        raise InvalidInputError(
            "supports",
            f"the shape is {given.shape} and the data type {given.dtype}",
            f"Give booleans {rows}: one for each row",
        )
    check_tokens_kept(tokens, selection)
    with warnings.catch_warnings():  # a copy of the selected token harms support rows alone
        warnings.simplefilter("ignore", DuplicateTokensWarning)
        problem = MarginProblem.from_selection(tokens, selection)
    return relaxed(problem, given)


def relaxed(problem: MarginProblem, supports: np.ndarray) -> MarginProblem:
    """The problem with a bound of zero in all rows but those of label support.

    Args:
        problem: Constraints that come from tokens.
        supports: ``(*instances, n, K)``.
    """
    bounds = np.where(at_rows(supports, problem), problem.bounds, 0.0)
    return derived(problem, bounds=bounds)


def at_rows(numbers: np.ndarray, problem: MarginProblem) -> np.ndarray:
    """The number of the row that each constraint is about; that of the last in empty slots.

    Args:
        numbers: ``(*instances, n, K)``.
        problem: Constraints that come from tokens.
    """
    assert problem.sequence is not None and problem.query is not None
    if problem.instances is None:
        return numbers[problem.sequence, problem.query]
    return numbers[np.arange(len(problem))[:, None], problem.sequence, problem.query]
