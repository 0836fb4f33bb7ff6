"""The tables of "Which selection wins, and when" in docs/maps.md, from the stores of its sweeps.

python examples/sweeps/selection.py FOLDER, after selection.sh, which runs it.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr

import attractor as at

SHARES = ["initial_agreement", "gradient_agreement", "selection_agreement"]
FOLDER = Path(sys.argv[1])


def opened(name: str) -> xr.Dataset:
    """The results of a sweep."""
    return at.maps.sweeps.open_sweep(FOLDER / f"selection_{name}.zarr").load()


def interval(found: xr.Dataset) -> str:
    """A mean, or a place, with its interval."""
    values = [float(found[name]) for name in ("mean", "low", "high")]
    return "{:.3g} [{:.3g}, {:.3g}]".format(*values)


def table_of_the_flow(flow: xr.Dataset) -> None:
    """When half of the sequences have left, when half of the runs are settled, and the end."""
    axes = ["parameterization", "initial_scale"]
    left = at.maps.sweeps.crossings(flow, "initial_agreement", "log_time", axes)
    settled = at.maps.sweeps.crossings(flow, "settled", "log_time", axes)
    last = {"log_time": float(flow["log_time"][-1])}
    ends = {name: at.maps.sweeps.average_trials(flow, name, axes, at=last) for name in SHARES}
    print("what, scale, norm and lead at the start; left, settled; end: initial, gradient, optimal")
    for what in flow["parameterization"].values:
        for scale in flow["initial_scale"].values:
            point = {"parameterization": what, "initial_scale": scale}
            own = flow.sel(point).isel(log_time=0)
            start = [f"{float(own[name].mean()):.3g}" for name in ("initial_norm", "initial_lead")]
            found = [interval(one.sel(point)) for one in (left, settled, *ends.values())]
            print(" | ".join([what, f"{scale:g}", *start, *found]))
    leads = flow["initial_lead"].isel(log_time=0, seed=0).mean("instance")
    for what in left["parameterization"].values:
        large = flow["initial_scale"].values >= 10
        x = leads.sel(parameterization=what).values[large]
        slope, offset = np.polyfit(x, left["mean"].sel(parameterization=what).values[large], 1)
        print(f"{what}: from scale 10 on it is left at log time {offset:.3g} + {slope:.3g} lead")


def table_of_steps(flow: xr.Dataset, steps: xr.Dataset) -> None:
    """How many trials of gradient descent have the shares of the flow, at the same time."""
    sets = steps["instance"].values
    print("\nshare of trials with all three shares of the flow; mean initial agreement, and its")
    for what in steps["parameterization"].values:
        for rate in steps["learning_rate"].values:
            for step in steps["step"].values:
                time = round(np.log(rate * step))
                if time not in flow["log_time"].values:
                    continue
                own = steps.sel(parameterization=what, learning_rate=rate, step=step)
                other = flow.sel(parameterization=what, log_time=time, instance=sets)
                other = other.sel(initial_scale=own["initial_scale"])
                same = np.logical_and.reduce([own[s].values == other[s].values for s in SHARES])
                error = np.abs(
                    (own["initial_agreement"] - other["initial_agreement"]).mean("instance")
                ).max()
                print(
                    f"{what} | log rate {np.log(rate):.0f} | {step} steps | log time {time} | "
                    f"{same.mean():.3f} | {float(error):.3f}"
                )


def table_of_lengths(normalized: xr.Dataset) -> None:
    """Path length, steps times their length, at which half of the sequences have left."""
    axes = ["parameterization", "initial_scale", "learning_rate"]
    left = at.maps.sweeps.crossings(normalized, "initial_agreement", "step", axes)
    print("\npath length, over the norm of W at the start, where half of the sequences have left")
    for what in normalized["parameterization"].values:
        for scale in normalized["initial_scale"].values:
            point = {"parameterization": what, "initial_scale": scale}
            norm = float(normalized["initial_norm"].sel(point).mean())
            steps = left["mean"].sel(point)
            lengths = (steps["learning_rate"] * steps).values / norm
            found = [
                f"{rate:g}: {length:.3g}"
                for rate, length in zip(steps["learning_rate"].values, lengths, strict=True)
            ]
            print(f"{what} | {scale:g} | norm {norm:.3g} | " + ", ".join(found))


def distance_to_a_better_token(count: int = 2000) -> None:
    """Median distance, in leads, from the best score of a random W to a token with more to gain."""
    tokens, head = at.datasets.unit_tokens(6, 8, 10, seeds=list(range(count)))
    W = np.random.default_rng(0).uniform(-1, 1, (count, 10, 10))
    scores, gains = (one[..., 0, :] for one in (tokens.scores(W), at.token_scores(tokens, head)))
    ordered = np.sort(scores, axis=-1)
    best = np.take_along_axis(gains, scores.argmax(-1)[..., None], -1)
    distance = np.where(gains > best, ordered[..., -1:] - scores, np.inf).min(-1)
    lead = (ordered[..., -1] - ordered[..., -2]).mean()
    print(f"\nto the nearest better token: {np.median(distance) / lead:.3g} leads")


if __name__ == "__main__":
    FLOW = opened("flow")
    table_of_the_flow(FLOW)
    table_of_steps(FLOW, opened("steps"))
    table_of_lengths(opened("normalized"))
    distance_to_a_better_token()
