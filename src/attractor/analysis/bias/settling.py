"""Runs that go on while more steps may bring another answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from attractor.analysis.bias._bias_matrix import Experiment
from attractor.analysis.bias.finished_runs import FinishedRun
from attractor.analysis.bias.methods import Method
from attractor.analysis.bias.result import BiasMatrix
from attractor.attention import Head
from attractor.checks import check_steps
from attractor.tokens import Tokens


def settled_matrix(
    tokens: Tokens,
    head: Head,
    *,
    methods: Sequence[Method],
    steps: int,
    most_steps: int,
    say: Callable[[str], object] = lambda line: None,
    **options: Any,
) -> BiasMatrix:
    """The matrix of methods that each take as many steps as it needs for their answers to settle.

    Args:
        tokens: Data sets with labels, along an axis of instances.
        head: The fixed head.
        methods: The rows.
        steps: Number of steps to begin with, of methods that do not bring their own.
        most_steps: A method whose answer may change takes twice as many, up to this.
        say: Told what is tried next.
        options: Further arguments of ``bias_matrix``.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    steps, most_steps = check_steps("steps", steps), check_steps("most_steps", most_steps)
    experiment = Experiment.checked(tokens, head, methods, steps=steps, **options)
    rows = experiment.rows
    known: list[tuple[Method, FinishedRun]] = []
    while True:
        # What stays as it is is not run again.
        runs = {id(row): run for row, run in known}
        known = [(row, runs[id(row)] if id(row) in runs else experiment.run(row)) for row in rows]
        found = experiment.matrix(rows, [run for _, run in known])
        later: list[Method] = []
        for row in rows:
            answer, taken = found.answer(row.name), row.steps or steps
            if answer.more_steps and 2 * taken <= most_steps:
                outcome = f"{row.name}: {answer.verdict} after {taken:,} steps"
                say(f"{outcome}; going on to {2 * taken:,}")
                later.append(replace(row, steps=2 * taken))
            else:
                later.append(row)
        if later == list(rows):
            return found
        rows = tuple(later)
