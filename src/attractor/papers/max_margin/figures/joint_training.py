"""Prompt and head trained together: where each goes, and how probabilities rise."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attractor.files.case import Case
from attractor.geometry.vectors import cosines
from attractor.margin import label_problem, label_support, relaxed_problem, solve
from attractor.papers.figure import (
    Artifact,
    Figures,
    Readings,
    Request,
    at_least,
    at_most,
    by_size,
    stacked,
)
from attractor.papers.max_margin.data import EXACT, joint_training, kernels, run
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import PAGE, panels_on_page
from attractor.plots.design.roles import line_style
from attractor.plots.plane import frame, optimal_token_handle, plane_tokens, ray, trajectory
from attractor.results.paper import MAX_MARGIN
from attractor.training import normalized_gradient_descent

PROMPT, HEAD = np.array([0.0, -1.0]), np.array([-1.0, 0.0])
"""Initial prompt and head."""
KINDS = ("every label at the margin", "one label beyond it")
SHOWN = 200


def _compute(request: Request) -> xr.Dataset:
    steps = request.settings["steps"]
    exact = normalized_gradient_descent(0.1, per_factor=True)
    published = normalized_gradient_descent(0.1, per_factor=True, eps=1e-9)
    ways = kernels(exact, published, both=request.as_published)
    recorded = np.unique(np.concatenate([np.arange(0, SHOWN, 1), np.arange(SHOWN, steps + 1, 50)]))
    panels = []
    for tight in (True, False):
        case = joint_training(all_labels_support=tight)
        request.uses(case.about, case.tokens, case.head)
        runs = run(case, ways, steps=steps, initial=PROMPT, head=HEAD, record=recorded)
        prompts, heads = (runs[name].values[:, 0].astype(float) for name in ("p", "head_weight"))
        variables = {
            "prompt": (("kernel", "step", "coordinate"), prompts),
            "head": (("kernel", "step", "coordinate"), heads),
            **_probabilities(case, prompts, heads),
            **_solutions(case),
            "keys": (("sequence", "token", "coordinate"), case.tokens.keys),
        }
        panels.append(xr.Dataset(variables, {"step": recorded, "kernel": runs["kernel"].values}))
    return stacked(panels, "labels", list(KINDS))


def _probabilities(case: Case, prompts: np.ndarray, heads: np.ndarray) -> dict[str, tuple]:
    """Softmax on the selected tokens, and the logistic probability of the labels."""
    scores = case.tokens.scores(prompts[..., None])[..., 0, :]
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    outputs = np.einsum("krnt,ntv->krnv", weights, case.tokens.values)
    assert case.tokens.labels is not None
    margins = np.einsum("krnv,krv->krn", outputs, heads) * case.tokens.labels[:, 0]
    along = ("kernel", "step")
    return {
        "softmax_probability": (along, weights[..., 1].mean(-1)),
        "logistic_probability": (along, (1 / (1 + np.exp(-margins))).mean(-1)),
    }


def _solutions(case: Case) -> dict[str, tuple]:
    """Directions of the head, of the prompt by itself, and relaxed where labels have slack."""
    labels = solve(label_problem(case.tokens, case.optimal))
    relaxed = solve(relaxed_problem(case.tokens, case.optimal, label_support(labels)))
    return {
        "head_solution": (("coordinate",), labels.W[:, 0]),
        "prompt_solution": (("coordinate",), case.solution(selection=case.optimal).W[:, 0]),
        "relaxed_solution": (("coordinate",), relaxed.W[:, 0]),
    }


def _cosine(data: xr.Dataset, kind: str, path: str, solution: str) -> float:
    panel = data.sel(labels=kind, kernel=EXACT)
    end = panel[path].isel(step=-1).values
    return float(cosines(end[:, None], panel[solution].values[:, None]))


def _paths_readings(data: xr.Dataset) -> Readings:
    tight, slack = KINDS
    return Readings(
        at_least(f"{tight}: cosine of p to the max-margin direction",
                 _cosine(data, tight, "prompt", "prompt_solution"), 0.9999, "max_margin"),
        at_least(f"{tight}: cosine of v to the label SVM",
                 _cosine(data, tight, "head", "head_solution"), 0.9999),
        at_least(f"{slack}: cosine of p to the relaxed direction",
                 _cosine(data, slack, "prompt", "relaxed_solution"), 0.9999, "relaxed"),
        at_most(f"{slack}: cosine of p to the direction that is not relaxed",
                _cosine(data, slack, "prompt", "prompt_solution"), 0.985, "not_relaxed"),
    )  # fmt: skip


def _probabilities_readings(data: xr.Dataset) -> Readings:
    exact = data.sel(kernel=EXACT)
    found = []
    for kind in KINDS:
        panel = exact.sel(labels=kind)
        softmax, logistic = panel["softmax_probability"], panel["logistic_probability"]
        found += [
            at_most(f"{kind}: softmax falls below its start first",
                    softmax.min() - softmax.isel(step=0), -0.01),
            at_least(f"{kind}: softmax on the selected tokens after 90 steps",
                     softmax.sel(step=90), 0.99),
            at_least(f"{kind}: logistic probability after 90 steps", logistic.sel(step=90), 0.99),
        ]  # fmt: skip
    return Readings(*found)


def _draw_paths(data: xr.Dataset) -> Figure:
    names = [str(name) for name in data["kernel"].values]
    alone = len(names) == 1
    figure, places = panels_on_page(3.9 if alone else 7.2, len(names), 2, squeeze=False)
    shown = data.sel(step=slice(0, SHOWN if alone else None))
    for row, name in zip(places, names, strict=True):
        for axes, kind in zip(row, KINDS, strict=True):
            panel = shown.sel(labels=kind, kernel=name)
            frame(axes, [[-1.4, -2.0], [6.0, 4.0]] if alone else [[-4.0, -3.0], [40.0, 30.0]])
            ray(axes, panel["head_solution"].values, "train_v", label="label SVM")
            ray(axes, panel["prompt_solution"].values, "frobenius", label="max-margin direction")
            if kind == KINDS[1]:
                relaxed = panel["relaxed_solution"].values
                ray(axes, relaxed, "relaxed", label="relaxed max-margin direction")
            plane_tokens(axes, panel["keys"].values, optimal=np.ones(3, int))
            for path, role in (("prompt", "train_p"), ("head", "train_v")):
                trajectory(
                    axes,
                    panel[path].values,
                    role,
                    steps=panel["step"].values,
                    arrows=10 if alone else 100,
                    label="training $p$" if path == "prompt" else "training $v$",
                )
            axes.set_title(kind if alone else f"{name}: {kind}")
    handles, labels = places[0, 1].get_legend_handles_labels()
    handles.append(optimal_token_handle())
    labels.append("selected token")
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _draw_probabilities(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 2.7))
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), KINDS, strict=True):
        for name in data["kernel"].values:
            panel = data.sel(labels=kind, kernel=name, step=slice(0, 100))
            words = "" if data.sizes["kernel"] == 1 else f", {name}"
            for variable, role in (("softmax", "train_p"), ("logistic", "train_v")):
                style = line_style(role)
                if name != EXACT:
                    style |= {"color": line_style("as_published")["color"], "linewidth": 0.9}
                curve = panel[f"{variable}_probability"]
                axes.plot(panel["step"], curve, label=f"{variable}{words}", **style)
        axes.set(title=kind, xlabel="iteration", ylim=(0.3, 1.02))
    figure.axes[-1].legend(loc="lower right")
    figure.axes[0].set_ylabel("probability, mean")
    return figure


_COMMON = {
    "sizes": by_size(seeds=1, steps=[2000, 2000, 10_000]),
    "compute": _compute,
    "artifact": Artifact(
        "plain gradients in single precision: they vanish, and directions drift",
        "As published: plain gradients in single precision, with 1e-9 added to norms; they vanish "
        "or turn into noise once attention has saturated.",
    ),
}

JOINT_PATHS = Figures(MAX_MARGIN).figure(
    "joint-training",
    "prompt and head trained together: max-margin, relaxed and label SVM directions",
    statement="experiment: joint training of prompt and head",
    published="paths of p and v with all labels at the margin, and with one beyond it",
    draw=_draw_paths,
    readings=_paths_readings,
    caption=(
        "Prompt p and head v trained together by normalized gradient descent (step 0.1 for each) "
        "on three sequences of two tokens. Left: every label stands at the margin of the head, and "
        "p goes to the max-margin direction (cosine {max_margin:.6f} after {last[step]:,} steps). "
        "Right: the label of one sequence is beyond the margin; its attention need not saturate, "
        "and p goes to the relaxed direction (cosine {relaxed:.6f}) and not to the other "
        "({not_relaxed:.4f}). Equal steps for p and v are the border case: with slower steps of v "
        "the limit is another direction."
    ),
    **_COMMON,
)
JOINT_PROBABILITIES = Figures(MAX_MARGIN).figure(
    "joint-probabilities",
    "softmax and logistic probability while prompt and head are trained together",
    statement="experiment: probabilities in joint training",
    published="mean softmax probability of optimal tokens and mean logistic probability",
    draw=_draw_probabilities,
    readings=_probabilities_readings,
    caption=(
        "Softmax on the selected tokens and logistic probability of the labels, means over three "
        "sequences, while prompt and head are trained together. Attention first turns away, as "
        "long as the head points the wrong way."
    ),
    **_COMMON,
)
