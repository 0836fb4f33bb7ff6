"""Margin problems, their solutions, and what those solutions prove."""

from attractor.margin.census import SelectionCensus
from attractor.margin.decompose import decompose
from attractor.margin.decomposition import Decomposition
from attractor.margin.enumeration import enumerate_selections, locally_optimal_selections
from attractor.margin.factorized import FactorizedSolution, solve_factorized
from attractor.margin.local_optimality import LocalOptimality, check_local_optimality
from attractor.margin.problem import MarginProblem
from attractor.margin.sensitivity import Sensitivity
from attractor.margin.solution import Solution
from attractor.margin.solve import solve

__all__ = [
    "Decomposition",
    "FactorizedSolution",
    "LocalOptimality",
    "MarginProblem",
    "SelectionCensus",
    "Sensitivity",
    "Solution",
    "check_local_optimality",
    "decompose",
    "enumerate_selections",
    "locally_optimal_selections",
    "solve",
    "solve_factorized",
]
