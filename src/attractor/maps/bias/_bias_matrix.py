"""``bias_matrix``: optimizers on the same problems in every norm; ``which_norm``: one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from attractor.analysis.measures import smallest_margin
from attractor.attention import Head, Parameterization, get_loss
from attractor.attention.multi_head import one_attention_head
from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.maps.bias.answer import SATURATED
from attractor.maps.bias.best_setting import DECAYS, settings_of_all
from attractor.maps.bias.methods import NORMS, standard_methods
from attractor.maps.bias.ratios import (
    margin_ratios,
    nearby_names,
    nearby_ratios,
    reached_selections,
    solve_reached,
)
from attractor.maps.bias.result import BiasMatrix, FinishedRun, FinishedRuns
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.methods import methods_for
from attractor.margin.selection import optimal_tokens
from attractor.support.checks import check_flags, check_items, check_steps
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed
from attractor.tokens import Tokens
from attractor.training import Optimizer, Trajectory, train
from attractor.training.optimizers.optimizer import UNNAMED
from attractor.training.own.bridges import bridge
from attractor.training.own.bring_your_own import as_method
from attractor.training.own.method import Method, gradients_of
from attractor.training.validation import check_head, check_tokens, refuse_weights

if TYPE_CHECKING:
    import xarray as xr


RECORDS = 40


def bias_matrix(
    tokens: Tokens,
    head: Head,
    *,
    methods: Sequence[Method] | None = None,
    norms: Sequence[Geometry | str] = NORMS,
    mean_steps: Callable[[Method], Sequence[float]] | None = None,
    decays: Sequence[float] = DECAYS,
    steps: int = 6000,
    most_steps: int | None = None,
    seed: int = 0,
    loss: str = "logistic",
    matched: bool = False,
    progress: bool = False,
) -> BiasMatrix:
    """Trains every method on every data set, and measures where it went in every norm.

    A method runs at its own step size, or with ``mean_steps`` at several, ``eta_t = eta_0
    t^-decay``, a row for each. Step sizes that decay are chosen so that their mean over the run is
    that of the others: all settings of a mean step size take the same way in all.

    The measure is the normalized margin ratio ``(min_j a_j^T W b_j / ||W||) ||W*||``, where the
    margin problem, and so its solution W* in that norm, is that of the tokens which the run
    attends to at its end. Each run is thus compared with the best margin for its own selection,
    and rows can be compared although runs may select different tokens.

    Args:
        tokens: Data sets with labels, along an axis of instances.
        head: The fixed head.
        methods: The rows; default: ``standard_methods("paper", steps)``.
        norms: The columns. The norm a method is known to descend is measured besides.
        mean_steps: The mean step sizes to try of a method, beside its own; of one whose step size
            cannot be set, none are. Default: its own alone.
        decays: The powers of the step to try then; zero for constant step sizes.
        steps: Number of steps of methods that do not bring their own.
        most_steps: Doubles the steps of a row up to this many while they may bring another answer;
            None for ``steps`` alone.
        seed: Seed of the random initial weights.
        loss: The loss.
        matched: Whether all methods start from one matrix that keeps the optimal tokens, five
            times the Frobenius solution for them, in place of random weights. Then the
            selections agree, and with them the margin problems.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been trained then.
    """
    rows = standard_methods("paper", steps) if methods is None else methods
    return Experiment.checked(
        tokens,
        head,
        rows,
        norms,
        steps,
        mean_steps=mean_steps,
        decays=decays,
        seed=seed,
        loss=loss,
        matched=matched,
        progress=progress,
    ).settled(most_steps)


@dataclass(frozen=True)
class Experiment:
    """What a matrix is made of: its rows, and what they share.

    Attributes:
        tokens: The data sets.
        head: The fixed head.
        rows: The methods, one for each setting.
        norms: The norms to compare; those that methods are known to descend are measured besides.
        steps: Number of steps of methods that do not bring their own.
        seed: Seed of the random initial weights.
        loss: The loss.
        start: Where all of them start; None for random weights.
        progress: Whether to show progress bars: of settings where several are tried, else of runs.
        finished: The runs that are done.
    """

    tokens: Tokens
    head: Head
    rows: tuple[Method, ...]
    norms: tuple[Geometry | str, ...]
    steps: int
    seed: int
    loss: str
    start: Float[np.ndarray, "instance d e"] | None
    progress: bool
    finished: FinishedRuns

    @classmethod
    def checked(
        cls,
        tokens: Tokens,
        head: Head,
        methods: Sequence[Method],
        norms: Sequence[Geometry | str] = NORMS,
        steps: int = 6000,
        *,
        mean_steps: Callable[[Method], Sequence[float]] | None = None,
        decays: Sequence[float] = DECAYS,
        seed: int = 0,
        loss: str = "logistic",
        matched: bool = False,
        progress: bool = False,
        finished: FinishedRuns | None = None,
    ) -> Experiment:
        """Checks the arguments of ``bias_matrix``.

        Raises:
            InvalidInputError: If one of them cannot be used.
        """
        check_flags(matched=matched, progress=progress)
        check_tokens(tokens, get_loss(loss))
        refuse_weights(tokens, "the matrix of optimizers and norms")
        if tokens.instances is None:
            raise InvalidInputError(
                "tokens", "they are one data set", "Give several, along a first axis of instances"
            )
        head = check_head(head, tokens)
        steps = check_steps("steps", steps)
        check_seed("seed", seed)
        rows = tuple(check_items("methods", methods, Method))
        if mean_steps is not None:
            rows = settings_of_all(rows, mean_steps, decays, steps)
        for row in rows:
            one_attention_head(row.parameterization, "the matrix of optimizers and norms")
        norms = tuple(check_items("norms", norms, Geometry | str, 1))
        check_methods(rows, tokens)
        _columns(norms, rows)
        start = matched_start(tokens, head) if matched else None
        finished = finished or FinishedRuns()
        found = cls(tokens, head, rows, norms, steps, seed, loss, start, progress, finished)
        finished.measure = found.matrix
        return found

    @property
    def _tuned(self) -> bool:
        return any(row.setting_of for row in self.rows)

    def settled(
        self, most_steps: int | None = None, say: Callable[[str], object] = lambda line: None
    ) -> BiasMatrix:
        """The matrix, of rows that each take as many steps as it needs for their answers to settle.

        Args:
            most_steps: A row whose answer may change takes twice as many, up to this; None for no
                more than it begins with.
            say: Told what is tried next.

        Raises:
            InvalidInputError: If this is no number of steps.
        """
        most = 0 if most_steps is None else check_steps("most_steps", most_steps)
        rows = self.rows
        known: dict[tuple[str, int | None], FinishedRun] = {}
        while True:
            new = [row for row in rows if (row.name, row.steps) not in known]
            with progress_bar("settings", len(new), enabled=self.progress and self._tuned) as done:
                for row in new:
                    known[row.name, row.steps] = self.run(row)
                    done(1.0)
            found = self.matrix(rows, [known[row.name, row.steps] for row in rows])
            later: list[Method] = []
            for row in rows:
                answer = found.answers(row.setting_of or row.name)[row.name]
                taken = row.steps or self.steps
                if answer.more_steps and 2 * taken <= most:
                    outcome = f"{row.name}: {answer.verdict} after {taken:,} steps"
                    say(f"{outcome}; going on to {2 * taken:,}")
                    row = replace(row, steps=2 * taken)
                later.append(row)
            if later == list(rows):
                return found
            rows = tuple(later)

    def run(self, method: Method) -> FinishedRun:
        """The run of a row, trained unless it is done."""
        steps = method.steps or self.steps
        return self.finished.run(method, steps, lambda: self._trained(method))

    def _trained(self, method: Method) -> Trajectory:
        """Trains every data set once, from random weights or from the matrices given."""
        steps = method.steps or self.steps
        layer = method.layer
        common = {
            "steps": steps,
            "seed": self.seed,
            "loss": self.loss,
            "initial": None if self.start is None else initial_arrays(self.start, layer),
            "parameterization": layer,
            "record": recorded_steps(steps),
            "progress": self.progress and not self._tuned,
        }
        if isinstance(method.optimizer, Optimizer):
            return train(self.tokens, self.head, method.optimizer, weights="all", **common)
        return bridge("torch").train_with_torch(self.tokens, self.head, method.optimizer, **common)

    def matrix(self, rows: Sequence[Method], runs: Sequence[FinishedRun]) -> BiasMatrix:
        """The matrix of rows that were run."""
        columns = _columns(self.norms, rows)
        progress = self.progress and not self._tuned
        data = _measure(self.tokens, rows, runs, columns, self.steps, progress)
        compared = {get_geometry(norm).name for norm in self.norms}
        data["compared"] = ("norm", [name in compared for name in data["norm"].values])
        start_words = f"{SATURATED:g} times the Frobenius solution for the optimal tokens"
        data.attrs = {
            "n": self.tokens.sequences,
            "T": self.tokens.length,
            "d": self.tokens.key_dimension,
            "seed": self.seed,
            "loss": self.loss,
            "start": "random" if self.start is None else start_words,
        }
        return BiasMatrix(data)


def _columns(norms: Sequence[Geometry | str], rows: Sequence[Method]) -> list[Geometry]:
    """The norms requested, and those that methods are known to descend; all can be solved in."""
    own = [row.own_norm for row in rows if row.own_norm is not None]
    columns = {norm.name: norm for norm in map(get_geometry, (*norms, *own))}
    for norm in columns.values():
        methods_for(norm)
    return list(columns.values())


def _measure(
    tokens: Tokens,
    rows: Sequence[Method],
    runs: Sequence[FinishedRun],
    norms: list[Geometry],
    steps: int,
    progress: bool,
) -> xr.Dataset:
    """The labeled arrays of a matrix."""
    whole = [run.data["W"].isel(seed=0).to_numpy() for run in runs]
    weights = [W[:, 1:] for W in whole]
    reached = reached_selections(tokens, np.stack([W[:, -1] for W in weights]))
    solutions, number = solve_reached(tokens, reached, norms, progress=progress)
    records = max(W.shape[1] for W in weights)
    instances = range(len(tokens.instance_numbers))
    curves = np.full((len(rows), len(norms), len(instances), records), np.nan)
    recorded = np.full((len(rows), records), np.nan)
    sizes = np.full((len(rows), len(instances), records), np.nan)
    ratios_halfway = np.full(curves.shape[:3], np.nan)
    movement, displacement, smallest, rise = np.full((4, *number.shape), np.nan)
    log_gradient = np.full(number.shape, np.nan)
    both = np.full((len(rows), len(instances), 2, *weights[0].shape[2:]), np.nan)
    for row, (method, run, W) in enumerate(zip(rows, runs, weights, strict=True)):
        own = np.s_[records - W.shape[1] :]  # shorter runs are filled up in front
        taken, start = run.steps[1:], whole[row][:, 0]
        middle = int(np.flatnonzero(taken == halfway(method.steps or steps))[0])
        recorded[row, own] = taken
        sizes[row, :, own] = run.data["norm"].isel(seed=0).to_numpy()[:, 1:]
        both[row] = W[:, [middle, -1]]
        movement[row] = _relative_change(both[row, :, 0], both[row, :, 1], both[row, :, 1])
        displacement[row] = _relative_change(start, W[:, -1], start)
        loss = run.data["loss"].isel(seed=0).transpose("instance", "step").to_numpy()
        rise[row] = (loss[:, -1] - loss[:, 0]) / np.abs(loss[:, 0])
        if "log_gradient_norm" in run.data:  # runs kept by earlier versions have none
            log_gradient[row] = run.data["log_gradient_norm"].isel(seed=0, step=-1).to_numpy()
        for instance in instances:
            problem = solutions.problem[int(number[row, instance])]
            smallest[row, instance] = smallest_margin(problem.margins(W[instance, -1:]), problem)[0]
            found = margin_ratios(W[instance], solutions, int(number[row, instance]), norms)
            curves[row, :, instance, own] = found
            ratios_halfway[row, :, instance] = found[:, middle]
    near = nearby_ratios(tokens, reached, both, norms, curves[..., -1])
    tiny = [row.at_tiny_gradients for row in rows]
    status = np.stack([run.data["status"].isel(seed=0).to_numpy() for run in runs])
    index = np.where(reached.sum(-1) == 1, reached.argmax(-1), -1)
    gaps = np.moveaxis(solutions.gaps[:, number], 0, 1)
    trial = ("optimizer", "instance")
    variables: dict[str, Any] = {
        "margin_ratio": (("optimizer", "norm", "instance"), curves[..., -1]),
        "margin_ratio_halfway": (("optimizer", "norm", "instance"), ratios_halfway),
        "margin_ratio_curve": (("optimizer", "norm", "instance", "record"), curves),
        "nearby_ratio": (("optimizer", "norm", "nearby", "instance"), near[..., 1]),
        "nearby_ratio_halfway": (("optimizer", "norm", "nearby", "instance"), near[..., 0]),
        "nearby_norm": (("norm", "nearby"), [nearby_names(norm) for norm in norms]),
        "step": (("optimizer", "record"), recorded),
        "norm_of_W": (("optimizer", "instance", "record"), sizes),
        "gap": (("optimizer", "norm", "instance"), gaps),
        "reached": ((*trial, "sequence", "query"), index),
        "status": (trial, status),
        "W": ((*trial, "row", "column"), np.stack([W[:, -1] for W in weights])),
        "trained": (trial, status == TrialStatus.TRAINED),
        "movement": (trial, movement),
        "displacement": (trial, displacement),
        "loss_rise": (trial, rise),
        "smallest_margin": (trial, smallest),
        "log_gradient_norm": (trial, log_gradient),
        "moves_without_gradient": ("optimizer", [one.moves_without_gradient for one in tiny]),
        "least_gradient": ("optimizer", [one.least_gradient for one in tiny]),
        "own_norm": ("optimizer", [_name(row.own_norm) for row in rows]),
        "steps": ("optimizer", [row.steps or steps for row in rows]),
        "parameterization": ("optimizer", [row.layer.name for row in rows]),
        "settings": ("optimizer", [row.settings for row in rows]),
        "reads": ("optimizer", [row.reads or gradients_of(row.optimizer) for row in rows]),
        "step_size": ("optimizer", [row.step_size or np.nan for row in rows]),
        "decay": ("optimizer", [row.decay for row in rows]),
        "setting_of": ("optimizer", [row.setting_of for row in rows]),
    }
    return xr.Dataset(
        variables,
        {
            "optimizer": [row.name for row in rows],
            "norm": [geometry.name for geometry in norms],
            "instance": tokens.instance_numbers,
        },
    )


def _relative_change(
    one: Float[np.ndarray, "instance d e"],
    other: Float[np.ndarray, "instance d e"],
    unit: Float[np.ndarray, "instance d e"],
) -> Float[np.ndarray, "instance"]:
    """The size of a change in units of that of a matrix; infinite from zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.linalg.norm(other - one, axis=(-1, -2)) / np.linalg.norm(unit, axis=(-1, -2))


