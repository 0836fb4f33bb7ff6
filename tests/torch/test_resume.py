"""Training killed in one process goes on in another, bit for bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from attractor.torch import MirrorDescent, SteepestDescent  # noqa: E402 - needs torch

ROOT = Path(__file__).parents[2]
CHILD = "import sys; from tests.torch.test_resume import child; child(*sys.argv[1:])"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SAVED, LAST = 10, 25


def begun(dtype):
    """A network in two groups with an exponent each, the optimizers of both halves, schedulers."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8), torch.nn.Linear(8, 1)
    ).to(dtype)
    first, _, *rest = network
    groups = [{"params": first.parameters(), "p": 1.1}, {"params": rest[0].parameters(), "p": 3.0}]
    optimizers = [
        MirrorDescent(groups, lr=0.02, momentum=0.9, dual_weight_decay=0.01),
        SteepestDescent(rest[1].parameters(), 0.01, "l_3", momentum=0.9),
    ]
    schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(one, LAST) for one in optimizers]
    return network, [*optimizers, *schedulers]


def step(network, parts, number):
    inputs = torch.randn(12, 6, generator=torch.Generator().manual_seed(number))
    inputs = inputs.to(next(network.parameters()).dtype)
    for optimizer in parts[:2]:
        optimizer.zero_grad()
    (network(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean().backward()
    for part in parts:
        part.step()


def child(dtype, file, result=None):
    network, parts = begun(DTYPES[dtype])
    if result is None:
        for number in range(LAST):
            if number == SAVED:
                states = [network.state_dict(), *(part.state_dict() for part in parts)]
                torch.save(states, file)
            if number == SAVED + 3:
                os.kill(os.getpid(), signal.SIGKILL)
            step(network, parts, number)
    for part, state in zip([network, *parts], torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(state)
    for number in range(SAVED, LAST):
        step(network, parts, number)
    torch.save(network.state_dict(), result)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_training_killed_goes_on_in_another_process(tmp_path, dtype):
    file, result = str(tmp_path / "saved"), str(tmp_path / "result")
    command = [sys.executable, "-c", CHILD, dtype, file]
    assert subprocess.run(command, cwd=ROOT, timeout=120).returncode == -signal.SIGKILL
    assert subprocess.run([*command, result], cwd=ROOT, timeout=120).returncode == 0
    network, parts = begun(DTYPES[dtype])
    for number in range(LAST):
        step(network, parts, number)
    found = torch.load(result)
    for name, weight in network.state_dict().items():
        assert torch.equal(found[name], weight), name
