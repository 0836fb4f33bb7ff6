"""In-context tasks: files of their prompts, queries and labels, and the claims' data in them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attractor.files.contents import ArrayFile, DataSet, Layout, check_known
from attractor.prompts import in_context, measures
from attractor.support.checks import check_count, check_kinds, naming
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_integers, as_shaped

if TYPE_CHECKING:
    from attractor.files.contents import Trial
    from attractor.prompts.in_context import InContextTask, Loss, TaskSample

IN_CONTEXT_LAYOUT = {
    "prompts": ("(n, L, m)", "L tokens of each of n tasks, in random order"),
    "queries": ("(n, m)", "a query of each task, such as (x, 0)"),
    "labels": ("(n,) or (n, k)", "its label, or labels"),
    "token_covariance": ("(n, m, m)", "optional: tokens of a task are N(0, this), so that infinite "
                         "prompts are known exactly; default: all L tokens stand for them"),
    "sigma": ("(s,)", "optional: sub-Gaussian parameters of tokens given the task, of these tasks "
              "or of more of the same law"),
    "loss": ("()", "optional: 0 squared, 1 logistic for labels -1 and 1, 2 Huber; default: 0"),
    "length": ("() or (j,)", "optional, whole numbers: tokens of a prompt; default: L/64, L/16, "
               "L/4"),
    "time": ("()", "optional: how long gradient flow runs; default: 30"),
}  # fmt: skip
"""The entries of an in-context task file: the shape of each, and its meaning."""

_FEWEST_TASKS = 8
_TIME = 30.0


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class InContextCase(ArrayFile, DataSet):
    """Tasks with prompts, queries and labels; what an in-context task file holds.

    Heads are trained on every other task, and their risks taken on the rest.

    Attributes:
        prompts: The longest prompts, of which shorter ones are the first tokens.
        queries: A query a task.
        labels: Its labels.
        token_covariance: Covariances where tokens are normal given the task; or None, where the
            longest prompts stand for infinite ones.
        sigma: Sub-Gaussian parameters of tokens given the task, or None.
        loss_number: The place of the loss in ``attractor.prompts.in_context.LOSSES``.
        lengths: Tokens of prompts, increasing.
        time: How long gradient flow runs.
        about: What the data are, in words.
    """

    words: ClassVar[str] = "in-context task file"
    held: ClassVar[str] = "in-context tasks with prompts, queries and labels"
    layout: ClassVar[Layout] = IN_CONTEXT_LAYOUT
    marks: ClassVar[tuple[str, ...]] = ("prompts",)
    prompts: np.ndarray
    queries: np.ndarray
    labels: np.ndarray
    token_covariance: np.ndarray | None = None
    sigma: np.ndarray | None = None
    loss_number: int = 0
    lengths: tuple[int, ...] = ()
    time: float = _TIME
    about: str = "in-context tasks"

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], name: str
    ) -> InContextCase:
        """Puts together what lies in an in-context task file; see ``ArrayFile``."""
        check_known(arrays, IN_CONTEXT_LAYOUT, name, "for in-context tasks")
        for each in ("prompts", "queries", "labels"):
            if each not in arrays:
                shape, meaning = IN_CONTEXT_LAYOUT[each]
                raise InvalidInputError(
                    each, f"{name} has no such array", f"Add {each} {shape}: {meaning}"
                )
        prompts = as_shaped("prompts", arrays["prompts"], ("n", "L", "m"), largest=LARGEST)
        n, longest, m = prompts.shape
        if n < _FEWEST_TASKS:
            raise InvalidInputError("prompts", f"{n} tasks", f"Give {_FEWEST_TASKS} or more")
        queries = as_shaped("queries", arrays["queries"], (n, m), largest=LARGEST)
        labels = np.asarray(arrays["labels"])
        if labels.ndim == 1:
            labels = labels[:, None]
        labels = as_shaped("labels", labels, (n, "k"), largest=LARGEST)
        if labels.shape[1] >= m:
            raise InvalidInputError(
                "labels", f"{labels.shape[1]} for tokens of {m} entries", "Give fewer than entries"
            )
        covariance, sigma = arrays.get("token_covariance"), arrays.get("sigma")
        if covariance is not None:
            covariance = as_shaped("token_covariance", covariance, (n, m, m), largest=LARGEST)
            lowest = np.linalg.eigvalsh(covariance)[:, 0]
            if not (lowest >= -1e-8 * np.abs(covariance).max((1, 2))).all():
                raise InvalidInputError(
                    "token_covariance", f"that of task {int(lowest.argmin())} is none",
                    "Give symmetric matrices without negative eigenvalues",
                )  # fmt: skip
        if sigma is not None:
            sigma = as_shaped("sigma", sigma, ("s",), largest=LARGEST)
            if sigma.min() <= 0:
                raise InvalidInputError("sigma", f"one is {sigma.min():.3g}", "Give positive ones")
        number = int(as_integers("loss", arrays.get("loss", np.array(0)), (), most=2))
        given = arrays.get("length", [max(1, longest // part) for part in (64, 16, 4)])
        lengths = as_integers("length", np.atleast_1d(given), ("j",), least=1, most=longest)
        time = float(as_shaped("time", arrays.get("time", _TIME), (), largest=1e6))
        if not time > 0:
            raise InvalidInputError("time", f"it is {time:g}", "Give a positive number")
        unique = tuple(sorted({int(length) for length in lengths}))
        return cls(
            prompts, queries, labels, covariance, sigma, number, unique, time, about=name
        )  # fmt: skip

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The arrays of an in-context task file."""
        return dict(self.arrays()), {}

    @classmethod
    def of_task(
        cls,
        task: InContextTask,
        tasks: int = 256,
        longest: int = 4096,
        lengths: Sequence[int] = (64, 256, 1024),
        *,
        time: float = _TIME,
        sigmas: int = 2**16,
        seed: int = 0,
    ) -> InContextCase:
        """Draws tasks of a law, with prompts, queries and labels, to be kept in a file.

        Args:
            task: The law.
            tasks: Number of tasks.
            longest: Tokens of each prompt.
            lengths: Tokens of prompts to train on.
            time: How long gradient flow runs.
            sigmas: Sub-Gaussian parameters drawn besides, where the task gives any.
            seed: Same seed, same tasks.

        Raises:
            InvalidInputError: If the law cannot be drawn from, its loss is not one of ``LOSSES``,
                or a number cannot be used.
        """
        check_kinds(task=(task, in_context.InContextTask))
        if task.loss not in in_context.LOSSES:
            raise InvalidInputError(
                "task", f"its loss is {task.loss.name}, which no file holds", "Take one of LOSSES"
            )
        sample = task.sample(check_count("tasks", tasks, _FEWEST_TASKS), longest, seed=seed)
        with naming(count="sigmas"):
            sigma = task.sub_gaussian_parameters(sigmas, seed=seed)
        arrays: dict[str, Any] = {
            "prompts": sample.prompts,
            "queries": sample.queries,
            "labels": sample.labels,
            "loss": np.array(in_context.LOSSES.index(task.loss)),
            "length": np.array(list(lengths)),
            "time": np.array(time),
        }
        if sigma is not None:
            arrays["sigma"] = sigma
        if sample.exact and isinstance(sample.limit, measures.Gaussian):
            arrays["token_covariance"] = sample.limit._covariance
        return cls.from_arrays(arrays, {}, task.name)

    @property
    def loss(self) -> Loss:
        """The loss."""
        return in_context.LOSSES[self.loss_number]

    def samples(self) -> tuple[TaskSample, TaskSample]:
        """The tasks trained on, and those that risks are taken on."""
        return self._part(slice(0, None, 2)), self._part(slice(1, None, 2))

    def _part(self, kept: slice) -> TaskSample:
        from attractor.prompts.measures.gaussian import centered

        prompts, limit = self.prompts[kept], None
        if self.token_covariance is None:
            limit = measures.Empirical(prompts)
        else:
            limit = centered(self.token_covariance[kept])
        exact = self.token_covariance is not None
        return in_context.TaskSample(prompts, self.queries[kept], self.labels[kept], limit, exact)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the case holds, by name, for hashing."""
        optional = {"token_covariance": self.token_covariance, "sigma": self.sigma}
        return {
            "prompts": self.prompts,
            "queries": self.queries,
            "labels": self.labels,
            **{name: array for name, array in optional.items() if array is not None},
            "loss": np.array(self.loss_number),
            "length": np.array(self.lengths),
            "time": np.array(self.time),
        }

    @property
    def size(self) -> int:
        """Numbers in all prompts."""
        return self.prompts.size

    @property
    def size_in_words(self) -> str:
        """Tasks, tokens and lengths."""
        n, longest, m = self.prompts.shape
        lengths = ", ".join(f"{length:,}" for length in self.lengths)
        return f"{n} tasks, {longest:,} tokens of {m} entries, trained on {lengths}"

    def smaller(self, trial: Trial) -> InContextCase:
        """The case less what a counterexample does not need: tasks go by halves."""
        case = self
        while len(case.prompts) >= 2 * _FEWEST_TASKS:
            half = len(case.prompts) // 2
            names = ("prompts", "queries", "labels", "token_covariance")
            kept = {name: getattr(case, name) for name in names}
            cut = {name: None if a is None else a[:half] for name, a in kept.items()}
            smaller = trial.smaller_of(case, case.replace(**cut))
            if smaller is case:
                break
            case = smaller
        return case


def save_in_context(path: str | os.PathLike[str], loaded: InContextCase) -> None:
    """Writes in-context tasks, so that ``load`` gives the same.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        loaded: The tasks.

    Raises:
        InvalidInputError: If the name ends in anything else, or an array cannot be used; nothing is
            written then.
    """
    check_kinds(loaded=(loaded, InContextCase))
    loaded.save(path)
