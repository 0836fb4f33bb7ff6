"""Calls of ``attractor.prompts.in_context``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor.prompts import in_context
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call

TIMES = np.array([0.0, 0.5])


def calls() -> Iterator[Call]:
    """One call of each."""
    task = {"self": ex.IN_CONTEXT_TASK}
    head = {"self": ex.TASK_SAMPLE, "head": ex.START, "loss": ex.SQUARED}
    one = {"task": ex.IN_CONTEXT_TASK}
    samples = {"train": ex.TASK_SAMPLE, "held_out": ex.TASK_SAMPLE, "loss": ex.SQUARED}
    yield Call(in_context.KnownLaw, tail_index=8.0, tilted_moments=True, query_parameter=1.0,
               reason="made up")  # fmt: skip
    yield Call(in_context.Loss, name="squared", value=in_context.SQUARED.value)
    yield Call(in_context.LinearRegression, regression=ex.TASK)
    yield Call(in_context.SingleIndexRegression)
    yield Call(in_context.FeatureRegression, blames={"inputs": "features"})
    yield Call(in_context.SingleIndex, weights=np.ones(2), label="tanh")
    yield Call(in_context.built_in)
    yield Call(in_context.negative_controls)
    yield Call(in_context.initial_head, dimension=3, blames={"outputs": "dimension"})
    yield Call(in_context.InContextTask.parameters, **task, count=2, seed=0)
    yield Call(in_context.InContextTask.sub_gaussian_parameters, **task, count=2, seed=0)
    yield Call(in_context.InContextTask.sample, **task, count=4, longest=4)
    yield Call(
        in_context.TaskSample.losses_under, **head,
        law=ex.PROMPTS_LAW, skip={"law": "a law of these tasks, from the sample"},
    )  # fmt: skip
    yield Call(in_context.TaskSample.law, self=ex.TASK_SAMPLE, length=2.0)
    yield Call(in_context.TaskSample.risk, **head)
    yield Call(in_context.TaskSample.limit_error, **head)
    yield Call(in_context.check_assumption, **one, draws=128)
    yield Call(in_context.check_loss, loss=ex.SQUARED, labels=np.ones(3))
    yield Call(in_context.decay, sigma=np.ones(3), lengths=np.array([10.0, 100.0]))
    yield Call(in_context.tail_of, values=np.arange(1.0, 200.0))
    yield Call(in_context.risk_transfer, **one, lengths=[2], times=TIMES, tasks=4, held_out=4,
               blames={"initial": "head", "lengths": "lengths tasks"},
               takes={"lengths": "sequence array"})  # fmt: skip
    yield Call(in_context.transfer_of_samples, **samples, lengths=[2], times=TIMES,
               blames={"initial": "head", "train": "head", "held_out": "head",
                       "lengths": "length"},
               takes={"lengths": "sequence array"})  # fmt: skip
    yield Call(in_context.RiskTransfer.head, self=ex.TRANSFER, length=2.0)
    yield Call(in_context.RiskTransfer.save, self=ex.TRANSFER, path="risks.nc")
    yield Call(in_context.RiskTransfer.load, path=given.TRANSFER_FILE)
