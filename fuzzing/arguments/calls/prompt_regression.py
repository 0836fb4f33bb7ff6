"""Calls of ``attractor.prompts.regression``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor.prompts import regression
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call

TIMES = np.array([0.0, 1.0])
TWO = np.eye(2)


def calls() -> Iterator[Call]:
    """One call of each."""
    task = {"task": ex.TASK}
    blocks = {**task, "blocks": ex.BLOCKS, "blames": {"blocks": "key_query"}}
    any_number = {"risk": "real array"}
    yield Call(regression.RegressionTask, covariance=TWO)
    yield Call(
        regression.RegressionTask.mean_squared_error, self=ex.TASK, risk=0.5, takes=any_number
    )
    yield Call(regression.RegressionTask.official)
    yield Call(regression.RegressionTask.equals, self=ex.TASK, other=ex.TASK)
    yield Call(regression.RegressionTask.token_covariance, self=ex.TASK, weights=np.ones(2))
    yield Call(regression.Blocks.of, score_matrix=np.eye(3), value_matrix=np.eye(3)[2:])
    yield Call(regression.Blocks.flat_heads, self=ex.BLOCKS, dimension=2)
    yield Call(regression.InContextTrajectory.blocks, self=ex.IN_CONTEXT)
    yield Call(regression.InContextTrajectory.save, self=ex.IN_CONTEXT, path="run.nc")
    yield Call(regression.InContextTrajectory.load, path=given.IN_CONTEXT_FILE)
    yield Call(regression.InContextRuns.save, self=ex.IN_CONTEXT_RUNS, folder="runs")
    yield Call(regression.InContextRuns.load, folder=given.IN_CONTEXT_FOLDER)
    yield Call(regression.LeadingOrder.risk, self=ex.LEADING_ORDER, length=10.0)
    yield Call(regression.BlockFlow.time_to_risk, self=ex.BLOCK_FLOW, level=0.9)
    yield Call(regression.balanced_initialization, covariance=TWO, scale=0.1)
    yield Call(regression.drift_time, **task, first=1.6, last=1.8)
    yield Call(
        regression.finite_flow, **task, length=10.0, initial=0.1, times=TIMES, tolerance=1e-4
    )
    yield Call(regression.finite_prompt_limit, **task)
    yield Call(regression.infinite_flow, **task, initial=0.1, times=TIMES)
    yield Call(regression.infinite_risk, **blocks)
    yield Call(regression.initial_scale_bounds, covariance=TWO)
    yield Call(
        regression.isotropic_finite_flow, dimension=2, length=10.0, scale=0.1, times=TIMES,
        tolerance=1e-4,
    )  # fmt: skip
    yield Call(regression.isotropic_optimum, dimension=2, length=100.0)
    yield Call(regression.kac_murdock_szego, dimension=2, correlation=0.5)
    yield Call(regression.leading_order, **blocks)
    yield Call(
        regression.leading_order_without_labels, covariance=TWO, query_covariance=TWO,
        score_matrix=TWO, value_matrix=TWO, target=TWO,
    )  # fmt: skip
    yield Call(regression.limit_horizon, **blocks)
    yield Call(regression.linear_attention_flow, **task, initial=0.1, times=TIMES, length=10.0)
    yield Call(regression.linear_attention_optimum, **task, length=10.0)
    yield Call(regression.linear_attention_risk, **blocks, length=10.0)
    yield Call(
        regression.official_experiment,
        lengths=[5.0],
        steps=1,
        batch=4,
        held_out=8,
        skip={"settings": "train's own"},
        takes={"lengths": "sequence array"},
    )
    yield Call(regression.opposite_heads, blocks=ex.BLOCKS)
    yield Call(regression.opposite_heads_optimum, task=ex.SCALAR_TASK, length=10.0)
    yield Call(regression.ridge_risk, **task, length=5, samples=10)
    yield Call(regression.small_score_optimum, **task, length=10)
    yield Call(regression.small_score_risk, **task, product=TWO, length=10)
    yield Call(regression.softmax_optimum, task=ex.SCALAR_TASK, length=10.0)
    yield Call(regression.softmax_risk, **blocks, length=10.0)
    yield Call(
        regression.train_at_lengths, **task, lengths=[5.0], steps=1,
        takes={"lengths": "sequence array"},
    )  # fmt: skip
    yield Call(
        regression.train_in_context, **task, length=5.0, steps=1, batch=4, held_out=8,
        takes={"record": "array sequence none"}, nan=True,  # of a run that diverged
    )  # fmt: skip
    yield Call(regression.trained_limit, **task)
