"""The limit of mirror descent on keys and queries: neither the nuclear nor the l_p solution."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.optimize import nnls

from attractor.geometry import Geometry, Lp, Nuclear
from attractor.margin import MarginProblem, Solution, solve
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size, stacked
from attractor.papers.mirror_descent.data import EXPONENTS, normal_weights
from attractor.papers.mirror_descent.figures._random_data import data_sets
from attractor.papers.paper import MIRROR_DESCENT
from attractor.plots._style import panels_on_page
from attractor.plots.bands import band
from attractor.plots.pairs import shared_legend
from attractor.plots.roles import line_style
from attractor.selection import Selection
from attractor.tokens import Tokens
from attractor.training import mirror_descent, train

RATES = {1.75: 0.1, 2.0: 0.1, 3.0: 1.0}
"""Learning rates; with p = 3 norms grow like the square root of the steps."""
_RECORDS = 25
_PANELS = {
    "nuclear_ratio": r"$1 -$ margin ratio, nuclear norm",
    "entrywise_ratio": r"$1 -$ margin ratio, norm $\ell_p$",
    "residual": "distance from stationary",
}
_NEAR = 0.2
"""Constraints whose margin exceeds the least by no more than this part of it may push."""


def _compute(request: Request) -> xr.Dataset:
    tokens, head = data_sets(request)
    start = {
        "K": 0.1 * normal_weights(tokens, request.seed, "keys"),
        "Q": normal_weights(tokens, request.seed, "queries"),
    }
    found = []
    for p in EXPONENTS:
        steps = request.settings["steps"]
        run = train(
            tokens,
            head,
            mirror_descent(RATES[p], p, per_factor=False),
            steps=steps,
            initial=start,
            parameterization="KQ",
            record=np.unique(np.rint(np.geomspace(steps / 200, steps, _RECORDS)).astype(int)),
            checkpoint=request.checkpoint(f"{p:g}"),
            progress=request.progress,
        ).data.isel(seed=0)
        end = Selection.from_index(tokens, run["attended"].values[:, -1])
        K, Q, W = (run[name].values for name in ("K", "Q", "W"))
        along = ("instance", "record")
        found.append(
            xr.Dataset(
                {
                    "nuclear_ratio": (along, _margin_ratios(W, tokens, end, Nuclear())),
                    "entrywise_ratio": (along, _margin_ratios(W, tokens, end, Lp(p))),
                    "residual": (along, _residuals(K, Q, tokens, end, p)),
                    "step": ("record", run["step"].values),
                },
                {"instance": tokens.instance_numbers},
            )
        )
    return stacked(found, "p", EXPONENTS)


def _margin_ratios(
    W: np.ndarray, tokens: Tokens, selection: Selection, geometry: Geometry
) -> np.ndarray:
    solution = solve(MarginProblem.from_selection(tokens, selection), geometry)
    assert isinstance(solution, Solution)
    least = np.stack([solution.problem.margins(each).min(-1) for each in np.moveaxis(W, 1, 0)], 1)
    return least / geometry.norm(W) * solution.value[:, None]


def _residuals(
    K: np.ndarray, Q: np.ndarray, tokens: Tokens, selection: Selection, p: float
) -> np.ndarray:
    found = np.empty(K.shape[:2])
    for i in range(len(K)):
        problem = MarginProblem.from_selection(tokens[i], selection[i])
        found[i] = [factor_residual(*pair, problem, p) for pair in zip(K[i], Q[i], strict=True)]
    return found


def _readings(data: xr.Dataset) -> Readings:
    end = data.isel(record=-1).median("instance")
    nuclear, words = end["nuclear_ratio"], "median margin ratio in the nuclear norm"
    found = [
        at_least(f"p = 2: {words}", nuclear.sel(p=2), 0.98),
        at_most(f"p = 1.75: {words}", nuclear.sel(p=1.75), 0.99),
        at_most(f"p = 3: {words}", nuclear.sel(p=3), 0.97),
        at_most("largest median margin ratio in the norm of p", end["entrywise_ratio"].max(), 0.92),
    ]
    for p in EXPONENTS:
        text = f"p = {p:g}: median relative distance from stationary points of the p-th powers"
        found.append(at_most(text, end["residual"].sel(p=p), 0.2 if p < 2 else 0.12))
    ends = "; ".join(
        f"p = {p:g}: {one['nuclear_ratio']:.3f}, {one['entrywise_ratio']:.3f} and "
        f"{one['residual']:.2g}"
        for p in EXPONENTS
        for one in [end.sel(p=p)]
    )
    return Readings(*found, ends=ends)


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.5, 1, 3)
    for axes, (variable, title) in zip(panels, _PANELS.items(), strict=True):
        axes.set(xscale="log", yscale="log", title=title, xlabel="iteration")
        for p in EXPONENTS:
            run = data.sel(p=p)
            values = run[variable].drop_vars("p").assign_coords(record=run["step"].values)
            values = values if variable == "residual" else 1 - values
            band(axes, values, "record", label=f"$p = {p:g}$", look=line_style(f"l_{p:g}"))
    for axes in panels[:2]:
        axes.set_ylim(2e-3, 1.2)
    shared_legend(figure, panels[:1])
    return figure


KEY_QUERY = Figures(MIRROR_DESCENT).figure(
    "key-query",
    "not in the paper: mirror descent on (K, Q) leads to neither norm's solution of W",
    statement="mirror descent on keys and queries (not in the paper)",
    published="not in the paper",
    sizes=by_size(seeds=[10, 20, 40], steps=[2000, 4000, 8000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Mirror descent on keys and queries with the potential of the p-th powers of both, on "
        "{sizes[instance]} random data sets (n = 6, T = 8, d = 10); K starts at a tenth of the "
        "size of Q. Margin ratio of W = K Q^T in the nuclear norm and in the entrywise norm of p, "
        "and the relative distance of (K, Q) from stationary points of the least sum of p-th "
        "powers that keeps the margins; medians with 10th to 90th percentiles. At the end: {ends}. "
        "Only p = 2 leads to the nuclear solution, and no p to that of the entrywise norm: margin "
        "ratios settle below 1. The distance from stationary points falls, for p = 1.75 ever more "
        "slowly. These are measurements; no statement of the paper covers them."
    ),
)


def factor_residual(
    K: Float[np.ndarray, "d m"], Q: Float[np.ndarray, "e m"], problem: MarginProblem, p: float
) -> float:
    """Distance of the potential's gradient from the cone of the constraints' gradients.

        min over lambda >= 0 of  || grad psi(K, Q) - sum_j lambda_j grad (a_j^T K Q^T b_j) ||_F
                                 -----------------------------------------------------------
                                                  || grad psi(K, Q) ||_F

    with ``psi = (sum |K|^p + sum |Q|^p) / p``, over the constraints near the least margin. It is
    zero where the direction of (K, Q) is that of a stationary point of

        min  sum |K|^p + sum |Q|^p   subject to   a_j^T K Q^T b_j >= 1  for every j.

    Args:
        K: Keys.
        Q: Queries.
        problem: The constraints on ``K Q^T``, of one data set.
        p: The exponent, more than 1.

    Returns:
        The relative distance, from 0 to 1; NaN where the least margin is not positive.
    """
    margins = problem.margins(K @ Q.T)
    if not margins.min() > 0:
        return float("nan")
    near = margins <= (1 + _NEAR) * margins.min()
    left, right = problem.left[near], problem.right[near]
    of_K = np.einsum("jd,jm->jdm", left, right @ Q)
    of_Q = np.einsum("je,jm->jem", right, left @ K)
    gradients = np.concatenate([of_K.reshape(len(left), -1), of_Q.reshape(len(left), -1)], axis=1)
    size = max(np.abs(K).max(), np.abs(Q).max())
    image = Lp(p).mirror_map(np.concatenate([K.ravel(), Q.ravel()])[:, None] / size)[:, 0]
    _, distance = nnls(gradients.T / np.abs(gradients).max(), image)
    return float(distance / np.linalg.norm(image))
