"""Training by gradient flow on prompts of several lengths, and on infinite ones."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import scipy.integrate
import xarray as xr
from jaxtyping import Array, Float

from attractor.prompts.head import AttentionHead
from attractor.prompts.in_context.losses import Loss
from attractor.prompts.in_context.task import InContextTask, TaskSample, check_head, losses_of
from attractor.results import PlainText, load_data, save_data
from attractor.results.html import numbers_table, paragraph
from attractor.support.checks import (
    as_number,
    check_count,
    check_kind,
    check_number,
    check_text,
    naming,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_integers, as_shaped, double_precision
from attractor.support.randomness import check_seed

if TYPE_CHECKING:
    import xarray as xr

_KIND = "risks of in-context training by length"
_TOLERANCE = 1e-6
_MOST_GRADIENTS = 20_000
_HELD_OUT_SEED = 1_000_003


@dataclass(frozen=True, eq=False, repr=False)
class RiskTransfer(PlainText):
    """Risks along gradient flow on finite prompts and on infinite ones, from one start.

    Attributes:
        data: Labeled arrays over the length trained on (infinity among them) and time: ``risk`` of
            the head on held-out prompts of its own length, ``infinite_risk`` of the same head on
            infinite prompts, their standard errors ``risk_error`` and ``infinite_risk_error``,
            ``excess`` of the risk over that trained on infinite prompts, with its error, which is
            that of the difference task by task, ``training_risk`` and ``gradient`` (its norm) on
            the tasks trained on, ``gap``, the distance of ``(U, V)`` from the flow on infinite
            prompts, and the parameters; ``limit_error``, how far tokens that stand for infinite
            prompts are off in the risk.
        about: The task in words.
    """

    data: xr.Dataset
    about: str

    def head(self, length: float, time: float | None = None) -> AttentionHead:
        """The head trained on a length, at a recorded time; None for the last.

        Raises:
            InvalidInputError: If the length was not trained on, or the time not recorded.
        """
        lengths, times = (self.data[name].values.tolist() for name in ("length", "time"))
        wanted = as_number(length), times[-1] if time is None else as_number(time)
        for argument, value, known in zip(
            ("length", "time"), wanted, (lengths, times), strict=True
        ):
            if value not in known:
                raise InvalidInputError(
                    argument, f"{value:g} is not recorded", f"Give one of {known}"
                )
        found = self.data.sel(length=wanted[0], time=wanted[1])
        return AttentionHead(found["score_matrix"].values, found["value_matrix"].values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a NetCDF file, which appears whole or not at all.

        Raises:
            InvalidInputError: If the name does not end in ``.nc``.
        """
        save_data(self.data.assign_attrs(about=self.about), path, _KIND)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RiskTransfer:
        """Reads a file that ``save`` wrote.

        Raises:
            InvalidInputError: If it is no path.
            FileFormatError: If the file holds no such risks.
        """
        data = load_data(path, _KIND)
        about = str(data.attrs.pop("about", ""))
        return cls(data, about)

    def __str__(self) -> str:
        """A table: lengths down, times across."""
        names, rows = self._table()
        lines = [
            f"{first:>10} " + " ".join(f"{cell:>17}" for cell in others)
            for first, *others in (names, *rows)
        ]
        return "\n".join([self._title(), *lines, self._note()])

    def _html_parts(self) -> list[str]:

        return [numbers_table(self._title(), *self._table()), paragraph(self._note())]

    def _title(self) -> str:
        return f"{self.about}: risk on held-out tasks along gradient flow"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Names of columns, and a row for each length."""
        data, times = self.data, self.data["time"].values
        kept = times[np.unique(np.linspace(0, len(times) - 1, 4).round().astype(int))]
        names = ["tokens", *(f"t = {time:.4g}" for time in kept), "excess", "on inf prompts"]
        rows = []
        for length in data["length"].values:
            one = data.sel(length=length)
            cells = [_cell(one["risk"], one["risk_error"], time) for time in kept]
            cells += [
                _cell(one[name], one[f"{name}_error"], times[-1])
                for name in ("excess", "infinite_risk")
            ]
            tokens = "infinite" if math.isinf(length) else f"{length:,.0f}"
            rows.append([tokens, *cells])
        return names, rows

    def _note(self) -> str:
        error = float(self.data["limit_error"].isel(time=-1).max())
        limit = "in closed form" if error == 0 else f"by many tokens, off by about {error:.2g}"
        return f"standard errors over tasks in parentheses; infinite prompts {limit}"


def _cell(values: Any, errors: Any, time: float) -> str:
    return f"{float(values.sel(time=time)):.5f} ({float(errors.sel(time=time)):.1g})"


def initial_head(dimension: int, outputs: int = 1, scale: float = 0.5) -> AttentionHead:
    """The balanced start: ``U = scale diag(I / sqrt(d), 0)``, and ``V`` reads scale times labels.

    The last ``outputs`` entries of a token are its labels, ``d`` are the others.

    Args:
        dimension: Entries of a token.
        outputs: Labels of a token.
        scale: Positive.

    Raises:
        InvalidInputError: If a count is not positive, no entry is left beside labels, or the scale
            is not positive.
    """
    outputs = check_count("outputs", outputs)
    dimension = check_count("dimension", dimension, outputs + 1)
    scale = check_number("scale", scale, above=0.0, most=LARGEST, example=0.5)
    d = dimension - outputs
    score, value = np.zeros((dimension, dimension)), np.zeros((outputs, dimension))
    score[:d, :d] = scale * np.eye(d) / math.sqrt(d)
    value[:, d:] = scale * np.eye(outputs) / math.sqrt(outputs)
    return AttentionHead(score, value)


def risk_transfer(
    task: InContextTask,
    lengths: Sequence[int] = (16, 64, 256, 1024),
    times: Sequence[float] | Float[np.ndarray, "time"] = (0, 1, 3, 10, 30, 100),
    *,
    tasks: int = 1024,
    held_out: int = 4096,
    initial: AttentionHead | None = None,
    limit_tokens: int = 4096,
    seed: int = 0,
) -> RiskTransfer:
    """Trains a head on prompts of each length, and on infinite ones, and compares their risks.

    Gradient flow in ``(U, V)`` on the average loss over a fixed sample of tasks, in float64, from
    one start; risks are those on other tasks. Prompts of all lengths share their tokens.

    Args:
        task: The task.
        lengths: Tokens of a prompt, increasing.
        times: When to record, increasing from 0 on.
        tasks: Tasks trained on.
        held_out: Tasks that risks are taken on.
        initial: The start; ``initial_head`` if None.
        limit_tokens: Tokens that stand for infinitely many where the task gives no law.
        seed: Of every task, prompt and query.

    Raises:
        InvalidInputError: If an argument cannot be used, a function of the task neither (see
            ``InContextTask.sample``), or the flow cannot be followed.
    """
    check_kind("task", task, InContextTask, "Derive a class from InContextTask")
    sizes, clock = _increasing(lengths), _clock(times)
    other = (check_seed("seed", seed) + _HELD_OUT_SEED) % 2**63
    longest, settings = sizes[-1], {"limit_tokens": limit_tokens}
    with naming(count="tasks", longest="lengths"):
        train = task.sample(check_count("tasks", tasks, 2), longest, seed=seed, **settings)
    with naming(count="held_out", longest="lengths"):
        fresh = task.sample(check_count("held_out", held_out, 2), longest, seed=other, **settings)
    return transfer_of_samples(
        train, fresh, task.loss, sizes, clock, initial=initial, about=task.name
    )


def transfer_of_samples(
    train: TaskSample,
    held_out: TaskSample,
    loss: Loss,
    lengths: Sequence[int],
    times: Sequence[float] | Float[np.ndarray, "time"],
    *,
    initial: AttentionHead | None = None,
    about: str = "tasks",
) -> RiskTransfer:
    """``risk_transfer`` of samples drawn already, such as those of a file.

    Args:
        train: Tasks trained on.
        held_out: Tasks that risks are taken on.
        loss: The loss.
        lengths: Tokens of a prompt, increasing, at most those of the samples.
        times: When to record, increasing from 0 on.
        initial: The start; ``initial_head`` if None.
        about: The tasks in words.

    Raises:
        InvalidInputError: If an argument cannot be used, or the flow cannot be followed.
    """
    check_kind("train", train, TaskSample, "Give InContextTask.sample(...)")
    check_kind("held_out", held_out, TaskSample, "Give InContextTask.sample(...)")
    check_kind("loss", loss, Loss, "Give one of attractor.prompts.in_context.LOSSES")
    check_text("about", about)
    sizes, clock = _increasing(lengths), _clock(times)
    m, k = train.queries.shape[1], train.labels.shape[1]
    start = initial_head(m, k) if initial is None else initial
    _check_start(train, loss, start)
    trained = [*map(float, sizes), math.inf]
    flows = [gradient_flow(train, loss, start, length, clock) for length in trained]
    found = {name: np.empty((len(trained), len(clock))) for name in _SERIES}
    limit = flows[-1]
    at_limit = [held_out.losses_under(head, loss, held_out.limit) for head in limit.heads]
    for row, (length, flow) in enumerate(zip(trained, flows, strict=True)):
        law = held_out.law(length)
        for column, head in enumerate(flow.heads):
            infinite = own = at_limit[column]
            if flow is not limit:
                infinite = held_out.losses_under(head, loss, held_out.limit)
                own = held_out.losses_under(head, loss, law)
            excess, at = own - at_limit[column], limit.heads[column]
            root = math.sqrt(len(own))
            found["gap"][row, column] = math.hypot(
                float(np.linalg.norm(head.score_matrix - at.score_matrix)),
                float(np.linalg.norm(head.value_matrix - at.value_matrix)),
            )
            for name, losses in (("risk", own), ("infinite_risk", infinite), ("excess", excess)):
                found[name][row, column] = losses.mean()
                found[f"{name}_error"][row, column] = losses.std(ddof=1) / root
            found["training_risk"][row, column] = flow.risk[column]
            found["gradient"][row, column] = flow.gradient[column]
            found["limit_error"][row, column] = held_out.limit_error(head, loss)
    axes = ("length", "time")
    arrays: dict[str, Any] = {name: (axes, values) for name, values in found.items()}
    for name, rest in (("score_matrix", ("row", "column")), ("value_matrix", ("output", "column"))):
        arrays[name] = ((*axes, *rest), np.stack([getattr(flow, name) for flow in flows]))
    attributes = {
        "loss": loss.name,
        "tasks": len(train.queries),
        "held_out": len(held_out.queries),
        "exact_limit": int(train.exact and held_out.exact),
    }
    data = xr.Dataset(arrays, {"length": trained, "time": np.array(clock)}, attributes)
    return RiskTransfer(data, about)


def _check_start(train: TaskSample, loss: Loss, start: AttentionHead) -> None:
    """Refuses heads that do not fit, or for which attention over infinitely many does not exist."""
    check_head(train, start, loss)
    with double_precision():
        # By the program that training on infinite prompts needs anyway.
        data = jax.device_put((train.limit, train.queries, train.labels))
        matrices = (np.asarray(M, np.float64) for M in (start.score_matrix, start.value_matrix))
        risk, _ = _compiled_risk(loss)(*matrices, data)
    if not math.isfinite(risk):
        train.risk(start, loss)  # says of which task


_SERIES = (
    "risk", "risk_error", "infinite_risk", "infinite_risk_error", "excess", "excess_error",
    "training_risk", "gradient", "gap", "limit_error",
)  # fmt: skip


def _increasing(lengths: Any) -> list[int]:
    sizes = as_integers("lengths", lengths, ("length",), least=1).tolist()
    if sorted(set(sizes)) != sizes:
        raise InvalidInputError("lengths", f"they are {sizes}", "Give increasing whole numbers")
    return sizes


def _clock(times: Any) -> Float[np.ndarray, "time"]:
    clock = as_shaped("times", times, ("time",), largest=1e9)
    if clock[0] < 0 or clock[-1] <= 0 or (np.diff(clock) <= 0).any():
        raise InvalidInputError("times", "they do not increase from 0 on", "Give such as 0, 1, 10")
    return clock


@dataclass(frozen=True, eq=False)
class HeadFlow:
    """Gradient flow of a head on the average loss over tasks.

    Attributes:
        times: When it was recorded.
        score_matrix: ``U`` at those times.
        value_matrix: ``V``.
        risk: The average loss.
        gradient: The norm of its gradient.
    """

    times: Float[np.ndarray, "time"]
    score_matrix: Float[np.ndarray, "time d d"]
    value_matrix: Float[np.ndarray, "time output d"]
    risk: Float[np.ndarray, "time"]
    gradient: Float[np.ndarray, "time"]

    @functools.cached_property
    def heads(self) -> list[AttentionHead]:
        """The head at each of those times."""
        matrices = zip(self.score_matrix, self.value_matrix, strict=True)
        return [AttentionHead(u, v) for u, v in matrices]


def gradient_flow(
    sample: TaskSample,
    loss: Loss,
    initial: AttentionHead,
    length: float,
    times: Float[np.ndarray, "time"],
) -> HeadFlow:
    """``(U, V)' = -grad R(U, V)``, ``R`` the average loss on prompts of a length.

    By Runge and Kutta's method of order 5(4), with a relative error of 1e-6 a step.

    Args:
        sample: The tasks.
        loss: The loss.
        initial: The head at time 0.
        length: Tokens of a prompt, or infinity.
        times: When to record, increasing from 0 on.

    Raises:
        InvalidInputError: If the flow leaves every bound, or takes 20,000 gradients.
    """
    u, v = np.shape(initial.score_matrix), np.shape(initial.value_matrix)
    split = math.prod(u)
    compiled = _compiled_risk(loss)
    with double_precision():
        data = jax.device_put((sample.law(length), sample.queries, sample.labels))

        def slope(point: np.ndarray) -> tuple[float, np.ndarray]:
            risk, (in_u, in_v) = compiled(point[:split].reshape(u), point[split:].reshape(v), data)
            return float(risk), np.concatenate([np.ravel(in_u), np.ravel(in_v)])

        taken = itertools.count(1)

        def descent(time: float, point: np.ndarray) -> np.ndarray:
            if next(taken) > _MOST_GRADIENTS:
                raise InvalidInputError(
                    "times",
                    f"the flow is too stiff to be followed beyond {time:.3g}",
                    "Give earlier times, or tasks of smaller scale: a few very large ones may rule",
                )
            return -slope(point)[1]

        start = np.concatenate([np.ravel(initial.score_matrix), np.ravel(initial.value_matrix)])
        solved = scipy.integrate.solve_ivp(
            descent, (0.0, float(times[-1])), start.astype(np.float64),
            t_eval=np.asarray(times), rtol=_TOLERANCE, atol=_TOLERANCE,
        )  # fmt: skip
        if not solved.success or not np.isfinite(solved.y).all():
            raise InvalidInputError(
                "initial", "the flow from it cannot be followed", "Give a smaller one"
            )
        ends = [slope(point) for point in solved.y.T]
    return HeadFlow(
        np.asarray(times),
        solved.y[:split].T.reshape(-1, *u),
        solved.y[split:].T.reshape(-1, *v),
        np.array([risk for risk, _ in ends]),
        np.array([float(np.linalg.norm(gradient)) for _, gradient in ends]),
    )


@functools.lru_cache(maxsize=64)
def _compiled_risk(loss: Loss) -> Any:
    def risk(score: Float[Array, "d d"], value: Float[Array, "output d"], data: Any) -> Array:
        return losses_of(score, value, data, loss).mean()

    return jax.jit(jax.value_and_grad(risk, argnums=(0, 1)))
