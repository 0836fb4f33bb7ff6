"""Each null draw in turn taken for the head: how often the tests of an audit reject it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attractor.heads.statistics.multiple import randomization_p, together

if TYPE_CHECKING:
    import xarray as xr


def draws_as_heads(
    statistic: Float[np.ndarray, "heads draws+1"],
) -> tuple[Float[np.ndarray, "heads draws"], Float[np.ndarray, "heads draws"]]:
    """P-values of every draw of all heads as if these were the heads, the heads among the draws.

    Args:
        statistic: The statistic of every head, then of every draw of its null.

    Returns:
        P-values of each head by itself, and those that hold for all heads together.
    """
    draws = statistic.shape[-1] - 1
    alone, of_all = np.empty((2, len(statistic), draws))
    for draw in range(draws):
        order = np.arange(draws + 1)
        order[[0, draw + 1]] = draw + 1, 0
        taken = statistic[:, order]
        alone[:, draw], of_all[:, draw] = randomization_p(taken), together(taken)
    return alone, of_all


def calibration(data: xr.Dataset) -> xr.Dataset:
    """How often each null's draws are told apart when taken for the heads, one draw at a time.

    Tests that treat the head and its draws alike reject at most a share ``alpha`` of all of them,
    whatever the numbers are. So this is no sample with an interval: it shows that the tests do
    treat them alike, and what tests of single heads would have rejected. Whether draws are fair to
    heads is another question, which only heads known to have no pairing can answer.

    Args:
        data: The arrays of an audit.

    Returns:
        Over ``null``: ``rejected``, draws with a head told apart, for all together;
        ``rejected_alone``, draws with a head whose own p is at most ``alpha``; ``share_alone``,
        the share of those p among all heads and draws; ``excess`` and ``shortfall``, how far the
        distribution function of p is above and below that of equal shares of
        ``1 / (draws + 1), ..., 1``. Ties bring a
        shortfall, and so do heads that beat their draws.
    """
    import xarray as xr

    alpha, draws = float(data.attrs["alpha"]), data.sizes["draw"]
    known = np.isfinite(data["accuracy"].to_numpy())
    heads = data["accuracy"].to_numpy()[known][:, None]
    nulls = data["null"].to_numpy().tolist()
    found: dict[str, list[float]] = {}
    for null in nulls:
        of_draws = data["accuracy_null"].sel(null=null).transpose("layer", "head", "draw")
        alone, of_all = draws_as_heads(np.concatenate([heads, of_draws.to_numpy()[known]], -1))
        steps = np.arange(1, draws + 2) / (draws + 1)
        difference = np.array([(alone <= step + 1e-9).mean() for step in steps]) - steps
        one = {
            "rejected": int((of_all <= alpha).any(0).sum()),
            "rejected_alone": int((alone <= alpha).any(0).sum()),
            "share_alone": float((alone <= alpha).mean()),
            "excess": float(difference.max()),
            "shortfall": float(-difference.min()),
        }
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    return xr.Dataset(
        {name: ("null", values) for name, values in found.items()},
        {"null": nulls},
        {"alpha": alpha, "draws": draws},
    )
