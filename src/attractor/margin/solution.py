"""Solutions of margin problems: a matrix, multipliers, and what the two prove."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.geometry import Geometry, Schatten, has_norm_of
from attractor.margin.certificates.certificate import Certificate, rank_of
from attractor.margin.certificates.certificate_file import save_certificate
from attractor.margin.faces.rank import RankEvidence, certified_rank
from attractor.margin.faces.uniqueness import Uniqueness, unique_at_once, uniqueness_of
from attractor.margin.problem import MarginProblem, tokens_of
from attractor.margin.solved_once import memory
from attractor.results import Plotted, Rows, Summary
from attractor.results.labeled import labeled
from attractor.support.checks import check_path
from attractor.support.errors import InvalidInputError, Status

if TYPE_CHECKING:
    import xarray as xr


_CONTRADICTORY = (Status.INFEASIBLE, Status.OUT_OF_REACH)


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Plotted, Summary):
    """A matrix for a margin problem, multipliers, and the proof that they carry.

    Numbers below come from the certificate, which is computed from W, the multipliers and the
    problem alone. Without an axis of instances they are scalars.

    Attributes:
        W: The matrix, ``(*instances, d, e)``; NaN where none was found.
        multipliers: ``(*instances, m)``, zero in empty slots. Scaled so that
            ``||sum_j lambda_j a_j b_j^T||_dual = 1`` up to rounding; where infeasible, so that
            ``sum_j c_j lambda_j = 1``, and those whose matrix sum vanishes lie within rounding.
        status: A Status, or an object array of them.
        problem: The constraints.
        geometry: The norm.
        certificate: What is proved, with an axis of instances always.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
        >>> print(at.solve(problem, at.Lp(1.5)))
        Solution: Solved: the relative duality gap is within the tolerance.
          problem          2 constraints on a 2 x 2 matrix
          geometry         l_1.5
          norm             0.9294672742
          lower bound      0.9294672741
          smallest margin  1
          relative gap     1.8e-10
          KKT residual     1.8e-10
          support          2 of 2 constraints
          rank             2
    """

    W: Float[np.ndarray, "*instances d e"]
    multipliers: Float[np.ndarray, "*instances m"]
    status: Any
    problem: MarginProblem
    geometry: Geometry
    certificate: Certificate

    @property
    def norm(self) -> Any:
        """``||W||``; NaN where infeasible."""
        return self._get("norm")

    @property
    def value(self) -> Any:
        """Norm of a matrix proved to meet every constraint exactly: a bound on the optimum.

        It is a multiple of W, or where scaling cannot make W meet the constraints, a matrix close
        to it. Infinite where none is proved.
        """
        return self._get("value")

    @property
    def margin(self) -> Any:
        """Smallest ``a_j^T W b_j / c_j`` over inequalities with ``c_j > 0``."""
        return self._get("margin")

    @property
    def dual_value(self) -> Any:
        """What the multipliers prove: no feasible matrix has a smaller norm."""
        return self._get("dual_value")

    @property
    def norm_lower_bound(self) -> Any:
        """The dual value again: ``||W|| >= 1 / r`` for every feasible W, r the Farkas residual."""
        return self._get("dual_value")

    @property
    def dual_norm(self) -> Any:
        """``||sum_j lambda_j a_j b_j^T||_dual``."""
        return self._get("dual_norm")

    @property
    def gap(self) -> Any:
        """``(value - dual value) / value``, both proved; infinite where no value is known."""
        return self._get("gap")

    @property
    def kkt_residual(self) -> Any:
        """Largest violation of a condition for optimality."""
        return self._get("kkt_residual")

    @property
    def equality_residual(self) -> Any:
        """Largest ``|a^T W b - c| / (||a|| ||b|| ||W||)`` over equalities."""
        return self._get("equality_residual")

    @property
    def farkas_residual(self) -> Any:
        """``||sum_j lambda_j a_j b_j^T||_dual / sum_j c_j lambda_j``; zero where infeasible."""
        return self._get("farkas_residual")

    @property
    def support(self) -> Bool[np.ndarray, "*instances m"]:
        """Constraints at their bound, as far as W and the multipliers tell.

        Those are at their bound whose relative slack ``a_j^T W b_j / c_j - 1`` is at most 1e-6,
        or at most their share ``lambda_j c_j / ||W||`` of the norm: shares times slacks add up to
        less than the gap, so that such a slack is below its square root. Tiny multipliers that
        interior-point methods leave on every constraint do not count.
        """
        return self._get("support")

    @cached_property
    def rank(self) -> Any:
        """How many singular values of W stand out from what the gap leaves open; -1 if none can.

        The exact solution has at least that many, and may have smaller ones beside them. In the
        nuclear norm ``rank_evidence`` bounds what is left: all others together.
        """
        if self.rank_evidence is not None:
            return self.rank_evidence.rank
        c = self.certificate
        W = self.W if self._batched else self.W[None]
        rank = rank_of(W, c.value, c.gap, c.distance, self.geometry)
        return rank if self._batched else int(rank[0])

    @property
    def uniqueness(self) -> Any:
        """``"unique"``, ``"not unique"`` or ``"not known"``: whether other solutions exist.

        It follows from the face of the ball in which all solutions lie. In a strictly convex norm
        there is never another. Where no matrix was found it is not known.
        """
        answers = [str(answer) for answer, _ in self._uniqueness]
        return np.array(answers, dtype=object) if self._batched else answers[0]

    @property
    def other_solution(self) -> Float[np.ndarray, "*instances d e"]:
        """Another solution; NaN where none was found.

        The multipliers certify it too, to a gap of 1e-9, and no margin is short by more than that
        share of its bound.
        """
        nothing = np.full(self.W.shape[-2:], np.nan)
        others = [nothing if other is None else other for _, other in self._uniqueness]
        return np.reshape(others, self.W.shape) if self._batched else others[0]

    @cached_property
    def rank_evidence(self) -> RankEvidence | None:
        """What the multipliers prove about the rank; None in geometries other than nuclear."""
        if not (has_norm_of(self.geometry, Schatten) and self.geometry.p == 1):
            return None
        W = self.W if self._batched else self.W[None]
        multipliers = self.multipliers if self._batched else self.multipliers[None]
        evidence = certified_rank(self.problem.batched(), W, multipliers, self.certificate)
        return evidence if self._batched else evidence[0]

    @property
    def support_tokens(self) -> Bool[np.ndarray, "*instances sequence query token"]:
        """Tokens whose margin against the selected one is the smallest allowed.

        Raises:
            InvalidInputError: If the problem does not come from a selection.
        """
        problem = self.problem
        if problem.selection is None or problem.sequence is None:
            raise InvalidInputError(
                "solution",
                "its problem does not come from a selection of tokens",
                "Build the problem by MarginProblem.from_selection",
            )
        return tokens_of(problem, self.support & problem.present & ~problem.equality)

    @property
    def conflict(self) -> Any:
        """Numbers of the constraints that contradict each other, exactly or to rounding.

        Empty unless the problem is infeasible or out of reach.

        With an axis of instances, a list with one such array an instance.
        """
        if not self._batched:
            return np.flatnonzero((self.multipliers != 0) & (self.status in _CONTRADICTORY))
        return [
            np.flatnonzero((row != 0) & (status in _CONTRADICTORY))
            for row, status in zip(self.multipliers, self.status, strict=True)
        ]

    def __len__(self) -> int:
        """Number of instances."""
        return len(self.problem)

    def __getitem__(self, index: Any) -> Solution:
        """Chooses instances; a single one comes without the empty slots of its problem."""
        problem = self.problem[index]
        W, multipliers, status = self.W[index], self.multipliers[index], self.status[index]
        if isinstance(index, (int, np.integer)):
            present = self.problem.present[index]
            multipliers = multipliers[present]
            certificate = self.certificate.alone(int(index), present)
        else:
            certificate = self.certificate[index]
        return Solution(W, multipliers, status, problem, self.geometry, certificate)

    def save_certificate(self, path: str | os.PathLike[str]) -> None:
        """Writes what the solution proves as a file that anyone can check without this library.

        ``python tools/verify_certificate.py FILE`` checks it in exact arithmetic and says what
        it proves: optimality to a relative gap, infeasibility, or a lower bound on the norm.

        Args:
            path: Where to write; the file appears whole or not at all.

        Raises:
            InvalidInputError: If this holds several instances, or proves nothing.
        """
        save_certificate(self, check_path("path", path))

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        lead = ("instance",) if self._batched else ()
        per_instance = (
            "norm value margin dual_value dual_norm gap kkt_residual equality_residual "
            "farkas_residual rank"
        ).split()
        data: dict[str, Any] = {name: (lead, getattr(self, name)) for name in per_instance}
        data["W"] = ((*lead, "row", "column"), self.W)
        along = (*lead, "constraint")
        data["multipliers"] = (along, self.multipliers)
        data["support"] = (along, self.support)
        for name in ("bounds", "equality", "present", "sequence", "query", "token"):
            if getattr(self.problem, name) is not None:
                data[name] = (along, getattr(self.problem, name))
        data["status"] = (lead, texts_of(self.status))
        if not self._batched:  # of thousands of instances it would take seconds
            data["uniqueness"] = ((), str(self.uniqueness))
        return labeled(data, attributes={"geometry": self.geometry.name})

    def _picture(self) -> tuple[str, Solution]:
        return "solution_figure", self

    def _summary(self) -> tuple[str, Rows]:
        problem = self.problem
        d, e = problem.shape
        if problem.instances is not None:
            return self._batch_summary()
        title = f"Solution: {self.status.message}"
        rows = [
            ("problem", f"{int(problem.constraints)} constraints on a {d} x {e} matrix"),
            ("geometry", self.geometry.name),
        ]
        if np.isnan(self.W).any():
            conflict = self.conflict
            if self.status is Status.INFEASIBLE:  # whose bound is one over rounding
                rows += [("certificate", "Farkas multipliers, within rounding of exact ones")]
            else:
                rows += [("norm at least", f"{self.norm_lower_bound:.4g}")]
            if conflict.size:
                rows += [("in conflict", f"{conflict.size} constraints: {_some(conflict)}")]
            return title, rows
        support = int(self.support.sum())
        rows += [
            ("norm", f"{self.norm:.10g}"),
            ("lower bound", f"{self.dual_value:.10g}"),
            ("smallest margin", f"{self.margin:.10g}"),
            *_gap_in_words(self),
            ("KKT residual", f"{self.kkt_residual:.1e}"),
            ("support", f"{support} of {int(problem.constraints)} constraints"),
            ("rank", _rank_in_words(self)),
        ]
        if not self.geometry.unique:
            words = {"not unique": "one of many with this norm"}
            uniqueness = str(self.uniqueness)
            rows.append(("solution", words.get(uniqueness, uniqueness)))
        return title, rows

    def _batch_summary(self) -> tuple[str, Rows]:
        problem = self.problem
        d, e = problem.shape
        counts = Counter(str(status) for status in self.status)
        most = int(problem.constraints.max(initial=0))
        rows = [
            ("problems", f"{len(problem)} of up to {most} constraints on a {d} x {e} matrix"),
            ("geometry", self.geometry.name),
            ("status", ", ".join(f"{name}: {count}" for name, count in counts.most_common())),
        ]
        solved = np.isfinite(self.norm)
        if solved.any():
            norms, gaps = self.norm[solved], self.gap[solved]
            known = f"worst {gaps.max():.1e}" if np.isfinite(gaps).all() else "not known of all"
            rows += [
                ("norm", f"{norms.min():.4g} to {norms.max():.4g}, median {np.median(norms):.4g}"),
                ("relative gap", known),
            ]
        return f"Solutions of {len(problem)} margin problems", rows

    @cached_property
    def _uniqueness(self) -> list[tuple[Uniqueness, np.ndarray | None]]:
        problem = self.problem.batched()
        W = self.W.reshape(len(problem), *problem.shape)
        multipliers = self.multipliers.reshape(problem.bounds.shape)
        gap, shared = self.certificate.gap, memory()
        judge = uniqueness_of if shared is None else shared.uniqueness_of
        unique = unique_at_once(problem, W, multipliers, gap, self.geometry)
        return [
            (Uniqueness.UNIQUE, None)
            if unique[i]
            else judge(
                problem[i], W[i], multipliers[i][problem.present[i]], float(gap[i]), self.geometry
            )
            for i in range(len(problem))
        ]

    @property
    def _batched(self) -> bool:
        return self.problem.instances is not None

    def _get(self, name: str) -> Any:
        array = getattr(self.certificate, name)
        if self._batched:
            return array
        return array[0] if array.ndim > 1 else float(array[0])


def texts_of(status: Any) -> Any:
    """Statuses as texts: an array of them, or one."""
    return np.vectorize(str, otypes=[str])(np.asarray(status, dtype=object))[()]


def _gap_in_words(solution: Solution) -> Rows:
    """The relative gap; where it is not known, by how much W misses a constraint."""
    if np.isfinite(solution.gap):
        return [("relative gap", f"{solution.gap:.1e}")]
    violation = float(solution.certificate.violation[0])
    return [("relative gap", "not known"), ("largest violation", f"{violation:.1e}")]


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
