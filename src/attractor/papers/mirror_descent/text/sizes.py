"""Sizes of the figures of text classifiers, which they share."""

from __future__ import annotations

from typing import Any

from attractor.papers.figure import Request
from attractor.papers.mirror_descent.classifiers.contenders import CONTENDERS
from attractor.papers.mirror_descent.classifiers.task import Schedule
from attractor.papers.mirror_descent.text.reviews import reviews_task
from attractor.papers.mirror_descent.text.task import TextTask, planted_task

_FOUR = ("p = 1.1", "p = 2", "p = 3", "Adam")

SIZES: dict[str, dict[str, Any]] = {
    "quick": {
        "texts": "planted words",
        "seeds": 3,
        "optimizers": _FOUR,
        "epochs": 60,
        "patience": None,
        "tries": 5,
        "model": {"width": 32, "blocks": 1, "heads": 2, "hidden": 64},
    },
    "small": {
        "texts": "film reviews",
        "reviews": {"train": 8_000, "validation": 1_000, "test": 4_000},
        "seeds": 5,
        "optimizers": _FOUR,
        "epochs": 12,
        "patience": None,
        "tries": 4,
        "vocabulary": 8_000,
        "model": {"length": 128, "width": 64, "blocks": 2, "heads": 4, "hidden": 256},
    },
    "paper": {
        "texts": "film reviews",
        "reviews": {"train": 17_500, "validation": 2_500, "test": 5_000},
        "seeds": 10,
        "optimizers": tuple(CONTENDERS),
        "epochs": 150,
        "patience": 30,
        "tries": 7,
        "vocabulary": 30_522,
        "model": {"length": 512, "width": 384, "blocks": 6, "heads": 6, "hidden": 1536},
    },
}
"""The installed reviews are 25,000; the published split has as many again to test with."""


def task_of(request: Request) -> TextTask:
    """The task of a size."""
    settings = request.settings
    schedule = Schedule(settings["epochs"], settings["patience"], settings["tries"])
    if settings["texts"] == "planted words":
        return planted_task(schedule, seed=request.seed, **settings["model"])
    return reviews_task(
        schedule,
        settings["reviews"],
        vocabulary=settings["vocabulary"],
        seed=request.seed,
        **settings["model"],
    )
