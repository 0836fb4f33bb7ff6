"""What valid calls are made of, each made when first needed: as small as it can be."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

import attractor as at
from attractor import heads, prompts
from attractor.analysis import rates
from attractor.corpora import (
    Corpus,
    collocation,
    corpus_structure,
    distinct_samples,
    linear as decoders,
    mechanics,
    partial_orders,
    token_priority_graphs,
    train_two_stages,
)
from attractor.datasets import unit_tokens
from attractor.maps import basins, bias
from attractor.prompts import in_context, measures, regression
from fuzzing.arguments.table import Fresh, Lazy

STEP = Lazy(lambda: at.normalized_gradient_descent(0.1))
W = np.random.default_rng(0).normal(size=(3, 3))

DRAWN = Lazy(lambda: unit_tokens(2, 3, 3, seeds=[0]))
TOKENS = Lazy(lambda: DRAWN.value[0][0])
HEAD = Lazy(lambda: at.LinearHead(DRAWN.value[1].weight[0]))
SELECTION = Lazy(lambda: at.optimal_tokens(TOKENS.value, HEAD.value))
PROBLEM = Lazy(lambda: at.MarginProblem.from_selection(TOKENS.value, SELECTION.value))
SOLUTION = Lazy(lambda: at.solve(PROBLEM.value))
RUN = Lazy(lambda: at.train(TOKENS.value, HEAD.value, STEP.value, steps=4, seeds=2))
RUN_OF_HEADS = Lazy(
    lambda: at.train(TOKENS.value, HEAD.value, STEP.value, steps=2, parameterization="2 x W")
)
VERDICT = Lazy(lambda: at.verify(RUN.value, SOLUTION.value))

CORPUS = Lazy(lambda: Corpus.from_sentences([list("SVOP"), list("VOP"), list("OPP"), list("PSV")]))
COLLOCATION = Lazy(lambda: collocation(CORPUS.value))
ORDERS = Lazy(lambda: partial_orders(CORPUS.value, COLLOCATION.value))
GRAPHS = Lazy(lambda: token_priority_graphs(CORPUS.value))
STRUCTURE = Lazy(lambda: corpus_structure(CORPUS.value))
SAMPLES = Lazy(lambda: distinct_samples(CORPUS.value))
TWO_STAGES = Lazy(lambda: train_two_stages(CORPUS.value, steps=(2, 2)))
EMBEDDINGS = np.eye(4)

CONTEXTS = Lazy(
    lambda: decoders.random_contexts(contexts=3, dimension=4, classes=3, support=2, seed=1)
)
DECODER = Lazy(lambda: decoders.train_linear(CONTEXTS.value, at.gradient_descent(0.1), steps=3))
SUPPORT_SPACE = Lazy(lambda: decoders.support_space(CONTEXTS.value))

CONFLICTING = Lazy(
    lambda: mechanics.conflicting_corpora(1, vocabulary=4, dimension=5, length=3, samples=3)
)
CONFLICTING_CORPUS = Lazy(lambda: CONFLICTING.value.corpora[0])
CONFLICTING_EMBEDDINGS = Lazy(lambda: CONFLICTING.value.embeddings[0])
LIMITS = Lazy(
    lambda: mechanics.attention_limits(CONFLICTING_CORPUS.value, CONFLICTING_EMBEDDINGS.value)
)
CONFLICTING_GRAPHS = Lazy(lambda: token_priority_graphs(CONFLICTING_CORPUS.value))
SUBSPACE = Lazy(
    lambda: mechanics.cyclic_subspace(CONFLICTING_GRAPHS.value, CONFLICTING_EMBEDDINGS.value)
)
MASS = Lazy(
    lambda: mechanics.label_mass_tokens(CONFLICTING_CORPUS.value, CONFLICTING_EMBEDDINGS.value)
)
MASS_TOKENS = Lazy(lambda: MASS.value[0])
MASS_HEAD = Lazy(lambda: MASS.value[1])
MASS_RUN = Lazy(
    lambda: at.train(MASS_TOKENS.value, MASS_HEAD.value, STEP.value, steps=2, loss="negative_log")
)
ATTENDED = Lazy(lambda: np.full((len(CONFLICTING_CORPUS.value.labels), 3), 1 / 3))
LOCAL_LIMITS = Lazy(
    lambda: mechanics.local_limits(
        CONFLICTING_CORPUS.value, CONFLICTING_EMBEDDINGS.value, ATTENDED.value
    )
)
CONSOLE = Fresh(lambda: Console(file=io.StringIO()))

POINTS = np.array([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6], [0.2, 0.0]])
GAUSSIAN = Lazy(lambda: measures.Gaussian.isotropic(2))
UNIFORM = Lazy(lambda: measures.Uniform(1.0, 2))
EMPIRICAL = Lazy(lambda: measures.Empirical(POINTS))
COMPONENTS = Lazy(lambda: [GAUSSIAN.value, UNIFORM.value])
MIXTURE = Lazy(lambda: measures.Mixture([0.5, 0.5], COMPONENTS.value))
PROMPT_HEAD = Lazy(lambda: prompts.AttentionHead(np.eye(2), np.eye(2)))
ROW_CONCENTRATION = Lazy(lambda: prompts.row_concentration([[1.0, 0.0, -1.0], [2.0, 0.5, 0.0]]))
ERROR_TABLE = Lazy(lambda: prompts.error_table([10.0]))
PLANTED_HEADS = Lazy(lambda: heads.planted_heads(8))
AUDIT = Lazy(lambda: heads.audit_heads(PLANTED_HEADS.value, draws=19))
CHECKPOINTS = Lazy(lambda: [_with_a_matrix(1.0), _with_a_matrix(2.0)])
CHECKPOINT_AUDIT = Lazy(lambda: heads.audit_checkpoints(CHECKPOINTS.value, draws=19))
TESTED_HEADS = Lazy(lambda: heads.planted_heads(120))
TESTED_AUDIT = Lazy(
    lambda: heads.audit_heads(TESTED_HEADS.value, draws=19, heads=[(1, 0)], sink_positions=0)
)
PROMPT_LENGTH = Lazy(lambda: prompts.prompt_length(PROMPT_HEAD.value, GAUSSIAN.value, POINTS))
TASK = Lazy(lambda: regression.RegressionTask(np.eye(2)))
SCALAR_TASK = Lazy(lambda: regression.RegressionTask(np.eye(1)))
BLOCKS = Lazy(lambda: regression.balanced_initialization(np.eye(2), 0.1))
IN_CONTEXT = Lazy(
    lambda: regression.train_in_context(TASK.value, length=5.0, steps=1, batch=4, held_out=8)
)
IN_CONTEXT_TASK = Lazy(lambda: in_context.LinearRegression(TASK.value))
TASK_SAMPLE = Lazy(lambda: IN_CONTEXT_TASK.value.sample(4, 4))
PROMPTS_LAW = Lazy(lambda: TASK_SAMPLE.value.law(2.0))
START = Lazy(lambda: in_context.initial_head(3))
SQUARED = Lazy(lambda: in_context.SQUARED)
TRANSFER = Lazy(
    lambda: in_context.risk_transfer(IN_CONTEXT_TASK.value, [2], [0.0, 0.5], tasks=4, held_out=4)
)
IN_CONTEXT_RUNS = Lazy(lambda: regression.InContextRuns((IN_CONTEXT.value,)))
LEADING_ORDER = Lazy(lambda: regression.leading_order(TASK.value, BLOCKS.value))
BLOCK_FLOW = Lazy(lambda: regression.infinite_flow(TASK.value, 0.1, [0.0, 1.0]))

IDENTITY = Lazy(lambda: lambda state: state)
WATCHED = Lazy(lambda: heads.WatchedHead("head", IDENTITY.value, TOKENS.value))
MONITOR = Fresh(lambda: heads.HeadMonitor(WATCHED.value))


def _with_a_matrix(of_width: float) -> heads.Captured:
    """A head with known matrices on four sequences of three tokens."""
    random = np.random.default_rng(0)
    keys, queries = random.normal(size=(4, 3, 2)), random.normal(size=(4, 2))
    query = np.array([[[1.0, 0.0], [0.0, of_width]]])
    made = heads.Projections(query=query, key=np.eye(2)[None])
    return heads.Captured.from_arrays(keys, queries @ query[0].T, projections=made)


def _monitored() -> heads.HeadMonitor:
    watching = MONITOR.value
    watching.record(1, W)
    return watching


MONITORED = Lazy(_monitored)

SQUARE = Lazy(lambda: lambda prediction, label: (prediction - label) ** 2)
MULTIPLIERS = Lazy(lambda: np.zeros(PROBLEM.value.bounds.shape))
TOKENS_OF_ONE = Lazy(lambda: TOKENS.value if TOKENS.value.instances is None else TOKENS.value[0])
SELECTION_OF_ONE = Lazy(lambda: at.optimal_tokens(TOKENS_OF_ONE.value, HEAD.value))
PROBLEM_OF_ONE = Lazy(
    lambda: at.MarginProblem.from_selection(TOKENS_OF_ONE.value, SELECTION_OF_ONE.value)
)
SOLUTION_OF_ONE = Lazy(lambda: at.solve(PROBLEM_OF_ONE.value))
CERTIFIED_CONCENTRATION = Lazy(lambda: prompts.certified_concentration(SOLUTION_OF_ONE.value))
WEIGHTS = Lazy(lambda: np.full((2, 1, 3), 1 / 3))
CONE = Lazy(lambda: at.attracting_cone(TOKENS.value, HEAD.value, SELECTION.value))
DECOMPOSITION = Lazy(lambda: at.decompose(TOKENS.value, WEIGHTS.value))
RATES = Lazy(lambda: rates.fit_rates(VERDICT.value))
LAW = Lazy(lambda: rates.fit_rate(np.arange(1, 101), 1.0 / np.arange(1, 101)[None]).law)
SEVERAL = Lazy(lambda: unit_tokens(2, 3, 3, seeds=6))
SEVERAL_TOKENS = Lazy(lambda: SEVERAL.value[0])
SEVERAL_HEADS = Lazy(lambda: SEVERAL.value[1])
METHODS = Lazy(lambda: [bias.Method("descent", STEP.value)])
BIAS = Lazy(
    lambda: bias.bias_matrix(
        SEVERAL_TOKENS.value,
        SEVERAL_HEADS.value,
        methods=METHODS.value,
        norms=[at.Frobenius()],
        steps=3,
    )
)
PLANE = (np.eye(3), np.diag([1.0, -1.0, 0.0]))
LABEL_SOLUTION = Lazy(lambda: at.solve(at.label_problem(TOKENS.value, SELECTION.value)))
ONE = Lazy(lambda: (TOKENS_OF_ONE.value, HEAD.value, STEP.value))
BASIN_MAP = Lazy(lambda: basins.basin_map(*ONE.value, plane=PLANE, steps=3, resolution=2))
BASIN_SHARES = Lazy(lambda: basins.basin_shares(*ONE.value, steps=3, starts=4))
