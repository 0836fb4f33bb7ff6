"""Heads trained on prompts of several lengths: their risk, and their distance from the limit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least, by_size, close_to
from attractor.papers.large_prompt.regimes import (
    DIMENSION,
    REGIMES,
    TARGET,
    covariances,
    prompts,
    risk_gradient,
)
from attractor.plots.design.look import SERIES, panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.prompts.finite_length import ErrorTable, error_table
from attractor.results.paper import LARGE_PROMPT
from attractor.support.precision import double_precision

_LENGTHS = (16, 64, 256, 1024)
_STEPS, _BATCH, _RATE = 220, 24, 0.025
_QUERIES = 4000
_LARGEST = 8.0
_ENDS = (0.2974, 0.00552)
"""Mean risk at 16 and 1,024 tokens, identity covariance, of an independent program."""
_RATIOS = {"identity": 53.9, "Toeplitz": 44.3, "rotated": 43.9}
"""Its ratios of the two."""
_UNCERTAIN = 0.45
"""Share of the ratio by which single models differ."""


def _compute(request: Request) -> xr.Dataset:
    found = covariances()
    request.uses("covariances", covariances=found)
    shape = (len(REGIMES), len(_LENGTHS), request.seeds)
    risk, distance = np.empty(shape), np.empty(shape)
    limits = TARGET * np.linalg.inv(found)
    with request.bar("heads", len(_LENGTHS)) as advance:
        for column, length in enumerate(_LENGTHS):
            table = error_table(length, _LARGEST)
            heads = _train(found, length, request)
            for place, covariance in enumerate(found):
                for number, scores in enumerate(heads[place]):
                    risk[place, column, number] = _risk(covariance, scores, table)
                    off = scores - limits[place]
                    distance[place, column, number] = float(np.sum(off**2))
            advance(1)
    axes = ("regime", "length", "seed")
    return xr.Dataset(
        {"risk": (axes, risk), "squared_distance": (axes, distance)},
        {
            "regime": list(REGIMES),
            "length": list(_LENGTHS),
            "seed": np.arange(request.seed, request.seed + request.seeds),
        },
    )


def _train(
    covariance: Float[np.ndarray, "regime d d"], length: int, request: Request
) -> Float[np.ndarray, "regime seed d d"]:
    """Score matrices trained from zero with Adam on fresh prompts."""
    shape = (len(covariance), request.seeds, DIMENSION, DIMENSION)
    law = np.broadcast_to(covariance[:, None, None], (*shape[:2], _BATCH, DIMENSION, DIMENSION))
    draws = np.random.default_rng([request.seed, 37, length])
    adam = optax.adam(_RATE)
    with double_precision():
        scores = np.zeros(shape)
        memory, update = adam.init(jnp.asarray(scores)), jax.jit(adam.update)
        for _ in range(_STEPS):
            tokens, queries = prompts(draws, (*shape[:2], _BATCH), length, law)
            step, memory = update(risk_gradient(scores, tokens, queries), memory)
            scores = scores + np.asarray(step)
    return scores


def _risk(
    covariance: Float[np.ndarray, "d d"], scores: Float[np.ndarray, "d d"], table: ErrorTable
) -> float:
    """The risk of a head: exact averages over prompts, the mean over many queries."""
    queries = np.random.default_rng(0).standard_normal((_QUERIES, DIMENSION))
    directions = queries @ scores.T
    limit = directions @ covariance
    variance = np.sum(directions * limit, axis=-1)
    deviation = np.sqrt(variance)
    weights = np.asarray(table.sum_of_squared_weights(deviation))
    along = np.asarray(table.output_error(deviation))
    # The error of the output along Gamma a has the table's value; across it tokens are independent
    # of the weights, and their variance, times the sum of squared weights, is what is left.
    spread = np.sum(limit**2, axis=-1) / variance
    error = spread * along + (np.trace(covariance) - spread) * weights
    off = limit - TARGET * queries
    # By Stein's identity the mean output is (1 - sum of squared weights) times the limit.
    shrunk = -2 * weights * np.sum(limit * off, axis=-1)
    return float(np.mean(error + shrunk + np.sum(off**2, axis=-1)))


def _readings(data: xr.Dataset) -> Readings:
    risk = data["risk"].mean("seed")
    distance = data["squared_distance"].mean("seed")
    found = [
        close_to(f"identity: mean risk at {length:,} tokens",
                 risk.sel(regime="identity", length=length), value, 0.1 * value)
        for length, value in zip((16, 1024), _ENDS, strict=True)
    ]  # fmt: skip
    uncertain = _UNCERTAIN / np.sqrt(data.sizes["seed"])
    nearer = distance.sel(length=16) / distance.sel(length=1024)
    lines = []
    for regime, value in _RATIOS.items():
        short, long = (risk.sel(regime=regime, length=length) for length in (16, 1024))
        ratio = short / long
        lines.append(
            f"{regime} {short:.4f} to {long:.5f}, distance shrinks by a factor of "
            f"{nearer.sel(regime=regime):.0f}"
        )
        words = f"{regime}: risk at 16 over that at 1,024 tokens"
        found.append(close_to(words, ratio, value, uncertain * value))
    found.append(at_least("smallest ratio of squared distances from the limit", nearer.min(), 5.0))
    return Readings(
        *found,
        models=data["risk"].size,
        target=TARGET,
        steps=_STEPS,
        rate=_RATE,
        batch=_BATCH,
        risks="; ".join(lines),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.7, 1, 2)
    names = {"risk": "risk", "squared_distance": r"$\Vert U - U^*\Vert^2$"}
    for axes, (name, label) in zip(panels, names.items(), strict=True):
        axes.set(xscale="log", yscale="log", xlabel="tokens in the prompt, $L$", ylabel=label)
        for regime, look in zip(REGIMES, SERIES, strict=False):
            one = data[name].sel(regime=regime)
            axes.plot(_LENGTHS, one.mean("seed"), label=f"{regime} covariance", **look)
            for trial in one.transpose("seed", "length").values:
                axes.plot(_LENGTHS, trial, "o", markersize=2.5, color=look["color"], alpha=0.6)
        axes.set_xticks(_LENGTHS, [f"{length:,}" for length in _LENGTHS])
        axes.minorticks_off()
    panel_letters(panels)
    shared_legend(figure, panels[:1])
    return figure


TRAINED_MODELS = Figures(LARGE_PROMPT).figure(
    "trained-models",
    "heads trained on longer prompts: lower risk, nearer to the limit of infinite prompts",
    statement="experiment: trained heads",
    published="not seen; means of 36 models of an independent replication are compared with ours",
    sizes=by_size(seeds=[1, 3, 3]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "{models} score matrices trained from zero to return {target:g} of the query, on fresh "
        "prompts of one length ({steps} steps of Adam with rate {rate:g}, {batch} prompts each): "
        "their exact risk on such prompts, and the squared distance from the matrix that is exact "
        "on infinite ones (lines: means). Mean risk at 16 and at 1,024 tokens: {risks}."
    ),
)
