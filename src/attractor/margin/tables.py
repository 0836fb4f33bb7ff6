"""What a solution says of itself, in rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from attractor.records import Rows

if TYPE_CHECKING:
    from attractor.margin.solution import Solution


def solution_rows(solution: Solution) -> tuple[str, Rows]:
    """Title and rows that describe a solution."""
    problem = solution.problem
    d, e = problem.shape
    if problem.instances is not None:
        return _batch_rows(solution)
    title = f"Solution: {solution.status.message}"
    rows = [
        ("problem", f"{int(problem.constraints)} constraints on a {d} x {e} matrix"),
        ("geometry", solution.geometry.name),
    ]
    if np.isnan(solution.W).any():
        conflict = solution.conflict
        rows += [("norm at least", f"{solution.norm_lower_bound:.4g}")]
        if conflict.size:
            rows += [
                ("Farkas residual", f"{solution.farkas_residual:.1e}"),
                ("in conflict", f"{conflict.size} constraints: {_some(conflict)}"),
            ]
        return title, rows
    support = int(solution.support.sum())
    rows += [
        ("norm", f"{solution.norm:.10g}"),
        ("lower bound", f"{solution.dual_value:.10g}"),
        ("smallest margin", f"{solution.margin:.10g}"),
        ("relative gap", f"{solution.gap:.1e}"),
        ("KKT residual", f"{solution.kkt_residual:.1e}"),
        ("support", f"{support} of {int(problem.constraints)} constraints"),
        ("rank", _rank_in_words(solution)),
    ]
    if not solution.geometry.unique:
        words = {"not unique": "one of many with this norm"}
        uniqueness = str(solution.uniqueness)
        rows.append(("solution", words.get(uniqueness, uniqueness)))
    return title, rows


def _batch_rows(solution: Solution) -> tuple[str, Rows]:
    problem = solution.problem
    d, e = problem.shape
    counts = Counter(str(status) for status in solution.status)
    most = int(problem.constraints.max(initial=0))
    rows = [
        ("problems", f"{len(problem)} of up to {most} constraints on a {d} x {e} matrix"),
        ("geometry", solution.geometry.name),
        ("status", ", ".join(f"{name}: {count}" for name, count in counts.most_common())),
    ]
    solved = np.isfinite(solution.value)
    if solved.any():
        norms, gaps = solution.norm[solved], solution.gap[solved]
        rows += [
            ("norm", f"{norms.min():.4g} to {norms.max():.4g}, median {np.median(norms):.4g}"),
            ("relative gap", f"worst {gaps.max():.1e}"),
        ]
    return f"Solutions of {len(problem)} margin problems", rows


def _rank_in_words(solution: Solution) -> str:
    """The rank, and what is known of singular values beyond it."""
    rank, evidence = int(solution.rank), solution.rank_evidence
    if rank < 0:
        return "not known"
    if rank in (0, min(solution.problem.shape)):
        return str(rank)
    if evidence is None:
        return f"at least {rank}"
    return f"{rank}; all other singular values add up to at most {evidence.tail_bound:.1e}"


def _some(numbers: np.ndarray, most: int = 8) -> str:
    """The first few numbers."""
    shown = ", ".join(str(int(number)) for number in numbers[:most])
    return shown + (", ..." if numbers.size > most else "")
