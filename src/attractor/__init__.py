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

from attractor.analysis import Verdict, fit_rate, verify
from attractor.attention import (
    Exponential,
    Linear,
    LinearHead,
    Logistic,
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
    Decomposition,
    FactorizedSolution,
    MarginProblem,
    SelectionCensus,
    Sensitivity,
    Solution,
    check_local_optimality,
    decompose,
    enumerate_selections,
    locally_optimal_selections,
    solve,
    solve_factorized,
)
from attractor.selection import Selection, attended_tokens, optimal_tokens, token_scores
from attractor.tokens import Tokens
from attractor.training import (
    Optimizer,
    Trajectory,
    declare,
    gradient_descent,
    normalized_gradient_descent,
    train,
)

__version__ = "0.1.0"

__all__ = [
    "AttractorError",
    "AttractorWarning",
    "Decomposition",
    "Exponential",
    "FactorizedSolution",
    "FileFormatError",
    "Frobenius",
    "Geometry",
    "InvalidInputError",
    "Linear",
    "LinearHead",
    "Logistic",
    "Lp",
    "MarginProblem",
    "Nuclear",
    "Optimizer",
    "Schatten",
    "Selection",
    "SelectionCensus",
    "Sensitivity",
    "Solution",
    "Spectral",
    "Status",
    "Tokens",
    "Trajectory",
    "TrialStatus",
    "Verdict",
    "attended_tokens",
    "check_local_optimality",
    "declare",
    "decompose",
    "enumerate_selections",
    "fit_rate",
    "gradient_descent",
    "load",
    "locally_optimal_selections",
    "normalized_gradient_descent",
    "optimal_tokens",
    "softmax_attention",
    "solve",
    "solve_factorized",
    "token_scores",
    "train",
    "verify",
]

_SUBMODULES = ("analysis", "attention", "datasets", "geometry", "margin", "plots", "report")


def __getattr__(name: str) -> ModuleType:
    """Imports submodules on first use, so that ``import attractor`` stays light."""
    if name in _SUBMODULES:
        return importlib.import_module(f"attractor.{name}")
    raise AttributeError(f"module 'attractor' has no attribute {name!r}")
