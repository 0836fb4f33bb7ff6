"""Heads of a rotary, grouped-query model at margin solutions, and heads that are not there.

Positions rotate keys, so that no matrix of hidden states stands for a head: its trained matrix is
the pairing ``M`` of keys in the query's frame with queries before rotation. It is trained here on
the keys and queries of a Llama of random weights, folded into its query projection, and looked at
in the model again. Query projections have orthonormal rows, so that norms of what is folded in are
norms of ``M``. Run as ``python -m benchmarks.rotary_control``, with the extra ``transformers``.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import torch
import transformers
from jaxtyping import Float
from scipy.stats import binomtest

import attractor as at
from attractor.attention import KeyQuery, LinearHead
from attractor.heads import Captured
from attractor.heads.audit.control import Arm
from attractor.heads.audit.result import Margin
from attractor.heads.capture import capture_heads
from attractor.support.randomness import random_rotation

LAYER, VOCABULARY, SHIFT = 1, 200, 5
"""The layer that is trained, above another; positions by which texts are moved."""
NORMS = ("frobenius", "nuclear")
RATE, SCALE = 1.0, 0.1

Pairings = Float[np.ndarray, "models heads width width"]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a control; no more texts than a head is wide, so that any selection can be had."""

    models: int = 8
    heads: int = 4
    key_heads: int = 2
    width: int = 16
    texts: int = 12
    length: int = 12
    steps: int = 10_000
    early: int = 5
    draws: int = 19


ARMS = (
    Arm("M, trained to the end", f"{Margin.AT} (frobenius)"),
    Arm("factors of M, trained to the end", f"{Margin.AT} (nuclear)"),
    Arm("M, stopped early"),
    Arm("factors, stopped early"),
    Arm("factors to the end, pairing rotated"),
    Arm("factors to the end, on other texts"),
    Arm("as the model came"),
)


@dataclasses.dataclass(frozen=True)
class Found:
    """What was found of the heads of one arm, and how exact it is.

    Attributes:
        arm: How they were made.
        verdict: The verdict on each.
        ratio: Margin ratios of each, in both norms.
        score_error: Largest difference of a score from ``k^T M q``, relative to the largest.
        shift_error: Largest change of a score where texts are moved, relative to the largest.
    """

    arm: Arm
    verdict: np.ndarray
    ratio: Float[np.ndarray, "heads norm"]
    score_error: float
    shift_error: float


def model_of(sizes: Sizes, seed: int) -> Any:
    """A Llama of random weights, whose queries and keys are orthonormal coordinates."""
    hidden = sizes.heads * sizes.width
    configuration = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, intermediate_size=2 * hidden,
        num_hidden_layers=LAYER + 1, num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.key_heads, max_position_embeddings=4 * sizes.length,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = transformers.LlamaModel(configuration).double().eval()
    with torch.no_grad():
        model.embed_tokens.weight.normal_()
        for layer in model.layers:
            for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
                torch.nn.init.orthogonal_(projection.weight)
    return model


def captured_of(
    model: Any, sizes: Sizes, M: Float[np.ndarray, "heads width width"], texts: str, shift: int = 0
) -> Captured:
    """The layer on random texts, with a matrix folded into the query projection of every head."""
    random = np.random.default_rng(list(texts.encode()))
    ids = random.integers(VOCABULARY, size=(sizes.texts, sizes.length))
    positions = np.broadcast_to(np.arange(sizes.length) + shift, ids.shape)
    weight = model.layers[LAYER].self_attn.q_proj.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight.copy_((torch.from_numpy(M) @ before.view(*M.shape[:2], -1)).view_as(weight))
    captured = capture_heads(
        model, inputs={"input_ids": ids, "position_ids": positions}, layers=[LAYER]
    )
    with torch.no_grad():
        weight.copy_(before)
    return captured


