"""Margin problems, their solutions, and what those solutions prove."""

from attractor.margin.local_optimality import LocalOptimality, check_local_optimality
from attractor.margin.problem import MarginProblem
from attractor.margin.solution import Solution
from attractor.margin.solve import solve

__all__ = ["LocalOptimality", "MarginProblem", "Solution", "check_local_optimality", "solve"]
