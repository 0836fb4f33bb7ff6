"""How often an audit finds something in the heads of a trained model whose pairing is random.

Every head of a file of ``attractor audit`` keeps its keys, its mean query and the spread of its
scores; its centered queries are turned at random, each head by a rotation of its own: the null
hypothesis of ``Null.ROTATION`` itself, on the keys, queries and texts of a trained model. A
calibrated null rejects no more such heads, and audits for all heads together, than its level
allows. Run as ``python -m benchmarks.audit_turned_heads heads.nc``; half a minute an audit of 72
heads of width 32.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import attractor as at
from attractor.audit import Captured, Null
from attractor.audit.nulls import draw_maps
from attractor.audit.rows import content_tokens, head_rows
from attractor.progress import progress_bar

AUDITS, DRAWS, ALPHA = 20, 39, 0.05


def turned(captured: Captured, seed: int) -> Captured:
    """The heads with their queries turned; attention, of which no test is made, as it was."""
    layers = {}
    for number in captured.layers:
        layer = captured.layer(number)
        content = content_tokens(captured, layer, 0)
        queries = layer.queries.astype(np.float64)
        for head in range(layer.heads):
            rows = head_rows(captured, layer, head, content, seed)
            key = (seed + 10**6, number, head)  # other draws than those of the audit
            turn = draw_maps(Null.ROTATION, rows, 1, key)[0]
            centered = queries[:, head] - rows.mean_query
            queries[:, head] = centered @ turn.T + rows.mean_query
        layers[number] = dataclasses.replace(layer, queries=queries, values=None)
    return Captured(
        layers,
        document=captured.document,
        position=captured.position,
        token=captured.token,
        special=captured.special,
    )


def main(file: Path) -> None:
    """Prints the table."""
    captured = at.audit.load_captured(file)
    heads, audits = [], []
    with progress_bar("audits", AUDITS, lines_every=30) as advance:
        for seed in range(AUDITS):
            made = turned(captured, seed)
            found = at.audit_heads(made, draws=DRAWS, alpha=ALPHA, seed=seed, sink_positions=0)
            data = found.data
            heads.append((data["p"] <= ALPHA).to_numpy().reshape(-1, len(Null)).sum(0))
            audits.append((data["p_together"] <= ALPHA).any(("layer", "head")).to_numpy())
            advance(1)
            of = (seed + 1) * data["accuracy"].size
            print(seed, of, np.sum(heads, 0), np.sum(audits, 0), flush=True)
    print(f"{AUDITS} audits, {DRAWS} draws, alpha {ALPHA}; 95 % intervals in brackets", end="\n\n")
    print("| of | " + " | ".join(null.value for null in Null) + " |")
    print("| --- |" + " --- |" * len(Null))
    for what, counts, of in (
        ("heads", np.sum(heads, 0), AUDITS * data["accuracy"].size),
        ("audits, all heads together", np.sum(audits, 0), AUDITS),
    ):
        print(f"| {of} {what} | " + " | ".join(_share(int(one), of) for one in counts) + " |")


def _share(rejected: int, of: int) -> str:
    interval = binomtest(rejected, of).proportion_ci(method="wilson")
    return f"{rejected / of:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
