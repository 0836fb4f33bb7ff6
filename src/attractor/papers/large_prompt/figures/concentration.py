"""Outputs and gradients of one head on longer and longer prompts."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least, by_size, close_to
from attractor.papers.large_prompt.regimes import (
    DIMENSION,
    REGIMES,
    by_regime,
    covariances,
    random_head,
    softmax_mean,
)
from attractor.plots.design.look import SERIES, panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.prompts.finite_length import averaged_error_of_output, finite_length_error
from attractor.results.paper import LARGE_PROMPT

_QUANTITIES = ("output", "gradient in U", "gradient in V")
_QUERIES = 36
_EXACT_QUERIES = 24
_SLOPES = {
    "identity": (-1.1088, -0.9384, -1.0488),
    "Toeplitz": (-0.9458, -0.9739, -1.0051),
    "rotated": (-0.8317, -0.9238, -0.8339),
}
"""Slopes of an independent program on the same random numbers."""
_CORNERS = {
    "identity": (0.0102086, 0.00013267),
    "Toeplitz": (0.0120246, 0.00027191),
    "rotated": (0.0104560, 0.00025285),
}
"""Its errors of the output at 16 and 1,024 tokens."""
_PROMPTS, _LENGTHS = 8, tuple(2**power for power in range(4, 11))


def _compute(request: Request) -> xr.Dataset:
    lengths = np.array(_LENGTHS)
    scores, values = random_head()
    found = np.empty((len(REGIMES), len(_QUANTITIES), len(lengths), request.seeds))
    exact = np.empty(found.shape[:3])
    for place, covariance in enumerate(covariances()):
        request.uses(REGIMES[place], covariance=covariance, scores=scores, values=values)
        for column, length in enumerate(_LENGTHS):
            for number in range(request.seeds):
                stream = 100_000 * place + 1_000 * length + number + request.seed
                found[place, :, column, number] = _errors(
                    np.random.default_rng(stream), length, covariance, scores, values
                )
        exact[place] = _exact_errors(covariance, scores, values, lengths)
    return xr.Dataset(
        {
            "squared_error": (("regime", "quantity", "length", "seed"), found),
            "expected_squared_error": (("regime", "quantity", "length"), exact),
        },
        {
            "regime": list(REGIMES),
            "quantity": list(_QUANTITIES),
            "length": lengths,
            "seed": np.arange(request.seed, request.seed + request.seeds),
        },
    )


def _errors(
    draws: np.random.Generator,
    length: int,
    covariance: Float[np.ndarray, "d d"],
    scores: Float[np.ndarray, "d d"],
    values: Float[np.ndarray, "d d"],
) -> tuple[float, float, float]:
    """Mean squared errors of an entry, over the queries of one prompt."""
    tokens = draws.standard_normal((length, DIMENSION)) @ np.linalg.cholesky(covariance).T
    queries = draws.standard_normal((_QUERIES, DIMENSION))
    directions = queries @ scores.T
    mean, weights = softmax_mean(tokens, directions)
    off_mean = mean - directions @ covariance
    second = np.einsum("ql,li,lj->qij", weights, tokens, tokens)
    off_covariance = second - mean[:, :, None] * mean[:, None, :] - covariance
    of_scores = np.einsum("ij,qjk,ql->qikl", values, off_covariance, queries)
    return (
        float(np.mean((off_mean @ values.T) ** 2)),
        float(np.mean(of_scores**2)),
        float(np.mean(off_mean**2)),
    )


def _exact_errors(
    covariance: Float[np.ndarray, "d d"],
    scores: Float[np.ndarray, "d d"],
    values: Float[np.ndarray, "d d"],
    lengths: np.ndarray,
) -> Float[np.ndarray, "quantity length"]:
    """The expected errors: that of the gradient in U over some queries, else over all."""
    law = covariance, scores
    identity = np.eye(DIMENSION)
    output = averaged_error_of_output(*law, values, identity, lengths) / DIMENSION
    of_values = averaged_error_of_output(*law, identity, identity, lengths) / DIMENSION
    queries = np.random.default_rng(0).standard_normal((_EXACT_QUERIES, DIMENSION))
    root = np.linalg.cholesky(queries.T @ queries / _EXACT_QUERIES)
    whitened = np.linalg.solve(root, queries.T).T
    errors = finite_length_error(*law, values, whitened[:, None], lengths)
    of_scores = errors.score_gradient.mean(axis=0) / DIMENSION**3
    return np.stack([output, of_scores, of_values])


def _slopes(data: xr.Dataset) -> xr.DataArray:
    """Slopes of the mean error against the length, both as logarithms."""
    mean = np.log(data["squared_error"].mean("seed"))
    x = np.log(data["length"]) - np.log(data["length"]).mean()
    return (mean * x).sum("length") / (x**2).sum("length")


def _readings(data: xr.Dataset) -> Readings:
    slopes = _slopes(data)
    found = [
        at_least("steepest slope", slopes.min(), -1.5),
        at_least("flattest slope, with the sign changed", -slopes.max(), 0.6),
    ]
    if data.sizes["seed"] == _PROMPTS and int(data["seed"][0]) == 0:
        mean = data["squared_error"].mean("seed").sel(quantity="output")
        for regime in REGIMES:
            pairs = zip(_QUANTITIES, _SLOPES[regime], strict=True)
            found += [
                close_to(f"{regime}: slope of the {quantity}",
                         slopes.sel(regime=regime, quantity=quantity), slope, 1e-4)
                for quantity, slope in pairs
            ]  # fmt: skip
            ends = zip((16, 1024), _CORNERS[regime], strict=True)
            found += [
                close_to(f"{regime}: error of the output at {length} tokens",
                         mean.sel(regime=regime, length=length), error, 1e-3 * error)
                for length, error in ends
            ]  # fmt: skip
    return Readings(
        *found,
        queries=_QUERIES,
        comparisons=data["squared_error"].size // 3 * _QUERIES,
        slopes=by_regime(slopes, ".4f"),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.7, 1, 3, sharex=True)
    lengths = data["length"].values
    slopes = _slopes(data)
    for axes, quantity in zip(panels, _QUANTITIES, strict=True):
        chosen = data.sel(quantity=quantity)
        axes.set(xscale="log", yscale="log", xlabel="tokens in the prompt, $L$")
        axes.set_title(quantity.replace(" U", " $U$").replace(" V", " $V$"))
        for regime, look in zip(REGIMES, SERIES, strict=False):
            one, color = chosen.sel(regime=regime), look["color"]
            axes.plot(lengths, one["squared_error"].mean("seed"), "o", markersize=3.5,
                      label=f"{regime} covariance", color=color)  # fmt: skip
            for prompt in one["squared_error"].values.T:
                axes.plot(lengths, prompt, ".", markersize=2, alpha=0.35, color=color)
            axes.plot(lengths, one["expected_squared_error"], label=f"{regime}, expected", **look)
        words = ", ".join(f"{float(s):.2f}" for s in slopes.sel(quantity=quantity))
        axes.annotate(f"slopes {words}", (0.04, 0.05), xycoords="axes fraction", fontsize=7)
        axes.set_xticks([16, 64, 256, 1024], ["16", "64", "256", "1,024"])
        axes.minorticks_off()
    panels[0].set_ylabel("mean squared error of an entry")
    panel_letters(panels)
    shared_legend(figure, panels[:1], columns=3)
    return figure


CONCENTRATION = Figures(LARGE_PROMPT).figure(
    "concentration",
    "errors of output and gradients against the length of the prompt, three covariances",
    statement="experiment: concentration of output and gradients",
    published="not seen; the numbers compared with are those of an independent replication",
    sizes=by_size(seeds=_PROMPTS),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Squared errors of output and gradients of a softmax head on finite prompts against the "
        "closed forms of infinite ones, for Gaussian tokens in four dimensions with three "
        "covariances: means over {sizes[seed]} prompts of {queries} queries each (large dots; "
        "single prompts small; {comparisons:,} comparisons), and the exact expectations (lines). "
        "Slopes of output, gradient in U and gradient in V: {slopes}. With so few independent "
        "prompts slopes are uncertain by about 0.1; queries of one prompt share its tokens. The "
        "exact slopes tend to -1, as scores are small."
    ),
)
