"""Gradients of the library and of 1,300 digits; a part of `dump_reference.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np

import attractor as at
from attractor.attention.gradients.entrywise import entrywise_gradient
from attractor.attention.gradients.plain import plain_gradient
from attractor.attention.gradients.scaled_gradient import scaled_gradient
from attractor.attention.losses import get_loss
from attractor.attention.parameterization import (
    AttentionMatrix,
    Joint,
    KeyQuery,
    KeyQueryFactors,
    PromptVector,
)
from attractor.attention.rows import attention_rows
from attractor.support.precision import double_precision

GAPS = (0.5, 10, 36, 100, 300, 500, 740, 800, 2000)


def gradients() -> list[dict[str, Any]]:
    """Every parameterization, loss and gap, in 2, 3 and 5 dimensions."""
    mp.mp.dps = 1300
    rng = np.random.default_rng(11)
    return [
        _one(rng, kind, d, loss, gap)
        for kind in ("p", "W", "KQ", "pv")
        for d in (2, 3, 5)
        for loss in ("logistic", "exponential", "linear")
        for gap in GAPS
    ]


def _one(rng: np.random.Generator, kind: str, d: int, loss: str, gap: float) -> dict[str, Any]:
    n, T = 3, 4
    keys = rng.normal(size=(n, T, d))
    if rng.random() < 0.3:
        keys = np.round(keys)
    scores = rng.normal(size=(n, T))
    if rng.random() < 0.3:
        scores[0, 1] = scores[0, 2]
    queries, labels = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], size=n)
    w = rng.normal(size={"p": d, "W": d * d, "KQ": 2 * d * d, "pv": 2 * d}[kind])
    top = np.sort(_attention_scores(kind, keys, queries, w), axis=-1)
    widest = (top[:, -1] - top[:, -2]).max()
    factor = gap / widest if widest > 0 else 1.0
    if kind == "pv":
        w[:d] *= factor
    else:
        w *= np.sqrt(factor) if kind == "KQ" else factor
    parameters: Any = w[:d] if kind in ("p", "pv") else w.reshape(-1, d)
    if kind == "KQ":
        parameters = KeyQueryFactors(*w.reshape(2, d, d))
    layer: Any = {
        "p": PromptVector(),
        "W": AttentionMatrix(),
        "KQ": KeyQuery(),
        "pv": Joint(PromptVector()),
    }[kind]
    if kind == "pv":
        tokens, head = at.Tokens(keys, np.ones((n, 1)), labels), at.LinearHead(w[d:])
    else:
        z = np.ones((n, 1)) if kind == "p" else queries
        tokens, head = (
            at.Tokens(keys, z, np.ones(n), values=scores[..., None]),
            at.LinearHead(np.ones(1)),
        )
    found = {}
    with double_precision():
        rows = attention_rows(tokens, head=head)
        given = jax.tree.map(jnp.asarray, parameters)
        functions = {
            "library": scaled_gradient,
            "entries": entrywise_gradient,
            "plain": plain_gradient,
        }
        for name, function in functions.items():
            gradient = function(layer, get_loss(loss), given, head, rows)
            leaves = jax.tree.leaves(gradient.attention)
            leaves += jax.tree.leaves(gradient.head) if kind == "pv" else []
            found[name] = [
                {
                    "m": np.ravel(leaf.mantissa).tolist(),
                    "s": np.ravel(np.maximum(leaf.log_scale, -1e300)).tolist(),
                }
                for leaf in leaves
            ]
    shown = {
        "parameterization": kind,
        "loss": loss,
        "keys": keys.tolist(),
        "scores": scores.tolist(),
    }
    shown |= {"queries": queries.tolist(), "labels": labels.tolist()}
    exact = [_packed(leaf) for leaf in _exact(kind, keys, scores, labels, queries, w, loss)]
    return {"problem": shown, "gap": gap, "w": w.tolist(), **found, "oracle": exact}


def _attention_scores(
    kind: str, keys: np.ndarray, queries: np.ndarray, w: np.ndarray
) -> np.ndarray:
    d = keys.shape[-1]
    if kind in ("p", "pv"):
        return keys @ w[:d]
    W = w.reshape(d, d) if kind == "W" else w[: d * d].reshape(d, d) @ w[d * d :].reshape(d, d).T
    return np.einsum("ntd,de,ne->nt", keys, W, queries)


def _exact(
    kind: str,
    keys: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    queries: np.ndarray,
    w: np.ndarray,
    loss: str,
) -> list[list[mp.mpf]]:
    """The formula as it stands in textbooks, in digits enough for what cancels."""
    n, _, d = keys.shape
    number = np.vectorize(mp.mpf, otypes=[object])
    x, y, v = number(keys), number(labels), number(w)
    z = number(queries) if kind in ("W", "KQ") else np.full((n, 1), mp.mpf(1), dtype=object)
    e = z.shape[1]
    K, Q = v[: d * d].reshape(-1, d), v[d * d :].reshape(-1, d)
    W = v[: d * e].reshape(d, e) if kind != "KQ" else K @ Q.T
    G, head = np.full((d, e), mp.mpf(0), dtype=object), np.full(d, mp.mpf(0), dtype=object)
    for i in range(n):
        gain = y[i] * (x[i] @ v[d:]) if kind == "pv" else number(scores[i])
        s = x[i] @ (W @ z[i])
        weights = np.array([mp.exp(one - max(s)) for one in s], dtype=object)
        share = weights / weights.sum()
        margin = share @ gain
        slope = {
            "logistic": lambda m: 1 / (1 + mp.exp(m)),
            "exponential": lambda m: mp.exp(-m),
        }.get(loss, lambda m: mp.mpf(1))(margin)
        G -= np.outer((slope / n * share * (gain - margin)) @ x[i], z[i])
        head -= slope / n * y[i] * (share @ x[i])
    if kind == "KQ":
        return [list((G @ Q).ravel()), list((G.T @ K).ravel())]
    return [list(G.ravel()), list(head)] if kind == "pv" else [list(G.ravel())]


def _packed(entries: list[mp.mpf]) -> dict[str, Any]:
    """Mantissas, the largest of them one, and the logarithm of their scale."""
    top = max(abs(x) for x in entries)
    if top == 0:
        return {"m": [0.0] * len(entries), "s": None}
    return {"m": [float(x / top) for x in entries], "s": float(mp.log(top))}
