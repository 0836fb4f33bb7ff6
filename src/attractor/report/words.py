"""What results mean, in plain words."""

from __future__ import annotations

from collections import Counter

import numpy as np

from attractor.analysis import Verdict
from attractor.errors import Status
from attractor.geometry import Geometry
from attractor.margin import Solution
from attractor.report.page import Table

REACHED_RATIO = 0.99
"""Median margin ratio from which the text says that training got there."""
NEAR_RATIO = 0.9
"""Median margin ratio from which it says that training is on its way."""

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
    solved = solution.status == Status.OPTIMAL
    sentences = [
        f"A matrix that selects {about} exists in {counts['optimal']} of {len(solution)} data "
        f"sets, and in {counts['infeasible']} none does."
    ]
    undecided = len(solution) - counts["optimal"] - counts["infeasible"]
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
    """What a norm is called in a sentence: Frobenius, nuclear, l_1.5, Schatten-1.5."""
    return geometry.name.replace("frobenius", "Frobenius").replace("schatten_", "Schatten-")


def _one_prediction(solution: Solution, about: str, kind: str) -> str:
    if solution.status is Status.OPTIMAL:
        return (
            f"A matrix that selects {about} exists. The smallest has {kind} norm "
            f"{solution.norm:.8g}, certified to a relative gap of {solution.gap:.1e}."
        )
    article = "an" if kind.startswith("l_") else "a"
    bound = f"{article} {kind} norm of at least {solution.norm_lower_bound:.2g}"
    if solution.status is Status.INFEASIBLE:
        none = f"No matrix selects {about}: the constraints contradict each other"
        if np.isinf(solution.norm_lower_bound):
            return f"{none}."
        return f"{none}, to working precision (a matrix that met them would need {bound})."
    return (
        f"Whether a matrix selects {about} was not settled to the accuracy asked for: "
        f"{solution.status.message} It has {bound}; the relative gap left is {solution.gap:.1e}."
    )


def training_sentences(verdict: Verdict) -> list[str]:
    """Says what was trained and how it ended."""
    trajectory = verdict.trajectory
    settings = trajectory.settings
    summary = verdict.summary()
    ended = ", ".join(f"{count} {status}" for status, count in summary["status"].items())  # type: ignore[attr-defined]
    details = ", ".join(f"{name} {value}" for name, value in settings.get("optimizer", {}).items())
    return [
        f"{summary['trials']} trials took up to {summary['steps']:,} steps of "
        f"{trajectory.optimizer_name.replace('_', ' ')} ({details}) on the {settings['loss']} "
        f"loss. How they ended: {ended}."
    ]


def verdict_sentences(verdict: Verdict) -> list[str]:
    """Says whether training got where the solution points."""
    ratio = verdict.margin_ratio.values
    known = ratio[np.isfinite(ratio)]
    sentences = []
    if not len(known):
        sentences.append(
            f"No trial can be held against {verdict.reference}: none of these margin problems "
            "is feasible."
        )
    else:
        median = float(np.median(known))
        got = (
            "Training got there"
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
        sentences.append(
            f"{got}: held against {verdict.reference}, the median margin ratio is "
            f"{near_one(median)}{angle} (1 is a perfect match; {len(known)} of {ratio.size} "
            "trials can be compared)."
        )
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


def near_one(value: float) -> str:
    """A number with enough digits to show how far from 1 it is."""
    if not np.isfinite(value):
        return "-"
    shortfall = abs(1 - value)
    digits = 4 if shortfall == 0 else int(np.clip(2 - np.floor(np.log10(shortfall)), 3, 9))
    return f"{value:.{digits}f}"
