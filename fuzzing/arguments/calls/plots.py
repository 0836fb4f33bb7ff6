"""Calls of ``attractor.plots``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import attractor as at
from attractor import analysis, corpora, heads, maps, papers, plots, prompts
from attractor.analysis import rates
from attractor.heads.page import attention_examples
from attractor.maps import sweeps
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.calls.sweeps import RESULTS
from fuzzing.arguments.table import Call, Fresh, Lazy

FIGURE = Fresh(lambda: Figure(figsize=(2, 2)))
AXES = Fresh(lambda: Figure(figsize=(2, 2)).subplots())
PANELS = Fresh(lambda: list(Figure(figsize=(2, 2)).subplots(1, 2)))
LABELED = Fresh(lambda: _labeled())
PATH = {"path": "array nan infinities"}
CURVES = Lazy(lambda: ex.VERDICT.value.data)
RUNS = Lazy(lambda: {"run": ex.VERDICT.value.data})
ROLE = "globally_optimal"
KEYS = np.array([[[0.0, 1.0], [1.0, 0.0], [-1.0, 0.5]]])
POINT = np.array([1.0, 2.0])
STEPS = np.arange(1, 101)
WEIGHTS = Lazy(lambda: xr.DataArray(np.eye(2, 3), dims=("sequence", "token")))
CHOSEN = Lazy(lambda: xr.DataArray([0, 1], dims="sequence"))
COUNTS = Lazy(
    lambda: xr.DataArray(
        [[5, 6], [1, 0]], dims=("outcome", "d"),
        coords={"outcome": ["globally_optimal", "not_settled"], "d": [2, 4]},
    )
)  # fmt: skip
RATE = Lazy(lambda: rates.fit_rate(STEPS, 1.0 / STEPS[None] ** np.ones((3, 1))))
CHECKS = Lazy(lambda: ex.STRUCTURE.value.assumptions)
COMPARED = Lazy(lambda: analysis.compare_geometries(ex.PROBLEM_OF_ONE.value, [at.Frobenius()]))
AVERAGES = Lazy(lambda: sweeps.average_trials(RESULTS.value, "margin", ["n", "d"]))
AUDITED = Lazy(lambda: ex.AUDIT.value.data)
MARKED = Lazy(lambda: attention_examples(ex.PLANTED_HEADS.value, AUDITED.value, [(1, 0)]))
LEARNED = Lazy(lambda: _learned())
CONTROL = Lazy(
    lambda: xr.Dataset(
        {
            "right": (("arm", "control_head"), np.ones((2, 3), bool)),
            "margin_ratio": (("arm", "control_head", "norm"), np.ones((2, 3, 2))),
        },
        {"arm": ["W", "other"], "expected": ("arm", [True, False]), "norm": ["a", "b"]},
    )
)
BY_LENGTH = Lazy(lambda: ex.PROMPT_LENGTH.value.to_xarray())
STAGES = Lazy(lambda: corpora.measure_two_stages(ex.TWO_STAGES.value))
MEASURED = Lazy(lambda: corpora.mechanics.measure_limits(ex.MASS_RUN.value, ex.LIMITS.value))


def _learned() -> xr.Dataset:
    of_size = {
        name: (("curve", "size"), np.array([[0.1, 0.5]]))
        for name in (
            "accuracy", "accuracy_low", "accuracy_high", "accuracy_offset", "accuracy_query_free",
            "chance",
        )
    }  # fmt: skip
    return xr.Dataset(
        {
            "documents": (("curve", "size"), [[10, 20]]),
            "accuracy_null": (("curve", "size", "draw"), np.full((1, 2, 3), 0.2)),
            "learnable": ("curve", ["learnable"]),
            **of_size,
        },
        {"layer": ("curve", [1]), "head": ("curve", [0])},
    )


def _labeled() -> object:
    axes = Figure(figsize=(2, 2)).subplots()
    axes.plot([0, 1], label="one")
    return axes


def _in_context() -> xr.Dataset:
    steps, risk = np.array([0, 1, 10]), np.ones((2, 1, 3))
    heads = {
        name: (("run", "seed", "step", "head"), risk[..., None])
        for name in ("value_label", "key_query_norm", "balance")
    }
    return xr.Dataset(
        {"risk": (("run", "seed", "step"), risk), **heads},
        {
            "step": steps,
            "attention": ("run", ["softmax", "linear"]),
            "length": ("run", [64.0, np.inf]),
            "verdict": ("run", ["settled", "settled"]),
        },
    )


IN_CONTEXT = Lazy(_in_context)
REFERENCES = Lazy(
    lambda: xr.Dataset({"linear": ("length", [0.5]), "ridge": ("length", [0.1])}, {"length": [64]})
)


def calls() -> Iterator[Call]:
    """One call of each."""
    yield from _of_runs()
    yield from _of_data_sets()
    yield from _of_corpora()
    yield from _of_prompts()
    yield from _of_audits()
    yield from _of_planes()
    yield from _parts()


def _of_runs() -> Iterator[Call]:
    for function in (
        plots.correlation, plots.correlation_shortfall, plots.loss, plots.margin_ratio,
        plots.margin_ratio_shortfall, plots.norm_growth, plots.selected_probability,
        plots.unselected_probability,
    ):  # fmt: skip
        yield Call(function, axes=AXES, data=CURVES)
    loss = Lazy(lambda: CURVES.value["loss"])
    yield Call(plots.band, axes=AXES, values=loss, along="step", takes={"look": "settings"})
    yield Call(plots.band_curve, axes=AXES, values=loss, takes={"look": "settings"})
    yield Call(plots.direction_figure, runs=RUNS)
    yield Call(plots.training_figure, runs=RUNS)
    yield Call(heads.plots.head_curves, axes=AXES, data=Lazy(lambda: HEADS.value["norm"]))
    yield Call(heads.plots.heads_figure, data=HEADS)
    yield Call(plots.trajectory_figure, runs=Lazy(lambda: {"run": ex.RUN.value.data}))
    yield Call(plots.solution_figure, solution=ex.SOLUTION_OF_ONE)
    yield Call(plots.singular_values, axes=AXES, solution=ex.SOLUTION_OF_ONE)
    yield Call(plots.rates_figure, rates=Lazy(lambda: [RATE.value]))
    yield Call(maps.plots.basin_map_axes, axes=AXES, data=PLANE)
    yield Call(maps.plots.basin_map_figure, data=PLANE)
    yield Call(maps.plots.basin_shares_figure, data=SHARES)
    yield Call(maps.plots.phase_map_figure, data=AVERAGES, x="n", y="d",
               takes={"levels": "sequence array objects"})  # fmt: skip
    yield Call(maps.plots.phase_lines_figure, data=AVERAGES, x="n", lines="d")
    yield Call(maps.plots.selection_colors, studies=Lazy(lambda: [SHARES.value]))
    yield Call(maps.plots.bias_matrix_figure, matrix=ex.BIAS)
    yield Call(maps.plots.ratio_curves_figure, matrix=ex.BIAS)


def _of_data_sets() -> Iterator[Call]:
    yield Call(plots.attention_figure, before=WEIGHTS, after=WEIGHTS, predicted=CHOSEN)
    yield Call(plots.attention_map, axes=AXES, weights=WEIGHTS, predicted=CHOSEN)
    yield Call(plots.geometries_figure, data=COMPARED)
    matrix = Lazy(lambda: COMPARED.value["W"])
    yield Call(plots.solution_map, axes=AXES, W=Lazy(lambda: matrix.value[0]))
    yield Call(plots.geometry_label, name="frobenius")
    yield Call(
        plots.patches_figure, images=[np.zeros((2, 4, 4))], predicted=[np.array([0, 1])],
        reached=[np.array([0, 3])], grid=2, row_names=["n = 2"],
    )  # fmt: skip


def _of_corpora() -> Iterator[Call]:
    yield Call(corpora.plots.assumptions_figure, checks=CHECKS)
    yield Call(corpora.plots.class_map, axes=AXES, orders=ex.ORDERS)
    yield Call(corpora.plots.class_map_figure, orders=ex.ORDERS)
    yield Call(corpora.plots.collocation_figure, collocation=ex.COLLOCATION)
    yield Call(corpora.plots.orders_figure, orders=ex.ORDERS)
    yield Call(corpora.plots.priority_figure, graphs=ex.GRAPHS)
    yield Call(corpora.plots.two_stage_figure, data=STAGES)
    yield Call(corpora.plots.limits_figure, data=MEASURED)


def _of_prompts() -> Iterator[Call]:
    yield Call(prompts.plots.error_by_length_figure, data=BY_LENGTH, error=0.1)
    yield Call(prompts.plots.lengths_figure, data=IN_CONTEXT, time_of_step=0.1)
    yield Call(
        prompts.plots.experiment_figure, data=IN_CONTEXT, references=REFERENCES, query_noise=0.1
    )


def _of_audits() -> Iterator[Call]:
    yield Call(heads.plots.audit_map_figure, data=AUDITED)
    yield Call(heads.plots.audit_accuracy_figure, data=AUDITED)
    yield Call(heads.plots.checkpoint_figure, data=Lazy(lambda: ex.CHECKPOINT_AUDIT.value.data))
    yield Call(heads.plots.audit_curves_figure, curves=LEARNED)
    yield Call(heads.plots.margin_control_figure, control=CONTROL)
    yield Call(
        heads.plots.attention_text_figure, data=MARKED, headings={"1.0": "a head"},
        takes={"headings": "mapping"},
    )  # fmt: skip


def _of_planes() -> Iterator[Call]:
    yield Call(plots.frame, axes=AXES, points=Lazy(lambda: [KEYS]))
    yield Call(plots.mid_margin_point, keys=KEYS[0], direction=POINT, selected=0)
    yield Call(plots.plane_tokens, axes=AXES, keys=KEYS, takes={"names": "nested none"})
    yield Call(plots.ray, axes=AXES, direction=POINT, role=ROLE)
    yield Call(plots.separating_line, axes=AXES, normal=POINT, through=POINT, role=ROLE)
    yield Call(
        plots.trajectory,
        axes=AXES,
        path=KEYS,
        role=ROLE,
        takes={"arrows": "count sequence none", **PATH},
    )


def _parts() -> Iterator[Call]:
    draw = Lazy(lambda: lambda axes: axes.plot([0, 1], label="curve"))
    yield Call(plots.beside, figure=FIGURE, exact=draw, as_published=draw)
    yield Call(plots.panel_letters, panels=PANELS)
    yield Call(plots.panels_on_page, height=2.0, skip={"arrangement": "arguments of matplotlib"})
    panels = Lazy(lambda: [LABELED.value])
    yield Call(plots.shared_legend, figure=FIGURE, panels=panels)
    yield Call(plots.line_style, name=ROLE, blames={"name": "role"})
    yield Call(plots.ordered_line_styles, count=3)
    yield Call(plots.role_of, name=ROLE, blames={"name": "role"})
    yield Call(papers.plots.stacked_shares, axes=AXES, counts=COUNTS, along="d")
    yield Call(papers.plots.wilson, successes=np.array([0, 7]), trials=np.array([20, 20]))
    yield Call(
        papers.plots.fraction_curve, axes=AXES, successes=Lazy(lambda: COUNTS.value[0]), trials=20,
        along="d", look={"color": "blue"}, takes={"look": "settings"},
        blames={"trials": "successes"},
    )  # fmt: skip
    yield Call(
        plots.save_figure, figure=FIGURE, directory=Lazy(lambda: given.PICTURE_FOLDER.value),
        name="picture",
    )  # fmt: skip


HEADS = Lazy(lambda: ex.MONITORED.value.to_xarray())
PLANE = Lazy(lambda: ex.BASIN_MAP.value.data)
SHARES = Lazy(lambda: ex.BASIN_SHARES.value.data)
