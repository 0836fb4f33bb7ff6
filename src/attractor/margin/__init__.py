"""Margin problems, their solutions, and what those solutions prove."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.margin._attracting_cone import AttractingCone, attracting_cone
    from attractor.margin._solve import solve
    from attractor.margin._tie_classes import tie_classes
    from attractor.margin.algorithms import register_methods
    from attractor.margin.decomposition import Decomposition, decompose
    from attractor.margin.enumeration import (
        SelectionCensus,
        enumerate_selections,
        locally_optimal_selections,
    )
    from attractor.margin.factorized import FactorizedSolution, solve_factorized
    from attractor.margin.label import label_problem, label_support
    from attractor.margin.local_optimality import LocalOptimality, check_local_optimality
    from attractor.margin.methods import Task
    from attractor.margin.problem import MarginProblem
    from attractor.margin.rate_ratio import RateRatioDirection, rate_ratio_direction
    from attractor.margin.relaxed import relaxed_problem
    from attractor.margin.sensitivity import Sensitivity
    from attractor.margin.several import SeveralSolution, solve_several
    from attractor.margin.solution import Solution

__all__ = [
    "AttractingCone",
    "Decomposition",
    "FactorizedSolution",
    "LocalOptimality",
    "MarginProblem",
    "RateRatioDirection",
    "SelectionCensus",
    "Sensitivity",
    "SeveralSolution",
    "Solution",
    "Task",
    "attracting_cone",
    "check_local_optimality",
    "decompose",
    "enumerate_selections",
    "label_problem",
    "label_support",
    "locally_optimal_selections",
    "rate_ratio_direction",
    "register_methods",
    "relaxed_problem",
    "solve",
    "solve_factorized",
    "solve_several",
    "tie_classes",
]

import_on_first_use(__name__)
