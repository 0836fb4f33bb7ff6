"""Margin problems, their solutions, and what those solutions prove."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.margin._solve import solve as solve
    from attractor.margin.algorithms import register_methods as register_methods
    from attractor.margin.methods import Task as Task
    from attractor.margin.problem import MarginProblem as MarginProblem
    from attractor.margin.selections._attracting_cone import (
        AttractingCone as AttractingCone,
        attracting_cone as attracting_cone,
    )
    from attractor.margin.selections.enumeration import (
        SelectionCensus as SelectionCensus,
        enumerate_selections as enumerate_selections,
        locally_optimal_selections as locally_optimal_selections,
    )
    from attractor.margin.selections.local_optimality import (
        LocalOptimality as LocalOptimality,
        check_local_optimality as check_local_optimality,
    )
    from attractor.margin.selections.tie_classes import tie_classes as tie_classes
    from attractor.margin.solution import Solution as Solution
    from attractor.margin.variants.decomposition import (
        Decomposition as Decomposition,
        decompose as decompose,
    )
    from attractor.margin.variants.factorized import (
        FactorizedSolution as FactorizedSolution,
        solve_factorized as solve_factorized,
    )
    from attractor.margin.variants.label import (
        label_problem as label_problem,
        label_support as label_support,
    )
    from attractor.margin.variants.rate_ratio import (
        RateRatioDirection as RateRatioDirection,
        rate_ratio_direction as rate_ratio_direction,
    )
    from attractor.margin.variants.relaxed import relaxed_problem as relaxed_problem
    from attractor.margin.variants.several import (
        SeveralSolution as SeveralSolution,
        solve_several as solve_several,
    )

import_on_first_use(__name__)
