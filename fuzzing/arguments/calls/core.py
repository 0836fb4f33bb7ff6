"""Calls of tokens, selections, heads, losses, parameterizations, geometries and margin problems."""

from __future__ import annotations

from collections.abc import Iterator

import equinox as eqx
import jax
import numpy as np

import attractor as at
from attractor.attention import heads, losses, multi_head, parameterization
from attractor.geometry import Block, get_geometry
from fuzzing.arguments import examples as ex
from fuzzing.arguments.table import Call, Lazy

KEYS = np.random.default_rng(1).normal(size=(2, 3, 3))
QUERIES = np.random.default_rng(2).normal(size=(2, 3))
LABELS = np.array([1.0, -1.0])
ARRAYS = {
    "keys": "array",
    "queries": "array",
    "labels": "array none",
    "mask": "array mask none",
    "values": "array none",
    "weights": "array none",
    "instance_numbers": "array none",
}


MEASURED = {
    "takes": {"W": "array nan", "weights": "array nan", "multipliers": "array nan",
              "norm": "real array nan"},
    "nan": True,
}  # fmt: skip
"""What is measured of matrices that diverged is NaN."""
NAMED = {
    "blames": dict.fromkeys(("weight", "penalty", "hidden", "module", "input_dimension"), "head")
}
"""Heads name themselves: their arrays have other names in files."""


def calls() -> Iterator[Call]:
    """One call of each."""
    yield from _tokens()
    yield from _attention()
    yield from _margin()
    yield Call(at.use_threads, count=2)


def _tokens() -> Iterator[Call]:
    keys = {"keys": KEYS, "labels": LABELS, "takes": ARRAYS}
    yield Call(at.Tokens, **keys, queries=QUERIES)
    yield Call(at.Tokens.causal, keys=KEYS, takes=ARRAYS)
    yield Call(at.Tokens.cross_attention, **keys, queries=QUERIES)
    yield Call(at.Tokens.prompt_vector, **keys)
    yield Call(at.Tokens.self_attention, **keys)
    yield Call(at.Tokens.scores, self=ex.TOKENS, W=ex.W, **MEASURED)
    yield Call(at.Tokens.adjoint, self=ex.TOKENS, weights=np.zeros((2, 1, 3)), **MEASURED)
    yield Call(
        at.Selection.from_index, tokens=ex.TOKENS, index=np.zeros((2, 1), int),
        takes={"index": "array count"}, blames={"index": "selection"},
    )  # fmt: skip
    yield Call(at.attended_tokens, tokens=ex.TOKENS, W=ex.W, takes={"W": "array nan"})
    data = {"tokens": ex.TOKENS, "head": ex.HEAD, "blames": {"tokens": "head"}}
    yield Call(at.optimal_tokens, **data)
    yield Call(at.token_scores, **data)


def _attention() -> Iterator[Call]:
    weight = {"weight": "array none", "penalty": "array real", "hidden": "array", "matrix": "array"}
    v = np.array([1.0, -1.0, 0.5])
    yield Call(heads.LinearHead, weight=v, takes=weight, **NAMED)
    yield Call(heads.VocabularyHead, weight=np.eye(3), takes=weight, **NAMED)
    yield Call(heads.ConcaveHead, weight=v, penalty=0.1, takes=weight, **NAMED)
    yield Call(heads.ReLUHead, hidden=np.eye(3), takes=weight, **NAMED)
    yield Call(
        heads.ValueMatrix, matrix=np.eye(3), head=ex.HEAD, takes=weight,
        blames={"matrix": "head"},
    )  # fmt: skip
    yield Call(heads.PredictionHeads, each=Lazy(lambda: [ex.HEAD.value] * 2), **NAMED)
    module = Lazy(lambda: eqx.nn.Linear(3, "scalar", key=jax.random.key(0)))
    yield Call(heads.ModuleHead, module=module, input_dimension=3, **NAMED)
    yield Call(losses.UserLoss, function=ex.SQUARE)
    yield Call(losses.get_loss, loss="logistic")
    yield Call(multi_head.get_parameterization, parameterization="W")
    yield Call(multi_head.MultiHead)
    yield Call(parameterization.Joint, attention=Lazy(at.KeyQuery))
    yield Call(parameterization.KeyQuery)
    yield Call(parameterization.PromptVector)
    yield Call(at.Lp, p=1.5)
    yield Call(at.Schatten, p=1.5)
    yield Call(get_geometry, name="nuclear", blames={"name": "geometry"})
    yield from _blocks()


