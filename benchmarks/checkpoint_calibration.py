"""How often an audit of checkpoints finds a direction, in heads of known movement.

Heads of random weights that moved by random steps: a calibrated null calls no more of them toward
or away than its level allows. Heads that were trained, or were moved toward their margin solution
or away from it: how many are found. Run as ``python -m benchmarks.checkpoint_calibration``; a
quarter of an hour.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.stats import binomtest

import attractor as at
from attractor.heads import Captured, Projections
from attractor.heads.audit.margin_solution import problem_of
from attractor.heads.captured.rows import trained_factors
from attractor.support.progress import progress_bar

DRAWS, ALPHA = 19, 0.05
AUDITS, TRAINED = 200, 8
QUERIES, TOKENS, HIDDEN, WIDTH, HEADS = 64, 8, 24, 6, 4
_SPECTRUM = np.geomspace(3, 0.3, HIDDEN)

Heads = tuple[np.ndarray, np.ndarray, np.ndarray]
"""``K``, ``Q`` and ``b`` of every head."""
Pair = tuple[Captured, Captured]


def captured(states: np.ndarray, position: np.ndarray, heads: Heads) -> Captured:
    """Heads of a layer that reads hidden states."""
    K, Q, b = heads
    queries = np.einsum("nd,hwd->nhw", states[np.arange(len(states)), position], Q) + b
    return Captured.from_arrays(
        np.einsum("ntd,hwd->nhtw", states, K),
        queries,
        position=position,
        projections=Projections(query=Q, key=K, bias=b),
    )


def states_of(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Anisotropic hidden states with a mean, and the place of the query among them."""
    states = random.standard_normal((QUERIES, TOKENS, HIDDEN)) * _SPECTRUM
    states += 0.5 * _SPECTRUM * random.standard_normal(HIDDEN)
    return states, random.integers(TOKENS, size=QUERIES)


def gaussian(random: np.random.Generator, size: float, spectrum: np.ndarray) -> Heads:
    """Independent weights; those of queries along a spectrum of hidden states."""
    shape = (HEADS, WIDTH, HIDDEN)
    K, Q = (size * random.standard_normal(shape) / np.sqrt(HIDDEN) for _ in range(2))
    return K, Q * spectrum, size * random.standard_normal((HEADS, WIDTH)) / 2


def stepped(step: float, decay: float = 1.0, drift: float = 0.0, *, along: bool = False):
    """Random heads that decayed and moved by a random step, and states that drifted meanwhile."""

    def make(random: np.random.Generator) -> Pair:
        states, position = states_of(random)
        first = gaussian(random, 1.0, np.ones(HIDDEN))
        spectrum = _SPECTRUM / np.sqrt(np.mean(_SPECTRUM**2)) if along else np.ones(HIDDEN)
        steps = gaussian(random, step, spectrum)
        last: Heads = tuple(decay * one + two for one, two in zip(first, steps, strict=True))  # type: ignore[assignment]
        before = states + drift * _SPECTRUM * random.standard_normal(states.shape)
        return captured(before, position, first), captured(states, position, last)

    return make


def planted(amount: float):
    """Random heads whose last step was along the margin solution of what they then select.

    Where the amount is negative the step was against it.
    """

    def make(random: np.random.Generator) -> Pair:
        states, position = states_of(random)
        K, Q, b = gaussian(random, 1.0, np.ones(HIDDEN))
        last = captured(states, position, (K, Q, b))
        first_Q, first_b = Q.copy(), b.copy()
        for head in range(HEADS):
            tokens, left, right = trained_factors(last.layer(0), head)
            W = left.T @ right
            M = at.solve(problem_of(tokens, W), "frobenius").W
            M *= amount * np.linalg.norm(W) / np.linalg.norm(M)
            in_queries = np.linalg.pinv(left.T) @ M
            first_b[head] -= in_queries[:, -1]
            first_Q[head] -= in_queries[:, :-1] @ np.linalg.pinv(right[:, :-1]) @ Q[head]
        return captured(states, position, (K, first_Q, first_b)), last

    return make


