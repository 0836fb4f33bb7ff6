"""Shares of runs by where they end, and their drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from attractor.margin import MarginProblem, decompose, solve
from attractor.margin.selection import Selection
from attractor.plots.design.look import COLORS
from attractor.plots.design.roles import DASHED, DOTTED, SOLID, ordered_line_styles
from attractor.tokens import Tokens

PREDICTIONS = ("both parts", "direction", "single token")
"""``W_fin + R W_dir``; ``W_dir``; and the solution for the token attended to most alone."""
OUTCOMES = ("passes", "ambiguous", "all tokens kept", "infeasible")
"""Outcomes of the published filter: a trial passes, or the reason why not."""
REASONS = {
    "passes": "passes the filter",
    "ambiguous": "a weight between $10^{-6}$ and $10^{-3}$",
    "all tokens kept": "no token given up",
    "infeasible": "no margin solution",
}
"""The same in words."""


def compared_with_parts(
    tokens: Tokens,
    W: Float[np.ndarray, "instance step d e"],
    last_weights: Float[np.ndarray, "instance step d e"] | None = None,
) -> xr.Dataset:
    """Decomposes the last weights of attention and measures every step against the parts.

    Tokens with a weight of at least 1e-3 are kept. The published filter rejects a trial with a
    weight between 1e-6 and 1e-3, one that keeps all its tokens, and one without a solution.

    Args:
        tokens: The data sets, of one query a sequence.
        W: Trained matrices.
        last_weights: Matrices whose last is to give the weights; W itself if None. The published
            code takes those of the step before the last.

    Returns:
        Over (data_set, step, prediction): ``error``, 1 - correlation of W with what is predicted
        from the last step; NaN without a direction. Over (data_set, sequence) ``several``, whether
        more than one token is kept. Over data_set: ``outcome``, ``kept``, the mean number of tokens
        kept, ``largest_given_up``, the largest weight of another, as a power of ten,
        ``closed_form``, by how much the closed form of the last correlation is off, and
        ``angle``, the cosine between both parts.
    """
    end, own = W[:, -1], last_weights is None
    scores = tokens.scores(end if last_weights is None else last_weights[:, -1])
    parts = decompose(tokens, scores, logarithmic=True)
    attended = Selection.from_index(tokens, scores.argmax(-1)[..., 0])
    single = solve(MarginProblem.from_selection(tokens, attended))
    directed = ~parts.all_kept & np.isfinite(parts.directional.value)
    solved = directed & np.isfinite(parts.finite.value) & np.isfinite(single.value)
    predicted = (parts.nearest(end), parts.directional.W, single.W)
    errors = [1 - _cosine(W, one[:, None]) for one in predicted]
    kept, ambiguous = parts.selection.mask, np.asarray(parts.ambiguous.any((-1, -2)))
    outcome = np.select([ambiguous, parts.all_kept, ~solved], [1, 2, 3], 0)  # as in OUTCOMES
    logs = (scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)) / np.log(10)
    found = xr.Dataset(
        {
            "error": (
                ("data_set", "step", "prediction"),
                np.where(solved[:, None, None], np.stack(errors, -1), np.nan),
            ),
            "outcome": ("data_set", outcome.astype("int8")),
            "kept": ("data_set", kept.sum(-1).mean((-1, -2))),
            "several": (("data_set", "sequence"), kept.sum(-1)[..., 0] > 1),
            "largest_given_up": ("data_set", np.where(kept, -np.inf, logs).max((-1, -2, -3))),
            "angle": ("data_set", np.abs(_cosine(parts.finite.W, parts.directional.W))),
        },
        {"prediction": list(PREDICTIONS), "data_set": tokens.instance_numbers},
    )
    closed = parts.closed_form_correlation(end) if own else np.full(len(end), np.nan)
    last = np.where(solved, 1 - parts.correlation(end), np.nan)
    found["closed_form"] = ("data_set", np.abs(1 - closed - last))
    return found


def _cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Correlations of matrices; NaN where one is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        lengths = np.linalg.norm(A, axis=(-1, -2)) * np.linalg.norm(B, axis=(-1, -2))
        return (A * B).sum((-1, -2)) / lengths


LABELS = {
    "both parts": r"$W_{\mathrm{fin}} + R\,W^{mm}$, both parts",
    "direction": "$W^{mm}$, directional part",
    "single token": "solution for a single token",
}
STYLES = {
    "both parts": {"color": COLORS["blue"], "linestyle": SOLID},
    "direction": {"color": COLORS["orange"], "linestyle": DOTTED},
    "single token": {"color": COLORS["green"], "linestyle": DASHED},
}
_FACES = {
    "passes": (COLORS["blue"], ""),
    "ambiguous": (COLORS["yellow"], "////"),
    "all tokens kept": ("#d9d9d9", "...."),
    "infeasible": (COLORS["black"], ""),
}
_SMALLEST = -30
"""Smaller weights are drawn here, as powers of ten."""


def error_curves(axes: Axes, errors: xr.DataArray, count: int) -> None:
    """Draws the mean of 1 - correlation with each prediction against the step.

    Args:
        axes: Where to draw.
        errors: Over (trial, step, prediction); NaN of trials left out.
        count: How many trials these are, written into the panel.
    """
    axes.set_yscale("log")
    for name, label in LABELS.items():
        one = errors.sel(prediction=name).dropna("trial")
        axes.plot(one["step"], one.mean("trial"), label=label, **STYLES[name])
    axes.text(0.96, 0.95, f"{count}", transform=axes.transAxes, ha="right", va="top", fontsize=7)
    axes.set(ylim=(1e-3, 1.2), xticks=(0, 1000, 2000))


def outcome_bars(axes: Axes, data: xr.Dataset, along: str) -> None:
    """Draws how many trials pass the filter and why the others do not, a bar for each kernel.

    Args:
        axes: Where to draw.
        data: ``outcome`` over (kernel, ``along``, trial), places in ``OUTCOMES``, -1 for none.
        along: The dimension that bars vary along.
    """
    kernels = data["kernel"].values
    width = 0.8 / len(kernels)
    present = [number for number in range(len(OUTCOMES)) if (data["outcome"] == number).any()]
    for slot, kernel in enumerate(kernels):
        outcome = data["outcome"].sel(kernel=kernel)
        places = np.arange(data.sizes[along]) + width * (slot - (len(kernels) - 1) / 2)
        total, bottom = (outcome >= 0).sum("trial").values, np.zeros(len(places))
        for number in present:
            counts = (outcome == number).sum("trial").transpose(along).values
            (color, hatch), words = _FACES[OUTCOMES[number]], REASONS[OUTCOMES[number]]
            bars = axes.bar(places, counts / total, 0.94 * width, bottom, facecolor=color)
            for bar in bars:
                bar.set(hatch=hatch, edgecolor="white", linewidth=0.5)
            bars.set_label(words if slot == 0 else "_")
            if number == 0:
                shares = [f"{100 * share:.3g} %" for share in counts / total]
                axes.bar_label(bars, shares, fontsize=6, padding=1.5, path_effects=_halo())
            bottom = bottom + counts / total
        for place in places if len(kernels) > 1 else ():
            word: Any = {"rotation": 90, "ha": "center", "va": "center", "fontsize": 6}
            axes.text(place, 0.6, str(kernel), path_effects=_halo(), **word)
    axes.set_xticks(np.arange(data.sizes[along]), [f"{value:g}" for value in data[along].values])
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_ylim(0, 1)
    axes.grid(False, axis="x")


def outcome_scatter(axes: Axes, data: xr.Dataset, along: str) -> None:
    """Draws the last error against the largest weight given up; what a filter rejects is shaded.

    Args:
        axes: Where to draw.
        data: ``error`` and ``largest_given_up`` over (``along``, trial), of one kernel.
        along: The dimension that colors vary along.
    """
    axes.set_yscale("log")
    axes.axvspan(-6, -3, color="#eeeeee", zorder=0, linewidth=0)
    word: Any = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 6}
    axes.text(-4.5, 0.04, "rejected", transform=axes.get_xaxis_transform(), **word)
    for value, look in zip(data[along].values, ordered_line_styles(data.sizes[along]), strict=True):
        one = data.sel({along: value})
        error = one["error"].isel(step=-1).sel(prediction="both parts")
        weight = one["largest_given_up"].clip(min=_SMALLEST)
        label = f"${along} = {value:g}$"
        axes.plot(weight, error, linestyle="none", markersize=2.2, alpha=0.7, label=label, **look)
    axes.set(xlim=(_SMALLEST - 1, -2.7), ylabel="1 \N{MINUS SIGN} correlation, both parts")
    places = (_SMALLEST, -20, -10, -6, -3)
    names = [f"\N{MINUS SIGN}{-place}" for place in places]
    axes.set_xticks(places, [f"\N{LESS-THAN OR EQUAL TO} {names[0]}", *names[1:]])
    axes.legend(loc="lower center", ncols=2, markerscale=1.5, handletextpad=0.1, borderaxespad=0.1)
    axes.set_xlabel("largest weight given up, logarithm to base 10")


def _halo() -> list[Any]:
    return [patheffects.withStroke(linewidth=2.0, foreground="white")]
