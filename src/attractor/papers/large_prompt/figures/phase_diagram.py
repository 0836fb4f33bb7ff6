"""The error of finite prompts by length and horizon, and the power at which it falls."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_most, by_size, close_to
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._style import COLORS, panels_on_page
from attractor.plots.pairs import panel_letters
from attractor.plots.roles import DASH_DOTTED, DASHED, DOTTED
from attractor.prompt.finite_length import error_exponent, output_error

_LONGEST = 12
_MARKED = {0.5: 1.000, 0.85: 0.758, 1.0: 0.602, 2.0: 0.236, 2.5: 0.176}
"""Slopes between 1e11 and 1e12 tokens, computed independently."""
_LIMITS = {0.2: 1.0879, 0.3: 1.2255, 0.5: 2.1213}
"""Limits of ``L`` times the squared error."""
_SLOPES = (3, 6, 12)
_FURTHEST, _KNOTS, _NODES, _TAIL = 20.0, 141, 200, 9.0
_DRAWN = 240


def _compute(request: Request) -> xr.Dataset:
    marked = {*_MARKED, *_LIMITS}
    grid = np.geomspace(0.1, 2.5, request.settings["horizons"])
    horizons = np.array(sorted({*grid.tolist(), *marked}))
    step = request.settings["lengths"]
    lengths = np.geomspace(1, 10**_LONGEST, step * _LONGEST + 1)
    errors = _averaged_errors(horizons, lengths)
    request.uses("horizons", horizons=horizons, lengths=lengths)
    log = np.log10(errors)
    ends = [int(np.argmin(np.abs(np.log10(lengths) - power))) for power in _SLOPES]
    slopes = np.stack([log[:, end - step] - log[:, end] for end in ends], axis=1)
    return xr.Dataset(
        {
            "squared_error": (("horizon", "length"), errors),
            "slope": (("horizon", "up_to"), slopes),
            "exponent": ("horizon", error_exponent(horizons)),
        },
        {"horizon": horizons, "length": lengths, "up_to": [10.0**power for power in _SLOPES]},
    )


def _averaged_errors(
    horizons: Float[np.ndarray, "horizon"], lengths: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "horizon length"]:
    """Errors averaged over queries ``N(0, H^2)``, for many horizons from one table."""
    # The logarithm of the error is smooth in the score deviation: one spline serves all horizons.
    deviations = np.linspace(0, _FURTHEST, _KNOTS)
    table = np.log(output_error(deviations[:, None], lengths))
    spline = scipy.interpolate.make_interp_spline(deviations, table, k=5, axis=0)
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    found = []
    for h in horizons:
        end = min(_FURTHEST, _TAIL * h)
        nodes = (x + 1) * end / 2
        density = np.exp(-((nodes / h) ** 2) / 2) / (h * np.sqrt(2 * np.pi))
        found.append((weight * end * density) @ np.exp(spline(nodes)))
    return np.array(found)


def _readings(data: xr.Dataset) -> Readings:
    slopes = data["slope"].sel(up_to=10.0**_LONGEST)
    last = data["squared_error"].isel(length=-1) * data["length"][-1]
    found = [
        close_to(
            f"H = {h:g}: exponent from 1e11 to 1e12 tokens", slopes.sel(horizon=h), slope, 1e-3
        )
        for h, slope in _MARKED.items()
    ]
    found += [
        close_to(f"H = {h:g}: L times the squared error at 1e12 tokens",
                 last.sel(horizon=h), limit, 1e-4)
        for h, limit in _LIMITS.items()
    ]  # fmt: skip
    off = float(np.abs(slopes - data["exponent"]).max())
    exponents = ", ".join(
        f"{h:g}: {slopes.sel(horizon=h):.3f} ({data['exponent'].sel(horizon=h):.3f})"
        for h in _MARKED
    )
    return Readings(
        *found,
        at_most("largest distance of the exponent from its limit", off, 0.08),
        exponents=exponents,
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, (left, right) = panels_on_page(3.0, 1, 2, width_ratios=(1.5, 1))
    horizons, lengths = data["horizon"].values, data["length"].values
    known = np.log10(np.sqrt(data["squared_error"].values) / horizons[:, None])
    smooth = scipy.interpolate.make_interp_spline(np.log10(lengths), known, axis=1)
    lengths = np.geomspace(1, lengths[-1], _DRAWN)  # contours bend at every length that is drawn
    relative = smooth(np.log10(lengths))
    left.set(xscale="log", yscale="log", xlabel="tokens in the prompt, $L$", ylabel="horizon $H$")
    levels = np.linspace(-2, 0, 9)
    image = left.contourf(lengths, horizons, relative, levels=levels, cmap="viridis", extend="both")
    line: dict[str, Any] = {"colors": "white", "linewidths": 1.4, "linestyles": "solid"}
    left.contour(lengths, horizons, relative, levels=[-1], **line)
    left.plot(np.exp(horizons**2 / 2), horizons, color="white", linestyle=DOTTED)
    left.axhline(np.sqrt(0.5), color="white", linestyle=DASH_DOTTED, linewidth=0.9)
    left.set(xlim=(1, lengths[-1]), ylim=(horizons[0], horizons[-1]))
    left.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
    left.minorticks_off()
    left.grid(False)
    left.set_title("relative error")
    ticks = np.log10([0.01, 0.03, 0.1, 0.3, 1]).tolist()
    bar = figure.colorbar(image, ax=left, pad=0.02, ticks=ticks)
    bar.ax.set_yticklabels(["1 %", "3 %", "10 %", "30 %", "100 %"])
    bar.ax.minorticks_off()
    colors = (COLORS["sky"], COLORS["blue"], COLORS["orange"])
    for power, color in zip(_SLOPES, colors, strict=True):
        curve = data["slope"].sel(up_to=10.0**power)
        words = f"$10^{{{power - 1}}}$ to $10^{{{power}}}$ tokens"
        right.plot(horizons, curve, color=color, label=words)
    right.plot(horizons, data["exponent"], color=COLORS["black"], linestyle=DASHED,
               label=r"$\alpha(H)$")  # fmt: skip
    right.plot(horizons, 1 / (1 + horizons**2), color=COLORS["gray"], linestyle=DOTTED,
               label="$1/(1 + H^2)$")  # fmt: skip
    right.set(xlabel="horizon $H$", ylabel="exponent of the squared error", ylim=(0, 1.08))
    right.set_title("rate")
    right.legend(fontsize=7)
    panel_letters((left, right))
    return figure


PHASE_DIAGRAM = Figures(LARGE_PROMPT).figure(
    "phase-diagram",
    "error of a finite prompt by length and horizon, and the power at which it falls",
    statement="concentration of the output, exactly for Gaussian tokens",
    published="none; the theorem has a power of the length that falls with the horizon",
    sizes=by_size(seeds=1, horizons=[60, 60, 120], lengths=[2, 4, 8]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "The error of a finite prompt averaged over prompts and Gaussian queries, one dimension, "
        "exactly: (a) root-mean-square error over the horizon H (white: 10 %; dotted: L = "
        "exp(H^2/2), left of which a typical query sees a frozen softmax; dash-dotted: H = 0.707), "
        "(b) the power of the length at which the squared error falls, between lengths and in the "
        "limit, alpha(H) = 1 up to H = 0.707 and (sqrt(1 + 4/H^2) - 1)/2 beyond; and 1/(1 + H^2), "
        "a reference of other work for another statistic. Exponents from 1e11 to 1e12 tokens (in "
        "the limit) by horizon: {exponents}. The limit is derived by a heuristic, and powers of "
        "log L die out slowly."
    ),
)
