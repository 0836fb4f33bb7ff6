"""Two-stage training of next-token predictors: all corpora at once against one at a time.

Run as ``python -m benchmarks.next_token_training``.
"""

from __future__ import annotations

import sys
from functools import cache, partial
from statistics import median

import numpy as np

from benchmarks.machine import Worker, machine, seconds, spread, versions

CORPORA, VOCABULARY, STEPS = 100, 20, (900, 900)
SAMPLE = 2
"""Corpora that the usual way is timed on in each round."""
ROUNDS = 5
FIRST_RATE, SECOND_RATE = (rate / VOCABULARY**0.5 for rate in (0.2, 0.05))


@cache
def corpora() -> list:
    """The corpora, drawn once on either side."""
    from attractor.corpora import order_first_corpus

    return [order_first_corpus(VOCABULARY, seed=seed).corpus for seed in range(CORPORA)]


def ours() -> np.ndarray:
    """Trains every corpus; the last matrices of attention."""
    from attractor.corpora import train_two_stages

    run = train_two_stages(corpora(), steps=STEPS, record=list(STEPS), weights="last")
    return run.attention.W()[:, 0]


def usual(index: int, steps: tuple[int, int] = STEPS) -> np.ndarray:
    """Trains one corpus by automatic differentiation, one-hot, rows padded and masked."""
    import torch
    from torch.nn.functional import cross_entropy

    from attractor.corpora import collocation, distinct_samples

    corpus = corpora()[index]
    samples = distinct_samples(corpus)
    follows = torch.as_tensor(collocation(corpus).next_token)
    known = torch.as_tensor(np.maximum(samples.contexts, 0))
    absent = torch.as_tensor(~samples.mask)
    queries, labels = torch.as_tensor(samples.queries), torch.as_tensor(samples.labels)
    frequencies = torch.as_tensor(samples.frequencies)
    eye = torch.eye(VOCABULARY, dtype=torch.float64)
    W_ov = torch.zeros_like(eye, requires_grad=True)
    W_kq = torch.zeros_like(eye, requires_grad=True)

    def step(parameter: torch.Tensor, loss: torch.Tensor, rate: float) -> None:
        (slope,) = torch.autograd.grad(loss, parameter)
        with torch.no_grad():
            parameter -= rate * slope / slope.norm()

    for _ in range(steps[0]):
        step(W_ov, cross_entropy(eye @ W_ov.T, follows, reduction="sum"), FIRST_RATE)
    frozen, keys = W_ov.detach(), eye[known]
    for _ in range(steps[1]):
        scores = (keys @ W_kq * eye[queries][:, None]).sum(-1).masked_fill(absent, -torch.inf)
        outputs = (scores.softmax(-1)[..., None] * keys).sum(1)
        losses = cross_entropy(outputs @ frozen.T, labels, reduction="none")
        step(W_kq, (losses * frequencies).sum(), SECOND_RATE)
    return W_kq.detach().numpy()


def serve_ours() -> None:
    """Prints the seconds of a later call, everything being compiled, for each line read."""
    ours()
    print(flush=True)
    for _ in sys.stdin:
        print(seconds(ours), flush=True)


def serve_usual() -> None:
    """Trains a few corpora for each line read; prints the seconds that all would take."""
    import torch

    torch.set_num_threads(1)
    usual(0, (5, 5))
    print(flush=True)
    for turn, _ in enumerate(sys.stdin):
        chosen = [(turn * SAMPLE + i) % CORPORA for i in range(SAMPLE)]
        taken = seconds(lambda chosen=chosen: [usual(index) for index in chosen])
        print(taken * CORPORA / SAMPLE, flush=True)


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    difference = float(np.abs(ours()[0] - usual(0)).max())
    start = partial(Worker, "benchmarks.next_token_training", single_thread=False)
    batched, alone = start("ours"), start("usual")
    taken: dict[str, list[float]] = {"ours": [], "usual": []}
    for _ in range(ROUNDS):
        taken["ours"] += batched.run()
        taken["usual"] += alone.run()
    for worker in (batched, alone):
        worker.close()
    ratios = [slow / fast for slow, fast in zip(taken["usual"], taken["ours"], strict=True)]
    gain = f"**{median(ratios):.0f}x** ({min(ratios):.0f} to {max(ratios):.0f})"
    return f"""## Next-token prediction: two-stage training

{CORPORA} random realizable corpora of {VOCABULARY} tokens, {STEPS[0]} + {STEPS[1]} steps of
normalized gradient descent from zero with the published step sizes. The usual way trains one corpus
at a time (PyTorch, automatic differentiation, one thread); each round times {SAMPLE} corpora and is
scaled to {CORPORA}. Ours takes exact gradients of all at once, compiled before. Both sides ran in
turn, {ROUNDS} times; after them the attention of the first corpus differs by {difference:.0e}.

{machine()}; {versions("jax", "torch", "numpy")}

| ours, s | usual way, s | ratio |
| --- | --- | --- |
| {spread(taken["ours"])} | {spread(taken["usual"])} | {gain} |
"""


if __name__ == "__main__":
    if sys.argv[1:] == ["ours"]:
        serve_ours()
    elif sys.argv[1:] == ["usual"]:
        serve_usual()
    else:
        print(section())
