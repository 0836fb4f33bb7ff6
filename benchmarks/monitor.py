"""What watching every head of a small text transformer costs a PyTorch training loop.

Two blocks of width 64 with four heads each read sequences of 128 tokens and predict the next one.
The probe batch is 32 such sequences, one query each: about 4,000 constraints a head, on tokens
that training moves. Loops with and without a monitor are timed in turn, in one process on one
thread, by the processor time they take. Run as ``python -m benchmarks.monitor``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from attractor.geometry import get_geometry
from attractor.heads import HeadMonitor, WatchedHead
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import attended_tokens
from attractor.support.blas import single_blas_thread
from attractor.tokens import Tokens
from benchmarks.machine import machine, spread, versions

VOCABULARY, LENGTH, WIDTH, BLOCKS, HEADS, BATCH = 96, 128, 64, 2, 4, 32
SEQUENCES, STEPS, EVERY, PAIRS = 32, 200, 50, 5
WARM_STARTS = {
    "frobenius": (32, 128, 64),
    "nuclear": (24, 48, 24),
    "l_3": (24, 48, 24),
    "l_1.5": (24, 48, 24),
    "l_1": (24, 48, 24),
    "spectral": (24, 48, 24),
}
"""Sequences, tokens and dimension of the problem solved in each norm."""


class Block(nn.Module):
    """Causal attention and a feed-forward layer, each after normalization."""

    def __init__(self) -> None:
        """Makes the layers."""
        super().__init__()
        self.before_attention, self.before_feed_forward = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.output = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Adds both layers to the stream."""
        entering = self.before_attention(x)
        split = (len(x), -1, HEADS, WIDTH // HEADS)
        query, key, value = (
            layer(entering).view(split).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(x.shape))
        return x + self.feed_forward(self.before_feed_forward(x))


class Transformer(nn.Module):
    """Predicts the next token."""

    def __init__(self) -> None:
        """Makes the layers."""
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.decoder = nn.Linear(WIDTH, VOCABULARY)

    def embed(self, text: torch.Tensor) -> torch.Tensor:
        """What enters the first block."""
        return self.tokens(text) + self.positions.weight[: text.shape[1]]

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Logits of the next token at every place."""
        x = self.embed(text)
        for block in self.blocks:
            x = block(x)
        return self.decoder(x)


def entering(number: int, probe: torch.Tensor) -> Callable[[Transformer], Any]:
    """Keys and queries of a block on the probe batch: the last token of each sequence asks."""

    @torch.no_grad()
    def tokens(model: Transformer) -> tuple[torch.Tensor, torch.Tensor]:
        x = model.embed(probe)
        for block in model.blocks[:number]:
            x = block(x)
        keys = model.blocks[number].before_attention(x)
        return keys, keys[:, -1]

    return tokens


def factors(block: int, head: int) -> Callable[[Transformer], Any]:
    """Key and query factors of one head: rows of the weights of ``nn.Linear``, transposed."""
    rows = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)

    def matrix(model: Transformer) -> tuple[torch.Tensor, torch.Tensor]:
        layers = model.blocks[block]
        return layers.key.weight[rows].T, layers.query.weight[rows].T

    return matrix


def watched_heads(probe: torch.Tensor) -> list[WatchedHead]:
    """Every head of the transformer."""
    scale = (WIDTH // HEADS) ** -0.5
    heads = []
    for block in range(BLOCKS):
        tokens = entering(block, probe)
        heads += [
            WatchedHead(f"block {block}, head {head}", factors(block, head), tokens, scale=scale)
            for head in range(HEADS)
        ]
    return heads


def text(generator: np.random.Generator, steps: int) -> torch.Tensor:
    """Sequences of a Markov chain with a few likely successors of each token."""
    successors = generator.integers(VOCABULARY, size=(VOCABULARY, 4))
    rows = generator.integers(VOCABULARY, size=(steps * BATCH + SEQUENCES, 1))
    found = [rows[:, 0]]
    for _ in range(LENGTH):
        found.append(successors[found[-1], generator.integers(4, size=len(rows))])
    return torch.from_numpy(np.stack(found, axis=1))


def loop(data: torch.Tensor, steps: int, monitor: HeadMonitor | None) -> float:
    """Trains from the same start; the seconds of processor time it takes."""
    torch.manual_seed(0)
    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    start = time.process_time()
    for step in range(steps):
        batch = data[step * BATCH : (step + 1) * BATCH]
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if monitor is not None:
            monitor(step, model)
    return time.process_time() - start


def watched_training() -> str:
    """Times loops with and without a monitor in turn; what to say of them."""
    data = text(np.random.default_rng(0), STEPS)
    probe = data[-SEQUENCES:, :-1]
    loop(data, 5, None)
    plain, shares, own, found = [], [], [], []
    for pair in range(PAIRS):
        monitor = HeadMonitor(watched_heads(probe), every=EVERY, clock=time.process_time)
        both = {name: 0.0 for name in (("without", "with") if pair % 2 else ("with", "without"))}
        for name in both:
            both[name] = loop(data, STEPS, monitor if name == "with" else None)
            if name == "with":
                own.append(100 * monitor.overhead)
        plain.append(both["without"])
        shares.append(100 * (both["with"] / both["without"] - 1))
        found.append(monitor.to_xarray())
    optimal = [float((data["status"] == "optimal").sum()) for data in found]
    starts = np.concatenate([data["start"].values.ravel() for data in found])
    each = np.concatenate([data["seconds"].values.ravel() for data in found])
    held = list(each[starts != ""])
    due = len(range(0, STEPS, EVERY)) * BLOCKS * HEADS
    return f"""{STEPS} steps take {spread(plain)} s. Watching every {EVERY} steps under the default
budget of 3 % adds {spread(shares)} %, by the monitor's own account {spread(own)} %, and holds
{spread(optimal)} of {due} records against a certified solution, at {spread(held)} s each; the rest
are read and postponed."""


def warm_starts() -> str:
    """Times solutions from nothing and from a neighbor's multipliers in turn; a table."""
    lines = ["| norm | constraints | W | from nothing, s | from the neighbor, s |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for name, (sequences, length, dimension) in WARM_STARTS.items():
        rng, geometry = np.random.default_rng(0), get_geometry(name)
        keys = rng.normal(size=(sequences, length, dimension))
        queries, W = rng.normal(size=(sequences, dimension)), rng.normal(size=(dimension,) * 2)
        tokens, moved = (
            Tokens(keys, queries),
            Tokens(keys + 0.01 * rng.normal(size=keys.shape), queries),
        )
        selection = attended_tokens(tokens, W)
        before = MarginProblem.from_selection(tokens, selection)
        after = MarginProblem.from_selection(moved, selection)
        start = solve(before, geometry).multipliers
        calls = partial(solve, after, geometry), partial(solve, after, geometry, start=start)
        times = np.array([[_seconds(call) for call in calls] for _ in range(PAIRS)])
        cold, warm = spread(list(times[:, 0])), spread(list(times[:, 1]))
        size = f"{dimension} x {dimension}"
        lines.append(f"| {name} | {int(after.constraints)} | {size} | {cold} | {warm} |")
    return "\n".join(lines)


def _seconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    torch.set_num_threads(1)
    with single_blas_thread():
        training, table = watched_training(), warm_starts()
    return f"""## Watching the heads of a transformer in training

{BLOCKS} blocks of width {WIDTH} with {HEADS} heads each, sequences of {LENGTH} tokens, batches of
{BATCH}; PyTorch, Adam. The probe batch is {SEQUENCES} sequences, one query each; tokens move with
training. Processor time on one thread, with and without in turn, {PAIRS} times.

{machine()}; {versions("torch", "numpy", "scipy")}

{training}

Margin problems of Gaussian tokens, and again after every entry of the keys moved by 0.01:

{table}
"""


if __name__ == "__main__":
    print(section())