def scores(captured: Captured, M: Any = None) -> Float[np.ndarray, "query head token"]:
    """Scores ``k^T M q``, those of the model without ``M``; zero where they are masked."""
    layer = captured.layer(LAYER)
    keys = np.repeat(layer.keys, layer.heads // layer.keys.shape[1], axis=1)
    queries = layer.queries if M is None else np.einsum("hvw,qhw->qhv", M, layer.queries)
    return np.einsum("qhtw,qhw->qht", keys, queries) * layer.allowed[:, None]


def tokens_of(captured: list[Captured]) -> at.Tokens:
    """Keys and queries of every head, each an instance, and random scores of its tokens."""
    random, found = np.random.default_rng(0), []
    for layer in (one.layer(LAYER) for one in captured):
        keys = np.repeat(layer.keys, layer.heads // layer.keys.shape[1], axis=1).swapaxes(0, 1)
        mask = np.broadcast_to(layer.allowed, keys.shape[:3])
        found.append((keys, layer.queries.swapaxes(0, 1), mask[:, :, None]))
    keys, queries, mask = map(np.concatenate, zip(*found, strict=True))
    values = random.standard_normal((*keys.shape[:3], 1))
    return at.Tokens(keys, queries, np.ones(keys.shape[:2]), mask, values)


def pairings(sizes: Sizes, tokens: at.Tokens) -> list[Pairings]:
    """The pairings of every arm, trained from the same tokens."""
    descent, shape = at.normalized_gradient_descent(RATE), (sizes.models, sizes.heads)

    def trained(parameterization: Any, initial: float) -> list[Pairings]:
        run = at.train(
            tokens, LinearHead([1.0]), descent, steps=sizes.steps, initial=initial,
            parameterization=parameterization, record=[sizes.early, sizes.steps],
        )  # fmt: skip
        every = [run.W(step=step)[:, 0] for step in (sizes.early, sizes.steps)]
        return [one.reshape(*shape, sizes.width, sizes.width) for one in every]

    early, whole = trained("W", 0.0)
    early_factors, factors = trained(KeyQuery(sizes.width), SCALE)
    random = np.random.default_rng(1)
    turns = [random_rotation(random, sizes.width) for _ in range(sizes.models * sizes.heads)]
    rotated = np.reshape(turns, factors.shape) @ factors
    itself = np.tile(np.eye(sizes.width), (*shape, 1, 1))
    return [whole, factors, early, early_factors, rotated, factors, itself]


def control(sizes: Sizes) -> list[Found]:
    """Trains pairings, folds them into the models, and audits these."""
    models = [model_of(sizes, seed) for seed in range(sizes.models)]
    identity = np.tile(np.eye(sizes.width), (sizes.heads, 1, 1))
    plain = [captured_of(model, sizes, identity, "trained on") for model in models]
    found = []
    for arm, made in zip(ARMS, pairings(sizes, tokens_of(plain)), strict=True):
        texts = "others" if "other texts" in arm.name else "trained on"
        verdicts, ratios, errors = [], [], []
        for model, before, M in zip(models, plain, made, strict=True):
            captured = captured_of(model, sizes, M, texts)
            moved = captured_of(model, sizes, M, texts, SHIFT)
            own = scores(captured)
            expected = own if texts == "others" else scores(before, M)
            largest = np.abs(own).max()
            difference = own - expected, own - scores(moved)
            errors.append([np.abs(one).max() / largest for one in difference])
            data = at.audit_heads(
                captured, draws=sizes.draws, training_texts=True, norms=NORMS,
                margin_draws=sizes.draws,
            ).data.sel(layer=LAYER)  # fmt: skip
            verdicts += data["margin"].to_numpy().tolist()
            ratios.append(data["margin_ratio"].to_numpy())
        worst = np.max(errors, axis=0).tolist()
        found.append(Found(arm, np.array(verdicts), np.concatenate(ratios), *worst))
    return found


def row(found: Found) -> str:
    """The line of an arm: ratios by their median and extremes, counts with 95 % intervals."""
    low, middle, high = np.quantile(found.ratio, [0, 0.5, 1], axis=0)
    ratios = " | ".join(
        f"{m:.3f} ({a:.3f} to {b:.3f})" for a, m, b in zip(low, middle, high, strict=True)
    )
    counted = zip(*np.unique(found.verdict, return_counts=True), strict=True)
    verdicts = ", ".join(f"{count} {word}" for word, count in counted)
    right = [found.arm.right(verdict) for verdict in found.verdict.tolist()]
    interval = binomtest(sum(right), len(right)).proportion_ci()
    share = f"{sum(right)} of {len(right)} [{interval.low:.2f}, {interval.high:.2f}]"
    return f"| {found.arm.name} | {ratios} | {verdicts} | {share} |"


def main() -> None:
    """Prints the table."""
    found = control(Sizes())
    print(f"{Sizes()}\n")
    print("| heads | margin ratio, Frobenius | nuclear | verdicts | right |\n" + "| --- " * 5 + "|")
    print(*map(row, found), sep="\n")
    scores, shifts = (
        max(getattr(one, name) for one in found) for name in ("score_error", "shift_error")
    )
    print(f"\nScores in the model differ from those trained by {scores:.1e} of the largest,")
    print(f"and where all positions move by {SHIFT} they change by {shifts:.1e} of it.")


if __name__ == "__main__":
    sys.exit(main())
