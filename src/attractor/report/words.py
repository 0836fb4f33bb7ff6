"""Results in plain words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from attractor.analysis.outcomes import COMPARED
from attractor.analysis.predictions.prediction import STAND_IN, requires_margin
from attractor.geometry import Geometry
from attractor.margin import Solution
from attractor.report.page import Table
from attractor.support.errors import Status

if TYPE_CHECKING:
    from attractor.analysis import Verdict

REACHED_RATIO = 0.99
"""Median margin ratio from which the text says that training got there."""
NEAR_RATIO = 0.9
"""Median margin ratio from which it says that training is on its way."""

MEASURES = {
    "margin_ratio": "normalized margin ratio",
    "correlation": "correlation with the solution",
    "label_margin_ratio": "label margin ratio of the head",
    "label_correlation": "correlation of the head with its label solution",
    "selected_probability": "attention on selected tokens",
    "norm": "norm of the trained matrix",
    "loss": "training loss",
}
"""What is said of trials at the end, by the names of measures."""

GLOSSARY = Table(
    ("word", "meaning"),
    (
        (
            "token score",
            "What the head would answer if attention kept that token alone, times the label. "
            "The token predicted for a sequence is the one with the highest score.",
        ),
        (
            "margin problem",
            "Find the matrix W of smallest norm that gives every selected token an attention "
            "score higher by at least 1 than every other token of its sequence. Theory says that "
            "training, while W grows, turns W into the direction of its solution.",
        ),
        (
            "feasible",
            "Some matrix meets all these constraints. Otherwise no single attention matrix can "
            "keep the selected token in every sequence.",
        ),
        (
            "margin ratio",
            "Smallest margin of the trained matrix divided by its norm, relative to the best "
            "possible value. At most 1; 1 means that the direction predicted is reached; "
            "negative means that some selected token is not yet the one attended to most.",
        ),
        (
            "relaxed margin problem",
            "The same, with a margin of zero in rows whose label the head meets with "
            "slack: there attention may take its time. It is the limit where the head is trained.",
        ),
        (
            "correlation",
            "Cosine of the angle between the trained matrix and the solution.",
        ),
        (
            "relative gap",
            "How far the solution can be from the true optimum at most. It is computed "
            "from the solution and its multipliers alone, rounding errors included.",
        ),
        (
            "locally optimal",
            "The tokens nearest to being selected score lower than the selected ones, so that "
            "theory allows training to end there although better tokens may exist.",
        ),
    ),
    words=True,
)


def prediction_sentences(solution: Solution, about: str) -> list[str]:
    """Says whether the predicted selection is possible, and how certain that is.

    Args:
        solution: Solution of the margin problem, for one data set or several.
        about: Which tokens it selects, such as "the tokens with the highest scores".
    """
    kind = norm_in_words(solution.geometry)
    if solution.problem.instances is None:
        return [_one_prediction(solution, about, kind)]
    counts = Counter(str(status) for status in solution.status)
    requires = requires_margin(solution.problem)
    solved = (solution.status == Status.OPTIMAL) & requires
    sentences = [
        f"A matrix that selects {about} exists in {counts['optimal']} of {len(solution)} data "
        f"sets, and in {counts['infeasible']} none does."
    ]
    if not requires.all():
        sentences.append(
            f"In {int((~requires).sum())} no row keeps some of its tokens and not others, so that "
            "no direction is predicted."
        )
    beyond = solution.status == Status.OUT_OF_REACH
    if beyond.any():
        sentences.append(
            f"In {beyond.sum()} none was found, and any that does has a {kind} norm of at least "
            f"{solution.norm_lower_bound[beyond].min():.2g}."
        )
    undecided = len(solution) - counts["optimal"] - counts["infeasible"] - beyond.sum()
    if undecided:
        sentences.append(f"In {undecided} the solver stopped before this was certain.")
    if solved.any():
        sentences.append(
            f"Where one exists, its smallest {kind} norm is {np.median(solution.norm[solved]):.5g} "
            "in the median, certified to a relative gap of "
            f"{solution.gap[solved].max():.1e} or better."
        )
    return sentences


def norm_in_words(geometry: Geometry) -> str:
    """The name of a norm in a sentence: Frobenius, nuclear, l_1.5, Schatten-1.5."""
    return geometry.name.replace("frobenius", "Frobenius").replace("schatten_", "Schatten-")


def _one_prediction(solution: Solution, about: str, kind: str) -> str:
    if not requires_margin(solution.problem).any():
        return (
            f"No direction is predicted for {about}: no row keeps some of its tokens and not "
            "others, so that the zero matrix will do. Give a head that tells tokens apart, or a "
            "selection."
        )
    if solution.status is Status.OPTIMAL:
        return (
            f"A matrix that selects {about} exists. The smallest has {kind} norm "
            f"{solution.norm:.8g}, certified to a relative gap of {solution.gap:.1e}."
        )
    if solution.status is Status.INFEASIBLE:
        return (
            f"No matrix selects {about}, in any norm: {solution.conflict.size} of its constraints "
            "contradict each other. The certificate is their Farkas multipliers: exact ones are "
            "proved to lie within rounding of these."
        )
    article = "an" if kind.startswith("l_") else "a"
    bound = f"{article} {kind} norm of at least {solution.norm_lower_bound:.2g}"
    if solution.status is Status.OUT_OF_REACH:
        return (
            f"Whether a matrix selects {about} is not known: none was found, and any that does has "
            f"{bound}."
        )
    if np.isfinite(solution.value):
        return (
            f"A matrix that selects {about} exists. How small one can be is not settled to the "
            f"accuracy required: its {kind} norm is at least {solution.dual_value:.8g}, and at "
            f"most {solution.value:.8g} (a relative gap of {solution.gap:.1e})."
        )
    missing = float(solution.certificate.violation[0])
    short = f" The one found misses a constraint by {missing:.1e}." if missing < np.inf else ""
    return (
        f"Whether a matrix selects {about} was not settled to the accuracy required. Any that does "
        f"has {bound}; no gap is known.{short}"
    )


def training_sentences(verdict: Verdict) -> list[str]:
    """Says what was trained and how it ended."""
    trajectory = verdict.trajectory
    settings = trajectory.settings
    summary = verdict.summary()
    ended = ", ".join(f"{count} {status}" for status, count in summary["status"].items())  # type: ignore[attr-defined]
    details = ", ".join(f"{name} {value}" for name, value in settings.get("optimizer", {}).items())
    name = trajectory.optimizer_name.replace("_", " ") + (f" ({details})" if details else "")
    if verdict.axis == "step":
        trained = f"took up to {summary['steps']:,} steps of {name}"
    else:
        reached = summary[f"last_{verdict.axis}"]
        trained = f"followed the {name} to {verdict.axis.replace('_', ' ')} {reached:g}"
    return [
        f"{summary['trials']} trials {trained} on the {settings['loss']} loss. "
        f"How they ended: {ended}."
    ]


def verdict_sentences(verdict: Verdict) -> list[str]:
    """Says whether training got where the solution points."""
    ratio = verdict.margin_ratio.values
    known = ratio[np.isfinite(ratio)]
    summary = verdict.summary()
    sentences = []
    if not len(known):
        sentences.append(
            f"No trial can be compared with {verdict.reference}: "
            f"{_counted(summary['comparison'], ratio.size)}."
        )
    else:
        median = float(np.median(known))
        elsewhere = (
            "selection_agreement" in verdict.data and (verdict.selection_agreement != 1).any()
        )
        got = (
            "As a stand-in for want of a prediction"
            if set(summary["problem"]) == {STAND_IN}
            else "Training got to the direction of the tokens that it ended on"
            if median >= REACHED_RATIO and elsewhere
            else "Training got there"
            if median >= REACHED_RATIO
            else "Training is on its way there"
            if median >= NEAR_RATIO
            else "Training has not got there"
        )
        correlation = verdict.correlation.values
        cosine = correlation[np.isfinite(correlation)]
        angle = (
            f", the median correlation {near_one(float(np.median(cosine)))}" if len(cosine) else ""
        )
        rest = {words: n for words, n in summary["comparison"].items() if words != COMPARED}
        others = f"; in the others, {_counted(rest, ratio.size)}" if rest else ""
        sentences.append(
            f"{got}: compared with {verdict.reference}, the median margin ratio is "
            f"{near_one(median)}{angle} (1 is a perfect match; {len(known)} of {ratio.size} "
            f"trials can be compared{others})."
        )
    problems = _counted(summary["problem"], ratio.size)
    sentences.append(f"Problem: {problems}. {verdict.why}")
    if verdict.label is not None:
        sentences += _head_sentences(verdict)
    if "selection_agreement" in verdict.data:
        agreement = verdict.selection_agreement
        whole, trials = int((agreement == 1).sum()), agreement.size
        reached = {trials: "reached", 0: "did not reach"}.get(whole)
        sentences.append(
            f"In {100 * float(agreement.mean()):.3g} % of the sequences attention ended on the "
            f"token predicted beforehand; in {whole} of {trials} trials it did so in every "
            "sequence" + (f": training {reached} the predicted tokens." if reached else ".")
        )
    sentences.extend(f"ERROR: {error}." for error in verdict.errors)
    return sentences


def _head_sentences(verdict: Verdict) -> list[str]:
    """Says whether a trained head got where the solution of its label problem points."""
    data, summary = verdict.data, verdict.summary()
    separable, trials = summary["label_separable"], summary["trials"]
    if not separable:
        return ["The head: no head tells the labels apart by the tokens that attention keeps."]
    sentences = [
        "The head, compared with the head of largest margin for the tokens that attention keeps: "
        f"the median label margin ratio is {_median(verdict.label_margin_ratio.values)}, the "
        f"median correlation {_median(verdict.label_correlation.values)} (in {separable} of "
        f"{trials} trials some head tells the labels apart; certified to a relative gap of "
        f"{summary['largest_label_gap']:.1e})."
    ]
    if summary["head_lags"]:
        lags = data["head_lags"].values
        sentences.append(
            f"In {summary['head_lags']} of {trials} trials the norm of the head is only "
            f"{np.median(data['head_ratio'].values[lags]):.3g} times that of W, and the relaxed "
            "problem is the limit from "
            f"{np.median(data['critical_ratio'].values[lags]):.3g} times on: compare such a run "
            "with rate_ratio_direction, or train the head faster."
        )
    return sentences


def _median(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return near_one(float(np.median(known))) if len(known) else "-"


def _counted(counts: dict[str, int], trials: int) -> str:
    """Texts with the number of trials, where they differ."""
    if list(counts.values()) == [trials]:
        return next(iter(counts))
    return "; ".join(f"{words} in {count} of {trials}" for words, count in counts.items())


def near_one(value: float) -> str:
    """A number with enough digits to show how far from 1 it is."""
    if not np.isfinite(value):
        return "-"
    shortfall = abs(1 - value)
    digits = 4 if shortfall == 0 else int(np.clip(2 - np.floor(np.log10(shortfall)), 3, 9))
    return f"{value:.{digits}f}"
