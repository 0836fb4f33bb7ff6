"""Calls of ``attractor.training`` and ``attractor.analysis``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import attractor as at
from attractor import analysis
from attractor.analysis import rates
from attractor.maps import basins, bias
from attractor.training import local_path
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call, Lazy

NANS = {
    "excluded": "mapping none",
    "W": "array nan",
    "solution": "array nan",
    "steps": "array nan",
    "values": "array nan",
}
"""What may hold NaN, of trials that diverged."""
SLOPE = rates.Slope(0.0, -1.0, 1.0)
DATA = {"tokens": ex.TOKENS, "head": ex.HEAD}
EITHER = {"tokens": "head", "head": "tokens"}
TAKES = {
    "initial": "array mapping real sequence none",
    "record": "array sequence none",
    "radii": "array sequence none",
    "head_radius": "array real none",
    "metrics": "mapping none",
    "direction": "array",
    "loss": "text",
    "parameterization": "text",
    "p": "real mapping sequence",
    "coefficients": "text sequence array",
    **dict.fromkeys(
        (
            "learning_rate",
            "decay",
            "b1",
            "b2",
            "eps",
            "momentum",
            "scale",
            "weight_decay",
            "dual_weight_decay",
        ),
        "real sequence array",
    ),
}


def calls() -> Iterator[Call]:
    """One call of each."""
    yield from _optimizers()
    yield from _training()
    yield from _analysis()
    yield from _bias()
    yield from _basins()


def _optimizers() -> Iterator[Call]:
    for factory in (
        at.adam, at.composed_spectral_descent, at.gradient_descent,
        at.greedy_coordinate_descent, at.lion, at.mirror_descent,
        at.momentum, at.muon, at.normalized_gradient_descent, at.normalized_momentum,
        at.schatten_mirror_descent, at.sign_descent, at.sign_momentum, at.spectral_descent,
    ):  # fmt: skip
        yield Call(factory, learning_rate=0.1, takes=TAKES)
    yield Call(at.polyak_step, takes=TAKES)
    yield Call(
        at.newton_schulz_values, values=np.array([0.1, 1.0]), coefficients=(1.5, -0.5, 0.0),
        takes=TAKES | {"values": "array real sequence"}, nan=True,
    )  # fmt: skip
    yield Call(
        at.by_parameter, parts={"W": "muon"}, default="adam",
        blames={"parts": "optimizer spelling", "default": "optimizer spelling"},
    )  # fmt: skip
    yield Call(at.joined, optimizer=ex.STEP)
    several = "real sequence array"
    numbers = dict.fromkeys(("initial", "exponent", "offset", "value", "steps"), several)
    yield Call(at.power_decay, initial=0.1, exponent=0.5, takes=numbers)
    yield Call(at.until, steps=100, value=0.01, takes=numbers)
    yield Call(at.steepest_descent, learning_rate=0.1, geometry="nuclear", takes=TAKES)
    wrapped = {"transformation": given.OPTAX, "geometry": None, "takes": {"weight_decay": "real"}}
    yield Call(at.declare, **wrapped, blames={"hyperparameters": "transformation"})
    yield Call(at.with_rescaled_state, **wrapped)
    yield Call(
        at.get_optimizer,
        name="sign descent",
        learning_rate=0.1,
        takes=TAKES,
        blames={"name": "optimizer"},
    )


def _training() -> Iterator[Call]:
    yield Call(at.Trajectory.W, self=ex.RUN)
    yield Call(at.Trajectory.attention_head, self=ex.RUN_OF_HEADS, number=0)
    yield Call(at.Trajectory.sel, self=ex.RUN)
    yield Call(at.Trajectory.save, self=ex.RUN, path="run.nc")
    yield Call(at.Trajectory.print_to, self=ex.RUN, console=ex.CONSOLE)
    yield Call(at.Trajectory.plot, self=ex.RUN)
    yield Call(at.Trajectory.load, path=given.RUN_FILE, takes={"head": "none"})
    yield Call(
        at.train, **DATA, optimizer=ex.STEP, steps=2, takes=TAKES, blames=EITHER,
        skip={"checkpoint": "folders are made, and refused the next time"},
    )  # fmt: skip
    yield Call(at.gradient_flow, **DATA, time=0.5, takes=TAKES, blames=EITHER)
    yield Call(
        at.regularization_path, **DATA, radii=[0.5, 1.0], starts=1, takes=TAKES, blames=EITHER
    )
    yield Call(
        local_path, tokens=ex.TOKENS_OF_ONE, head=ex.HEAD, direction=ex.SOLUTION_OF_ONE,
        opening=0.5, radii=[0.5, 1.0], starts=1, takes=TAKES, blames=EITHER,
        nan=True,  # logarithms of what the loss lies above, or below, that of the selection
    )  # fmt: skip


def _analysis() -> Iterator[Call]:
    solution = {"solution": ex.SOLUTION}
    yield Call(at.verify, trajectory=ex.RUN, **solution)
    verdict = {"self": ex.VERDICT}
    yield Call(at.Verdict.sel, **verdict)
    yield Call(at.Verdict.rate, **verdict, blames={"measure": "quantities"})
    yield Call(at.Verdict.to_csv, **verdict, path="verdict.csv")
    yield Call(at.Verdict.to_json, **verdict, path="verdict.json")
    yield Call(analysis.compare_geometries, problem=ex.PROBLEM, geometries=[at.Frobenius()])
    matrix, nans = ex.W[None] * 2, {"takes": NANS, "nan": True}
    yield Call(
        analysis.directional_bregman_divergence, W=matrix, solution=ex.W,
        geometry=at.Frobenius(), **nans,
    )  # fmt: skip
    yield Call(
        analysis.measure_direction, W=matrix, solution=ex.SOLUTION_OF_ONE, nan=True, takes=NANS
    )
    yield Call(
        analysis.measured_offsets, W=matrix, solution=ex.SOLUTION_OF_ONE, nan=True, takes=NANS
    )
    yield Call(analysis.first_gradient_margin, **DATA, blames=EITHER)
    yield Call(
        analysis.label_margin_constant, tokens=ex.TOKENS_OF_ONE, selection=ex.SELECTION_OF_ONE,
        samples=5, improved=1, blames={"selection": "tokens", "tokens": "selection"},
    )  # fmt: skip
    yield Call(analysis.predicted_offsets, **DATA, **solution, blames=EITHER)
    yield Call(analysis.smoothness_constant, **DATA, blames=EITHER)
    steps, values = np.arange(1, 101), 1.0 / np.arange(1, 101)[None] ** np.ones((3, 1))
    yield Call(
        rates.fit_rate, steps=steps, values=values, blames={"steps": "values"}, takes=NANS, nan=True
    )
    yield Call(rates.fit_rates, curves=ex.VERDICT, nan=True)
    curve = {"self": ex.LAW, "nan": True, "takes": {"x": "array nan", "y": "array nan"}}
    yield Call(rates.Law.abscissa, **curve, x=np.array([1.0, 2.0]), is_log=False)
    yield Call(rates.Law.ordinate, **curve, y=np.array([1.0, 2.0]), are_logs=False)
    yield Call(rates.Slope.overlaps, self=SLOPE, other=SLOPE)


def _bias() -> Iterator[Call]:
    yield Call(bias.Method, name="descent", optimizer=ex.STEP)
    yield Call(bias.as_method, optimizer=ex.STEP, name="descent")
    yield Call(
        bias.load_method,
        spelling="sign descent",
        learning_rate=0.1,
        blames={"spelling": "optimizer"},
    )
    yield Call(bias.load_geometry, spelling="nuclear", blames={"spelling": "norm geometry"})
    yield Call(
        bias.named_optimizer, spelling="sign descent", learning_rate=0.1,
        blames={"spelling": "optimizer"},
    )  # fmt: skip
    yield Call(bias.median_interval, values=np.arange(9.0), takes=NANS, nan=True)
    yield Call(bias.standard_methods)
    found = {"self": ex.BIAS}
    for method in (
        bias.BiasMatrix.answer, bias.BiasMatrix.answers, bias.BiasMatrix.best,
        bias.BiasMatrix.compared, bias.BiasMatrix.own_norm, bias.BiasMatrix.rows,
    ):  # fmt: skip
        yield Call(method, **found, method="descent")
    for method in (bias.BiasMatrix.enough, bias.BiasMatrix.highest, bias.BiasMatrix.setting):
        yield Call(method, **found, row="descent")
    yield Call(bias.BiasMatrix.answer_at, **found, row="descent")
    yield Call(bias.BiasMatrix.cell, **found, method="descent", norm="frobenius")
    yield Call(bias.BiasMatrix.ratio, **found, row="descent", norm="frobenius")
    yield Call(bias.BiasMatrix.save, **found, path="bias.nc")
    yield Call(bias.BiasMatrix.load, path=given.BIAS_FILE)
    several = {"tokens": ex.SEVERAL_TOKENS, "head": ex.SEVERAL_HEADS, "blames": EITHER}
    yield Call(
        bias.bias_matrix, **several, methods=ex.METHODS, norms=[at.Frobenius()], steps=3,
        mean_steps=Lazy(lambda: lambda row: []), takes=TAKES,
    )  # fmt: skip
    yield Call(
        bias.which_norm,
        **several,
        optimizer=ex.STEP,
        steps=3,
        nan=True,
        takes={"geometries": "array"},
    )


def _basins() -> Iterator[Call]:
    one = {"tokens": ex.TOKENS_OF_ONE, "head": ex.HEAD, "optimizer": ex.STEP, "steps": 3}
    points = {
        "plane": "array none", "center": "array none", "start": "array", "end": "array",
        "extent": "array real count",
    }  # fmt: skip
    settings = {"nan": True, "takes": points, "blames": {**EITHER, "plane": "center"}}
    yield Call(basins.basin_map, **one, **settings, plane=ex.PLANE, resolution=2)
    yield Call(basins.basin_shares, **one, **settings, starts=4)
    yield Call(basins.BasinMap.save, self=ex.BASIN_MAP, path="map.nc")
    yield Call(basins.BasinMap.load, path=given.BASIN_MAP_FILE)
    yield Call(basins.BasinShares.save, self=ex.BASIN_SHARES, path="shares.nc")
    yield Call(basins.BasinShares.load, path=given.BASIN_SHARES_FILE)
    yield Call(
        basins.BasinShares.share, self=ex.BASIN_SHARES, selection=np.zeros((2, 1), int),
        takes={"selection": "array text"}, nan=True,
    )  # fmt: skip
