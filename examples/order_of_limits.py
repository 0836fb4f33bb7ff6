"""Exact gradient flow of one head, for three prompt lengths and infinite prompts.

Limits of length and of time commute for the risk, and not for the parameters. Writes
order_of_limits.png.
"""

import matplotlib.pyplot as plt
import numpy as np

import attractor as at
from attractor.prompts.regression import (
    RegressionTask,
    finite_prompt_limit,
    infinite_flow,
    isotropic_finite_flow,
)

DIMENSION, SCALE = 5, 0.2
task, times = RegressionTask(np.eye(DIMENSION)), np.geomspace(0.05, 2e4, 200)
limit = infinite_flow(task, SCALE, times)
curves = {"infinite prompts": (limit.blocks.value_label, limit.risk)}
for length in (1024, 256, 64):
    flow = isotropic_finite_flow(DIMENSION, length, SCALE, times)
    curves[f"$L$ = {length:,}"] = (flow.b, flow.risk)
levels = {r"$t\to\infty$, then $L\to\infty$": finite_prompt_limit(task)}
levels[r"$L\to\infty$, then $t\to\infty$"] = DIMENSION**0.25
with at.plots.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.75, 2.8))
    for label, (b, risk) in curves.items():
        left.plot(times, b, label=label)
        right.plot(times, risk)
    for words, level in levels.items():
        left.axhline(level, color="gray", linestyle="--", linewidth=0.8, zorder=0)
        left.annotate(words, (2e4, level + 0.03), color="dimgray", fontsize=7, ha="right")
    left.set(xscale="log", xlabel="time $t$ of gradient flow", ylabel="label weight $b$")
    right.set(xscale="log", yscale="log", ylim=(1e-4, 4), ylabel="risk", xlabel="time $t$")
    figure.legend(loc="outside upper center", ncols=4)
    figure.savefig("order_of_limits.png", dpi=200)
