"""Sizes of the figures of text classifiers, which they share."""

from __future__ import annotations

from typing import Any

from attractor.papers.figure import Request
from attractor.papers.mirror_descent.text.contenders import CONTENDERS
from attractor.papers.mirror_descent.text.task import Schedule, TextTask, planted_task

_FOUR = ("p = 1.1", "p = 2", "p = 3", "Adam")

SIZES: dict[str, dict[str, Any]] = {
    "quick": {
        "seeds": 3,
        "optimizers": _FOUR,
        "epochs": 60,
        "patience": None,
        "tries": 5,
    },
    "small": {
        "seeds": 5,
        "optimizers": tuple(CONTENDERS),
        "epochs": 60,
        "patience": None,
        "tries": 7,
    },
    "paper": {
        "seeds": 10,
        "optimizers": tuple(CONTENDERS),
        "epochs": 60,
        "patience": None,
        "tries": 9,
    },
}


def task_of(request: Request) -> TextTask:
    """The task of a size."""
    settings = request.settings
    schedule = Schedule(settings["epochs"], settings["patience"], settings["tries"])
    return planted_task(schedule, seed=request.seed)
