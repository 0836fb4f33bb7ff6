"""A process forked after JAX was used: training says at once that it cannot, solving can."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import attractor as at

tokens = at.Tokens(np.eye(3)[None], np.ones((1, 3)), [1])
head = at.LinearHead([1.0, 0.5, 0.2])
def train():
    return at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=2)

if sys.argv[1] == "used":
    train()
child = os.fork()
if child == 0:
    problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
    print(at.solve(problem).status, flush=True)
    try:
        print(int(train().data["status"].values.item()), flush=True)
    except at.AttractorError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.parametrize(
    ("jax", "said"),
    [("used", "before this process was forked"), pytest.param("new", "0", marks=pytest.mark.slow)],
)
def test_training_in_a_forked_process(jax, said):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, jax], capture_output=True, text=True, timeout=120
    )
    status, trained = done.stdout.splitlines()
    assert status == "optimal"
    assert said in trained