ARMS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "random steps of .1": stepped(0.1),
    "random steps of 1": stepped(1.0),
    "random steps of .3 along hidden states, which drift": stepped(0.3, drift=0.3, along=True),
    "decay to .97 and random steps of .05": stepped(0.05, 0.97),
    "decay to .97 alone": stepped(0.0, 0.97),
    "planted toward": planted(0.5),
    "planted away": planted(-0.5),
}


def trained(seed: int) -> list[tuple[str, Pair]]:
    """A head trained on random tokens, from its start and from step 1,000 on to step 10,000."""
    width, hidden, sequences, tokens = 16, 48, 16, 8
    random = np.random.default_rng(seed)
    states = random.standard_normal((3, sequences, tokens, hidden)) / np.sqrt(hidden)
    position = random.integers(tokens, size=sequences)
    queries = states[:, np.arange(sequences), position]
    labels = random.choice([-1.0, 1.0], (3, sequences))
    run = at.train(
        at.Tokens(states, queries, labels), at.LinearHead(random.standard_normal(hidden)),
        at.normalized_gradient_descent(0.1), steps=10_000, initial=0.1, weights="all",
        record=[0, 1000, 10_000], parameterization=at.KeyQuery(width), seed=seed,
    )  # fmt: skip

    def at_step(step: int) -> list[Captured]:
        data = run.data.sel(step=step).isel(seed=0)
        K, Q = (np.swapaxes(data[name].to_numpy(), -1, -2)[:, None] for name in "KQ")
        zero = np.zeros((1, width))
        return [captured(x, position, (k, q, zero)) for x, k, q in zip(states, K, Q, strict=True)]

    last = at_step(10_000)
    return [
        (f"trained, from step {step:,} to 10,000", pair)
        for step in (0, 1000)
        for pair in zip(at_step(step), last, strict=True)
    ]


def main() -> None:
    """Prints the table."""
    found: dict[str, list[np.ndarray]] = {}
    with progress_bar(
        "audits", 5 * AUDITS + 2 * (AUDITS // 8) + TRAINED, lines_every=30
    ) as advance:
        pairs = (
            (name, make(np.random.default_rng((number, seed))))
            for number, (name, make) in enumerate(ARMS.items())
            for seed in range(AUDITS if number < 5 else AUDITS // 8)
        )
        for name, pair in pairs:
            found.setdefault(name, []).append(directions(pair))
            advance(1)
        for seed in range(TRAINED):
            for name, pair in trained(seed):
                found.setdefault(name, []).append(directions(pair))
            advance(1)
    print(f"{DRAWS} draws, alpha {ALPHA} for all heads of an audit; 95 % intervals in brackets\n")
    print("| heads | audits | any toward or away | of heads: toward | away | shrink |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, words in found.items():
        sizes, where = (np.array([one[place] for one in words]) for place in (0, 1))
        moved = np.isin(where, ["toward", "away"])
        cells = [share(moved.any(-1))]
        cells += [share(np.ravel(where == word)) for word in ("toward", "away")]
        cells += [share(sizes.astype(bool).ravel())]
        print(f"| {name} | {len(words)} | " + " | ".join(cells) + " |")


def directions(pair: Pair) -> np.ndarray:
    """Whether heads shrank, and directions, of all heads."""
    data = at.audit_checkpoints(pair, draws=DRAWS, alpha=ALPHA, norms=("frobenius",)).data
    shrank = data["norm_ratio"].to_numpy().ravel() < 1
    return np.array([shrank, data["direction"].to_numpy().ravel()], dtype=object)


def share(flags: np.ndarray | np.bool) -> str:
    """A share with its interval."""
    interval = binomtest(int(flags.sum()), len(flags)).proportion_ci(method="wilson")
    return f"{flags.mean():.3f} [{interval.low:.3f}, {interval.high:.3f}]"


if __name__ == "__main__":
    sys.exit(main())
