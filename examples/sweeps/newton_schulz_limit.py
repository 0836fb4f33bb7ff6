"""Of which norm is Muon's step with Newton-Schulz coefficients the steepest, and where does it end?

Numbers of that part of docs/maps.md::

    python examples/sweeps/newton_schulz_limit.py

If steps u(G), of any lengths, are steepest in some norm, then for any two matrices
<u(G), H> <u(H), G> <= <u(G), G> <u(H), H>. The largest quotient of both sides over diagonal
matrices of two rows says how far coefficients are from that. Then Muon is trained, and two ratios
are held against each other, data set by data set: that of the direction in which W moves around
step 10,000, and that of W after 100,000 steps.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

import attractor as at

STEPS, LONG, DATA_SETS = 10_000, 100_000, 60
SETS = (("muon", 5), ("polar-express", 5), ("newton-schulz", 5), ("polar-express", 9))


def largest_quotient(coefficients: str, iterations: int) -> float:
    """The largest of <u(G), H> <u(H), G> / (<u(G), G> <u(H), H>); no norm if above one."""
    angles = np.linspace(1e-3, np.pi / 2 - 1e-3, 2001)
    values = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    steps = at.newton_schulz_values(values, coefficients, iterations)
    own, crossed = (steps * values).sum(-1), steps @ values.T
    return float((crossed * crossed.T / np.outer(own, own)).max())


def ratios(
    problem: at.MarginProblem, best: Float[np.ndarray, "instance"], W: Float[np.ndarray, "*"]
) -> Float[np.ndarray, "instance"]:
    """Smallest margin over spectral norm, over the largest possible."""
    smallest = np.nanmin(problem.margins(W), axis=-1)
    return smallest / np.linalg.norm(W, 2, axis=(-2, -1)) * best


def main() -> None:
    """Prints both for each set of coefficients."""
    tokens, head = at.datasets.unit_tokens(6, 8, 10, seeds=DATA_SETS)
    for coefficients, iterations in SETS:
        optimizer = at.muon(
            0.03, 0.9, coefficients=coefficients, newton_schulz_iterations=iterations
        )
        places = [STEPS - 100, STEPS, LONG]
        run = at.train(tokens, head, optimizer, steps=LONG, record=places, weights="all")
        reached = at.verify(run, geometry="spectral").solution
        W = run.data["W"].isel(seed=0).transpose("step", "instance", ...).values
        best = np.ravel(np.asarray(reached.value))
        moves, first, last = (
            ratios(reached.problem, best, D) for D in (W[1] - W[0], W[1], W[2])
        )  # fmt: skip
        apart = np.abs(moves - last)
        print(f"{coefficients}, {iterations} iterations")
        print(f"  quotient {largest_quotient(coefficients, iterations):.4g}")
        print(f"  median ratio after {STEPS:,} steps {np.median(first):.4f}, ", end="")
        print(f"of the way W moves there {np.median(moves):.4f}, ", end="")
        print(f"of W after {LONG:,} steps {np.median(last):.4f}")
        print(f"  the last two apart by {np.median(apart):.4f} in the median, ", end="")
        print(f"by less than 0.02 in {np.mean(apart < 0.02):.0%}")


if __name__ == "__main__":
    main()
