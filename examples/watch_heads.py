"""Watches the heads of a small transformer while it learns to find a planted word.

    python examples/watch_heads.py [--log tensorboard | wandb]

A quarter of a minute on one core. Adam trains the model first; MirrorDescent, in its place,
a second one.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from attractor.heads import HeadMonitor, WatchedHead
from attractor.torch import MirrorDescent

VOCABULARY, LENGTH, WIDTH, HEADS = 200, 20, 32, 2
PADDING, FIRST, PLANTED = 0, 1, range(2, 12)  # the last: five words of each class


def sentences(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sentences of 10 to 20 words, one of which is planted; their classes; where it stands."""
    random = torch.Generator().manual_seed(seed)
    words = torch.randint(12, VOCABULARY, (count, LENGTH), generator=random)
    lengths = torch.randint(10, LENGTH + 1, (count,), generator=random)
    place = 1 + (torch.rand(count, generator=random) * (lengths - 1)).long()
    planted = torch.randint(PLANTED.start, PLANTED.stop, (count,), generator=random)
    words[torch.arange(count), place] = planted
    words[:, 0] = FIRST
    words[torch.arange(LENGTH) >= lengths[:, None]] = PADDING
    return words, (planted >= 7).long(), place


class Model(nn.Module):
    """One block, read out at the first position."""

    def __init__(self) -> None:
        """Takes the sizes above."""
        super().__init__()
        self.word = nn.Embedding(VOCABULARY, WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, dropout=0.1, batch_first=True)
        self.read = nn.Linear(WIDTH, 2)

    def forward(self, words: Tensor) -> Tensor:
        """Scores of both classes."""
        block = self.block(self.word(words), src_key_padding_mask=words == PADDING)
        return self.read(block[:, 0])


def adam(model: Model) -> torch.optim.Optimizer:
    """What most people use."""
    return torch.optim.Adam(model.parameters(), lr=3e-3)


def mirror(model: Model) -> torch.optim.Optimizer:
    """The same line with another name: few weights become large."""
    return MirrorDescent(model.parameters(), lr=1e-2, p=1.1)  # steps of this length


def train(
    make: Callable[[Model], torch.optim.Optimizer],
    steps: int,
    log: Callable[[int, HeadMonitor], None],
) -> tuple[Model, HeadMonitor, np.ndarray, float]:
    """A trained model, its monitor, where the words of the probe are planted, and seconds."""
    torch.manual_seed(0)
    model = Model()
    optimizer = make(model)

    probe, _, place = sentences(64, seed=1)
    rows = np.zeros(probe.shape, bool)
    rows[:, 0] = True  # the query that the model reads
    monitor = HeadMonitor(
        [
            WatchedHead.from_module(f"head {h}", model.block, h, lambda m: m(probe), rows=rows)
            for h in range(HEADS)
        ],
        every=50,
    )
    optimizer.register_step_post_hook(monitor.hook(model))

    words, labels, _ = sentences(8000, seed=2)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        batch = torch.randint(len(words), (64,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        log(step, monitor)
    seconds = time.perf_counter() - start
    monitor.record(steps, model)
    log(steps, monitor)
    return model, monitor, place.numpy(), seconds


def logger(kind: str) -> Callable[[int, HeadMonitor], None]:
    """Writes the numbers of every record to TensorBoard, or to Weights & Biases."""
    if kind == "none":
        return lambda step, monitor: None
    if kind == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        add = SummaryWriter("runs/watch_heads").add_scalar
    else:
        import wandb

        run = wandb.init(project="watch_heads")

        def add(name: str, value: float, step: int) -> None:
            run.log({name: value}, step=step)

    def log(step: int, monitor: HeadMonitor) -> None:
        for head, records in monitor.records.items():
            if records and records[-1].step == step:
                for name, value in records[-1].numbers.items():
                    add(f"{head}/{name}", value, step)

    return log


def sparsity(weights: Tensor) -> float:
    """Hoyer's measure: 0 where all are as large, 1 where one is not zero."""
    flat = weights.detach().flatten().double()
    root = len(flat) ** 0.5
    return float((root - flat.abs().sum() / flat.norm()) / (root - 1))


def main() -> None:
    """Trains with both, and prints what became of it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--log", choices=("none", "tensorboard", "wandb"), default="none")
    parser.add_argument("--steps", type=int, default=600)
    given = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.perf_counter()
    words, labels, _ = sentences(4000, seed=3)
    table = []
    for name, make in (("Adam", adam), ("MirrorDescent", mirror)):
        log = logger(given.log) if name == "Adam" else logger("none")
        model, monitor, place, seconds = train(make, given.steps, log)
        with torch.no_grad():
            accuracy = float((model.eval()(words).argmax(-1) == labels).float().mean())
        latest = monitor.to_xarray().isel(step=-1, query=0)
        found = (latest["selected"].values == place).mean(-1)
        weights = model.block.self_attn.in_proj_weight[: 2 * WIDTH]
        table.append((name, accuracy, found, sparsity(weights), seconds))
        print(f"{name}\n{monitor}\n")
    anywhere = float((1 / (sentences(64, seed=1)[0] != PADDING).sum(-1)).mean())
    print("                accuracy   planted word selected   sparsity of    seconds")
    print("                           by each head            queries, keys")
    for name, accuracy, found, zeros, seconds in table:
        shares = "  ".join(f"{one:.2f}" for one in found)
        print(f"{name:15} {accuracy:.3f}      {shares:23} {zeros:.2f}           {seconds:.1f}")
    print(f"A head that looks anywhere selects it in {anywhere:.2f} of the sentences.")
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
