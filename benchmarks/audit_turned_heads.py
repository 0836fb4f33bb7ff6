"""How often an audit finds something in the heads of a trained model whose pairing is random.

Every head of a file of ``attractor audit`` keeps its keys, its mean query and the spread of its
scores; its centered queries are turned at random, each head by a rotation of its own: the null
hypothesis of ``Null.ROTATION`` itself, on the keys, queries and texts of a trained model. A
calibrated null rejects no more such heads, and audits for all heads together, than its level
allows. Run as ``python -m benchmarks.audit_turned_heads heads.nc``; a minute of one core for each
audit of 72 heads of width 32.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import attractor as at
from attractor.heads import Captured, Null
from attractor.heads.captured.rows import BY_MASK, content_tokens, head_rows, sink_count
from attractor.heads.statistics.nulls import draw_maps
from attractor.support.progress import progress_bar

AUDITS, DRAWS, ALPHA = 20, 39, 0.05


def turned(captured: Captured, seed: int) -> Captured:
    """The heads with their queries turned; attention, of which no test is made, as it was."""
    layers = {}
    for number in captured.layers:
        layer = captured.layer(number)
        content = content_tokens(captured, layer, sink_count(captured, layer, BY_MASK))
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
    captured = at.heads.load_captured(file)
    heads, audits = [], []
    with progress_bar("audits", AUDITS, lines_every=30) as advance:
        for seed in range(AUDITS):
            made = turned(captured, seed)
            found = at.audit_heads(made, draws=DRAWS, alpha=ALPHA, seed=seed)
            heads.append((found.data["p"] <= ALPHA).to_numpy().reshape(-1, len(Null)))
            together = (found.data["p_together"] <= ALPHA).any(("layer", "head"))
            audits.append(together.to_numpy()[None])
            advance(1)
    print(f"{AUDITS} audits, {DRAWS} draws, alpha {ALPHA}; 95 % intervals in brackets", end="\n\n")
    print("| of | " + " | ".join(null.value for null in Null) + " |")
    print("| --- |" + " --- |" * len(Null))
    for what, rejected in (("heads", heads), ("audits, all heads together", audits)):
        flags = np.concatenate(rejected)
        shares = [share(int(column.sum()), len(flags)) for column in flags.T]
        print(f"| {len(flags)} {what} | " + " | ".join(shares) + " |")


def share(rejected: int, of: int) -> str:
    """A share with its 95 % interval."""
    interval = binomtest(rejected, of).proportion_ci(method="wilson")
    return f"{rejected / of:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
