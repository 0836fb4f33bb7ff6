"""Two processes on half of a batch each take the steps of one process on the whole."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from attractor.torch import MirrorDescent, SteepestDescent  # noqa: E402 - needs torch

ROOT = Path(__file__).parents[2]
CHILD = """
import sys
import torch
from torch.nn.parallel import DistributedDataParallel
from tests.torch.test_distributed import train

rank, meeting, result = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{meeting}", rank=rank, world_size=2
)
found = [train(name, DistributedDataParallel, slice(rank, None, 2)) for name in ("mirror", "sign")]
if rank == 0:
    torch.save(found, result)
torch.distributed.destroy_process_group()
"""


def train(name, wrap, rows):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    inputs = torch.randn(16, 4)
    wrapped = wrap(network)
    weights = list(network.parameters())
    optimizer = {
        "mirror": lambda: MirrorDescent(weights, 0.05, p=1.1, normalize=True, momentum=0.9),
        "sign": lambda: SteepestDescent(weights, 0.01, "l_3"),
    }[name]()
    for _ in range(5):
        optimizer.zero_grad()
        (wrapped(inputs[rows]) - inputs[rows].sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
    return [one.detach() for one in weights]


@pytest.mark.slow
def test_two_processes_are_one_on_the_joined_batch(tmp_path):
    meeting, result = tmp_path / "meeting", tmp_path / "result"
    command = [sys.executable, "-c", CHILD]
    children = [
        subprocess.Popen([*command, str(rank), str(meeting), str(result)], cwd=ROOT)
        for rank in range(2)
    ]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    for name, found in zip(("mirror", "sign"), torch.load(result), strict=True):
        alone = train(name, lambda network: network, slice(None))
        torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-6)
