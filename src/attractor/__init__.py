"""Attractor: where softmax attention goes when you train it.

It computes the direction a margin problem predicts, trains the layer, certifies both, and holds
one against the other::

    import attractor as at

    tokens = at.Tokens(keys=X, queries=Z, labels=y)
    head = at.LinearHead(v)
    selection = at.optimal_tokens(tokens, head)
    solution = at.solve(at.MarginProblem.from_selection(tokens, selection), at.Frobenius())
    run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=2000, seeds=100)
    print(at.verify(run, solution))
"""

import importlib
from types import ModuleType

from attractor.analysis import Rate, Rates, Verdict, fit_rate, fit_rates, verify
from attractor.attention import (
    ConcaveHead,
    CrossEntropy,
    Exponential,
    Joint,
    KeyQuery,
    Linear,
    LinearHead,
    Logistic,
    PromptVector,
    ReLUHead,
    Squared,
    ValueMatrix,
    VocabularyHead,
    softmax_attention,
)
from attractor.errors import (
    AttractorError,
    AttractorWarning,
    FileFormatError,
    InvalidInputError,
    Status,
    TrialStatus,
)
from attractor.files import load
from attractor.geometry import Frobenius, Geometry, Lp, Nuclear, Schatten, Spectral
from attractor.margin import (
    AttractingCone,
    Decomposition,
    FactorizedSolution,
    MarginProblem,
    RateRatioDirection,
    SelectionCensus,
    Sensitivity,
    SeveralSolution,
    Solution,
    attracting_cone,
    check_local_optimality,
    decompose,
    enumerate_selections,
    label_problem,
    label_support,
    locally_optimal_selections,
    rate_ratio_direction,
    relaxed_problem,
    solve,
    solve_factorized,
    solve_several,
    tie_classes,
)
from attractor.monitor import HeadMonitor, WatchedHead
from attractor.selection import Selection, attended_tokens, optimal_tokens, token_scores
from attractor.tokens import Tokens
from attractor.training import (
    Optimizer,
    Trajectory,
    adam,
    declare,
    get_optimizer,
    gradient_descent,
    gradient_flow,
    greedy_coordinate_descent,
    in_moving_gauge,
    lion,
    mirror_descent,
    momentum,
    muon,
    normalized_gradient_descent,
    normalized_momentum,
    polyak_step,
    registered_optimizers,
    regularization_path,
    schatten_mirror_descent,
    sign_descent,
    sign_momentum,
    spectral_descent,
    steepest_descent,
    train,
)

__version__ = "0.1.0"

__all__ = [
    "AttractingCone",
    "AttractorError",
    "AttractorWarning",
    "ConcaveHead",
    "CrossEntropy",
    "Decomposition",
    "Exponential",
    "FactorizedSolution",
    "FileFormatError",
    "Frobenius",
    "Geometry",
    "HeadMonitor",
    "InvalidInputError",
    "Joint",
    "KeyQuery",
    "Linear",
    "LinearHead",
    "Logistic",
    "Lp",
    "MarginProblem",
    "Nuclear",
    "Optimizer",
    "PromptVector",
    "Rate",
    "RateRatioDirection",
    "Rates",
    "ReLUHead",
    "Schatten",
    "Selection",
    "SelectionCensus",
    "Sensitivity",
    "SeveralSolution",
    "Solution",
    "Spectral",
    "Squared",
    "Status",
    "Tokens",
    "Trajectory",
    "TrialStatus",
    "ValueMatrix",
    "Verdict",
    "VocabularyHead",
    "WatchedHead",
    "adam",
    "attended_tokens",
    "attracting_cone",
    "check_local_optimality",
    "declare",
    "decompose",
    "enumerate_selections",
    "fit_rate",
    "fit_rates",
    "get_optimizer",
    "gradient_descent",
    "gradient_flow",
    "greedy_coordinate_descent",
    "in_moving_gauge",
    "label_problem",
    "label_support",
    "lion",
    "load",
    "locally_optimal_selections",
    "mirror_descent",
    "momentum",
    "muon",
    "normalized_gradient_descent",
    "normalized_momentum",
    "optimal_tokens",
    "polyak_step",
    "rate_ratio_direction",
    "registered_optimizers",
    "regularization_path",
    "relaxed_problem",
    "schatten_mirror_descent",
    "sign_descent",
    "sign_momentum",
    "softmax_attention",
    "solve",
    "solve_factorized",
    "solve_several",
    "spectral_descent",
    "steepest_descent",
    "tie_classes",
    "token_scores",
    "train",
    "verify",
]

_SUBMODULES = (
    "analysis",
    "attention",
    "datasets",
    "geometry",
    "margin",
    "models",
    "monitor",
    "next_token",
    "plots",
    "prompt",
    "report",
    "torch",
    "training",
)


def __getattr__(name: str) -> ModuleType:
    """Imports submodules on first use, so that ``import attractor`` stays light."""
    if name in _SUBMODULES:
        return importlib.import_module(f"attractor.{name}")
    raise AttributeError(f"module 'attractor' has no attribute {name!r}")