def _name(geometry: Geometry | None) -> str:
    return "" if geometry is None else geometry.name


def recorded_steps(steps: int) -> Int[np.ndarray, "record"]:
    """Steps to record: the start, then evenly over their logarithm, half of all steps among."""
    spread = np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64)
    return np.unique(np.append(spread, [0, halfway(steps), steps]))


def halfway(steps: int) -> int:
    """Half the number of steps."""
    return max(steps // 2, 1)


def check_methods(methods: Sequence[Method], tokens: Tokens) -> None:
    """Checks, before anything is trained, that all methods can be.

    Raises:
        InvalidInputError: If there is none, two share a name, or one trains something else.
    """
    if not methods:
        raise InvalidInputError("methods", "there are none", "Give one or more")
    names = [method.name for method in methods]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(
                "methods", f"{names.count(name)} are called {name!r}", "Give each its own name"
            )
    for method in methods:
        if method.layer.prepare(tokens) is not tokens:
            raise InvalidInputError(
                "parameterization",
                f"{method.layer.name!r} turns the tokens into others, and with them the margin "
                "problem",
                "Give 'W' or 'KQ'",
            )


def matched_start(tokens: Tokens, head: Head) -> Float[np.ndarray, "instance d e"]:
    """``W_0 = 5 W*``, with ``W*`` the Frobenius solution that selects the optimal tokens.

    The optimal tokens win every row by 5 at least, and no other selection has a smaller loss.

    Args:
        tokens: Data sets, with an axis of instances.
        head: The head.

    Raises:
        InvalidInputError: If in some data set no matrix selects the optimal tokens.
    """
    problem = MarginProblem.from_selection(tokens, optimal_tokens(tokens, head), ties="equal")
    solution = solve(problem, Frobenius())
    assert isinstance(solution, Solution)
    impossible = ~np.isfinite(solution.W).all((-1, -2))
    if impossible.any():
        raise InvalidInputError(
            "matched",
            f"no matrix selects the optimal tokens of data set "
            f"{tokens.instance_numbers[impossible][0]}",
            "Start from random weights instead, or leave such data sets out",
        )
    return SATURATED * solution.W


def initial_arrays(W: Float[np.ndarray, "instance d e"], layer: Parameterization) -> dict[str, Any]:
    """The arrays of a parameterization with given effective matrices."""
    arrays = layer.to_arrays(layer.from_matrix(W))
    return {name: np.asarray(array) for name, array in arrays.items()}


def which_norm(
    tokens: Tokens,
    head: Head,
    optimizer: Any,
    *,
    parameterization: str | Parameterization = "W",
    geometries: Sequence[Geometry | str] = (),
    steps: int = 6000,
    most_steps: int | None = None,
    seed: int = 0,
    matched: bool = False,
    progress: bool = False,
) -> BiasMatrix:
    """Finds which norm's margin an optimizer maximizes.

    Prints as the matrix of one row with the answer below; ``.answer(method)`` is that answer,
    and the rules it follows are described at ``attractor.maps.bias.answer.answer``.

    Args:
        tokens: Data sets with labels, along an axis of instances; eight or more for an answer.
        head: The fixed head.
        optimizer: An optax transformation, an ``Optimizer``, or a ``TorchOptimizer``.
        parameterization: What it trains.
        geometries: Norms to compare besides those of the matrix, such as one's own.
        steps: Number of steps.
        most_steps: Doubles the steps up to this many while they may bring another answer; None for
            ``steps`` alone.
        seed: Seed of the random initial weights.
        matched: Whether to start from a matrix that keeps the optimal tokens.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been trained then.

    Example:
        >>> import optax
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(4, 4, 8, seeds=8)
        >>> matrix = at.which_norm(tokens, head, optax.sign_sgd(0.1), steps=4000)
        >>> answer = matrix.answer("the optimizer")
        >>> answer.outcome, answer.norm
        ('maximizes', 'l_inf')
    """
    check_flags(matched=matched)
    own = check_items("geometries", geometries, Geometry | str)
    name = getattr(optimizer, "name", UNNAMED)
    name = "the optimizer" if name == UNNAMED else name
    return bias_matrix(
        tokens,
        head,
        methods=[as_method(optimizer, name, parameterization)],
        norms=[*NORMS, *own],
        steps=steps,
        most_steps=most_steps,
        seed=seed,
        matched=matched,
        progress=progress,
    )