def _blocks() -> Iterator[Call]:
    span = {"rows": "none", "columns": "none"}
    yield Call(Block, geometry="l_1", rows=(0, 2), columns=(0, None, 1), weight=2.0, takes=span)
    yield Call(Block.from_text, text="2 spectral[0:2]", blames={"text": "geometry"})
    for kind in (at.BlockMaximum, at.BlockSum):
        yield Call(kind.each, geometry="l_1", rows=2, columns=1, takes=span)


def _margin() -> Iterator[Call]:
    arrays = {
        "left": "array", "right": "array", "bounds": "array", "equality": "array mask flag",
        "present": "array mask flag", "sequence": "array none", "query": "array none",
        "token": "array none",
    }  # fmt: skip
    yield Call(at.MarginProblem, left=np.eye(3), right=np.eye(3), takes=arrays)
    problem = {"self": ex.PROBLEM}
    yield Call(at.MarginProblem.apply_adjoint, **problem, multipliers=ex.MULTIPLIERS, **MEASURED)
    yield Call(at.MarginProblem.margins, **problem, W=ex.W, **MEASURED)
    selected = {"tokens": ex.TOKENS, "selection": ex.SELECTION}
    either = {"tokens": "selection head", "selection": "tokens"}
    yield Call(at.MarginProblem.from_selection, **selected, blames=either)
    several = Lazy(lambda: [ex.SELECTION.value] * 2)
    yield Call(
        at.MarginProblem.from_heads, tokens=ex.TOKENS, selections=several,
        blames={"tokens": "selections", "selections": "tokens selection"},
    )  # fmt: skip
    yield Call(at.split_heads, W=np.eye(4), heads=2, arrangement="stacked", **MEASURED)
    scored = {**selected, "head": ex.HEAD, "blames": either}
    yield Call(at.Solution.save_certificate, self=ex.SOLUTION, path="solution.npz")
    yield Call(at.AttractingCone.contains, self=ex.CONE, W=ex.W, **MEASURED)
    for method in (
        at.Decomposition.correlation,
        at.Decomposition.multiplier,
        at.Decomposition.nearest,
    ):
        yield Call(method, self=ex.DECOMPOSITION, W=ex.W, **MEASURED)
    yield Call(
        at.Decomposition.closed_form_correlation, self=ex.DECOMPOSITION, W=0 * ex.W, **MEASURED
    )
    yield Call(at.Decomposition.predict, self=ex.DECOMPOSITION, norm=2.0, **MEASURED)
    undefined = {"nan": True}  # where a row has no support token
    yield Call(at.attracting_cone, **scored, **undefined)
    yield Call(at.check_local_optimality, **scored, **undefined)
    yield Call(
        at.decompose, tokens=ex.TOKENS, weights=ex.WEIGHTS, takes={"weights": "array"},
        blames={"tokens": "weights", "negligible": "threshold"},
    )  # fmt: skip
    yield Call(at.enumerate_selections, tokens=ex.TOKENS)
    yield Call(at.label_problem, **selected, blames=either)
    yield Call(at.label_support, solution=ex.LABEL_SOLUTION)
    yield Call(at.locally_optimal_selections, tokens=ex.TOKENS_OF_ONE, head=ex.HEAD)
    yield Call(
        at.rate_ratio_direction, **selected, ratio=0.5, takes={"ratio": "real array"},
        blames=either, nan=True,
    )  # fmt: skip
    yield Call(
        at.relaxed_problem, **selected, supports=np.ones((2, 1), bool),
        takes={"supports": "array mask"}, blames=either,
    )  # fmt: skip
    yield Call(at.solve, problem=ex.PROBLEM, takes={"start": "array none"})
    yield Call(at.solve_factorized, problem=ex.PROBLEM_OF_ONE, width=1, starts=1)
    yield Call(
        at.solve_several,
        tokens=ex.TOKENS_OF_ONE,
        optimal=ex.SELECTION_OF_ONE,
        blames={"tokens": "optimal"},
    )
    yield Call(at.tie_classes, **scored)
