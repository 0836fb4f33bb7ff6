"""Assumptions of claims on the results of trained classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attractor.papers.files.classifiers import ClassifierCase
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.mirror_descent.classifiers.contest import (
    Contest,
    learned_seeds,
    least_learned,
    stuck_models,
)

_MOST = 0.5
"""More than this share of seeds must have learned."""


def results_of(contest: Contest) -> Assumption[ClassifierCase]:
    """Results are of the right kind of data, and have what is compared."""
    kind, words = f"{contest.data}s", contest.quantity.words

    def check(case: ClassifierCase) -> Check:
        known = case.data.attrs.get("data")
        if known != contest.data:
            said = "do not say of what" if known is None else f"are of {known}s"
            return Check(False, f"the results {said}")
        there = case.data["optimizer"].values.tolist()
        absent = [name for name in contest.names if name not in there]
        if absent:
            return Check(False, f"there is no {' and no '.join(absent)} among {', '.join(there)}")
        missing = contest.quantity.missing(case.data)
        if missing is not None:
            return Check(False, missing)
        for order in contest.orders:
            found = contest.difference(case.data, order)
            unknown = found.seeds[~np.isfinite(found.by_seed)]
            if len(unknown):
                return Check(False, f"{contest.words(order)} has no number for seed {unknown[0]}")
        return Check(True, f"{words} of {' and '.join(contest.names)}")

    statement = f"The results are of classifiers of {kind} trained by " + " and by ".join(
        contest.names
    )
    return Assumption(kind, f"{statement}, and have the {words}.", check)


def rates_inside(names: Sequence[str] | None = None) -> Assumption[ClassifierCase]:
    """Learning rates are inside the range tried, where a better one cannot be beyond it.

    Args:
        names: Of which optimizers; None for all.
    """

    def check(case: ClassifierCase) -> Check:
        if "at_edge" not in case.data:
            return Check(False, "the results do not say so: there is no at_edge")
        chosen = _of(names, case)
        out = [name for name in chosen if bool(case.data["at_edge"].sel(optimizer=name))]
        if out:
            return Check(False, f"at the edge of those tried: {', '.join(out)}")
        return Check(True, f"inside the range tried: {', '.join(chosen)}")

    return Assumption(
        "learning rates", "The learning rates chosen are inside the range of those tried.", check
    )


def own_starts() -> Assumption[ClassifierCase]:
    """Seeds differ in the model they start from; intervals over others leave variation out."""

    def check(case: ClassifierCase) -> Check:
        one = bool(case.data.attrs.get("same_start", 0))
        return Check(not one, f"every seed starts from {'one model' if one else 'its own model'}")

    return Assumption("own starts", "Every seed starts from a model of its own.", check)


def curves_known() -> Assumption[ClassifierCase]:
    """Results show how accuracy rises, so that models can be looked at early as well."""

    def check(case: ClassifierCase) -> Check:
        there = "validation_accuracy" in case.data
        return Check(there, f"there is {'the' if there else 'no'} validation_accuracy by epoch")

    return Assumption("curves", "Results have the validation accuracy of every epoch.", check)


def learned(names: Sequence[str] | None = None) -> Assumption[ClassifierCase]:
    """Most seeds have learned something with every optimizer.

    Args:
        names: Of which optimizers; None for all.
    """

    def check(case: ClassifierCase) -> Check:
        data = case.data
        if "chance" not in data.attrs or "test_examples" not in data.attrs:
            return Check(False, "the results do not say so: chance or test_examples is missing")
        chosen = _of(names, case)
        share = float(learned_seeds(data, chosen).mean())
        needed = f"chance is {float(data.attrs['chance']):.4g}, and more than "
        needed += f"{least_learned(data):.4g} is learned"
        return Check(share > _MOST, "; ".join([*stuck_models(data, chosen), needed]))

    return Assumption(
        "learned",
        "On more than half of the seeds every model knows more than chance, by three standard "
        "errors.",
        check,
    )


def _of(names: Sequence[str] | None, case: ClassifierCase) -> Sequence[str]:
    return case.data["optimizer"].values.tolist() if names is None else names


CLASSIFIER_HYPOTHESES = (rates_inside(), own_starts(), learned())
"""Hypotheses on all optimizers of results."""
