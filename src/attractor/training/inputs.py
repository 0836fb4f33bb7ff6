"""The checked inputs of training, gradient flow and regularization paths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Real

from attractor.attention import (
    Head,
    Loss,
    MultiHead,
    Parameterization,
    get_loss as loss_named,
    get_parameterization as parameterization_named,
)
from attractor.attention.parameterization import attention_layer
from attractor.geometry import Frobenius, Geometry
from attractor.support.checks import check_count
from attractor.support.memory import require_memory
from attractor.support.precision import double_precision
from attractor.support.randomness import check_seed
from attractor.tokens import Tokens
from attractor.training import validation
from attractor.training.attention_training import AttentionTraining
from attractor.training.initial import INITIAL_SCALE, check_initial, check_scale
from attractor.training.measurements import Records
from attractor.training.optimizers import Optimizer
from attractor.training.programs.footprint import BOOKKEEPING, Footprint, check_run, size_of
from attractor.training.programs.trials import Trials
from attractor.training.trajectory import Trajectory, trajectory_data

_WEIGHTS_BYTES = 10**9
_COPIES = 3
"""Copies of the parameters that any training holds: they, their gradient, the next ones."""
_SCALARS = 64
"""Bytes of the plain numbers in a record of a trial."""
_ROW = 12
"""Bytes of a row in a record: the token it attends to, and its weight."""


@dataclass(frozen=True)
class Inputs:
    """Data sets, model and starting points, checked.

    Attributes:
        tokens: The data sets, in the coordinates of the parameterization.
        head: The head.
        loss: The loss.
        parameterization: What is trained.
        initial: Initial attention parameters by name, or None for random ones.
        seeds: Number of seeds.
        seed: The first seed.
        scale: What random attention parameters are multiplied by: one number or several; None if
            they are left as they are.
    """

    tokens: Tokens
    head: Head
    loss: Loss
    parameterization: Parameterization
    initial: dict[str, np.ndarray] | None
    seeds: int
    seed: int
    scale: float | tuple[float, ...] | None = None

    @property
    def count(self) -> int:
        """Number of trials, for one value of each hyperparameter of the optimizer."""
        scales = math.prod(map(len, self.axes.values()))
        return scales * (self.tokens.instances or 1) * self.seeds

    @property
    def axes(self) -> dict[str, tuple[float, ...]]:
        """The scales of the start, where there are several, by the name of their axis."""
        return {INITIAL_SCALE: self.scale} if isinstance(self.scale, tuple) else {}

    @property
    def seed_numbers(self) -> np.ndarray:
        """The seeds."""
        return np.arange(self.seed, self.seed + self.seeds)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a trajectory records of them."""
        scale = list(self.scale) if isinstance(self.scale, tuple) else self.scale
        return {
            "loss": self.loss.name,
            "parameterization": self.parameterization.name,
            **self.parameterization.settings,
            "seeds": self.seeds,
            "seed": self.seed,
            "initial": "random" if self.initial is None else "given",
            **({} if self.scale is None else {INITIAL_SCALE: scale}),
        }

    def heads_settings(self, optimizer: Optimizer) -> dict[str, Any]:
        """Of several attention heads: their number, and which matrix of all has the norm."""
        layer = attention_layer(self.parameterization)
        if not isinstance(layer, MultiHead):
            return {}
        geometry = optimizer.effective_geometry(layer) or Frobenius()
        arrangement = layer.arrangement(geometry, joined=optimizer.joins_heads)
        own = layer.effective_geometry(optimizer.geometry)
        if optimizer.joins_heads and own is not None and arrangement == "side by side":
            own = None  # no head descends a norm of its own
        return {
            "attention_heads": layer.heads,
            "arrangement": arrangement,
            "geometry_of_a_head": "not known" if own is None else own.name,
        }

    def check_memory(self, records: int, *, last_only: bool = False, copies: int = 1) -> None:
        """Refuses more trials, or records of each, than fit into memory.

        Args:
            records: Number of records of each trial.
            last_only: Whether the matrices are kept at the last record alone.
            copies: How often everything is in memory.

        Raises:
            InvalidInputError: With the number of seeds, or of records, that would fit.
        """
        rows = self.tokens.mask[..., 0].size // (self.tokens.instances or 1)
        kept = size_of(self.shapes) + (
            size_of(self.head) if self.parameterization.trains_head else 0
        )
        record = _SCALARS + _ROW * rows * (self.parameterization.attention_heads or 1)
        once, always = (kept, record) if last_only else (0, record + kept)
        found = Footprint(BOOKKEEPING + copies * once, copies * always, 0)
        instances = self.tokens.instances or 1
        check_run(found, trials=self.count, records=records, instances=instances)

    @property
    def shapes(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Names and shapes of the matrices recorded."""
        d, e = self.tokens.key_dimension, self.tokens.query_dimension
        heads = self.parameterization.attention_heads
        W = (d, e) if heads is None else (heads, d, e)
        shapes = {**self.parameterization.shapes(d, e), "W": W}
        return {name: jax.ShapeDtypeStruct(shape, np.float64) for name, shape in shapes.items()}

    def trajectory(
        self,
        records: Records,
        values: Real[np.ndarray, "records"],
        *,
        optimizer: str,
        geometry: Geometry | None,
        settings: dict[str, Any],
        hyperparameters: Mapping[str, tuple[float, ...]] = {},
        **labels: Any,
    ) -> Trajectory:
        """The trajectory of a run on these inputs.

        Args:
            records: The measurements.
            values: Where they were taken.
            optimizer: Name of what trained.
            geometry: The norm of W that it descended, None if it is not known.
            settings: Settings of the run beside those of the inputs.
            hyperparameters: Those of the optimizer that have several values.
            labels: Further arguments of ``trajectory_data``.
        """
        numbers, seeds = self.tokens.instance_numbers, self.seed_numbers
        axes = {**hyperparameters, **self.axes}
        return Trajectory(
            data=trajectory_data(records, numbers, seeds, values, hyperparameters=axes, **labels),
            tokens=self.tokens,
            head=self.head,
            optimizer_name=optimizer,
            geometry="not known" if geometry is None else geometry.name,
            settings=self.settings | settings,
        )

    def trials(
        self, training: AttentionTraining, optimizer: Optimizer, dtype: str = "float64"
    ) -> Trials:
        """The trials, for training in some precision."""
        tokens, head, initial = self.tokens, self.head, self.initial
        scale = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        scales = None if self.scale is None else np.asarray(scale, np.float64)
        return Trials(
            training, optimizer, tokens, head, initial, self.seeds, self.seed, dtype, scales
        )


def check_inputs(
    tokens: Any, head: Any, loss: Any, parameterization: Any, initial: Any, seeds: Any, seed: Any
) -> Inputs:
    """Checks the inputs of training.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    loss, layer = loss_named(loss), parameterization_named(parameterization)
    validation.check_tokens(tokens, loss)
    tokens = layer.prepare(tokens)
    head = validation.check_head(head, tokens, layer.attention_heads)
    validation.check_targets(head, tokens, loss)
    seeds = check_count("seeds", seeds)
    seed = check_seed("seed", seed)
    check_seed("seed", seed + seeds - 1)
    _check_size(layer, tokens)
    scale = check_scale(initial, layer, tokens)
    given = None if scale is not None else check_initial(initial, layer, tokens, seeds)
    return Inputs(tokens, head, loss, layer, given, seeds, seed, scale)


def _check_size(layer: Parameterization, tokens: Tokens) -> None:
    """Checks that what is trained fits into memory, of one trial alone.

    Raises:
        InvalidInputError: If it does not.
    """
    shapes = layer.shapes(tokens.key_dimension, tokens.query_dimension)
    numbers = sum(float(math.prod(shape)) for shape in shapes.values())
    words = ", ".join(
        name + " of " + " x ".join(f"{n:,}" for n in shape) for name, shape in shapes.items()
    )
    least = 8 * _COPIES
    require_memory(
        "parameterization",
        f"training {words}",
        needed=least * numbers,
        remedy=lambda available: (
            f"Give at most {int(available / least):,} parameters: a smaller width, or vectors of "
            "a lower dimension"
        ),
    )


def weights_kept_at_end_only(
    weights: str, trials: Trials, training: AttentionTraining, count: int
) -> frozenset[str]:
    """Names of the weights that are kept at the last record alone: all of them or none.

    Args:
        weights: ``"all"``, ``"last"``, or ``"auto"``: all as long as they fit in 1 GB.
        trials: The trials.
        training: What is trained.
        count: Number of trials times number of records.
    """
    with double_precision():
        state, _ = trials(np.zeros(1, dtype=np.int64))
        shapes = jax.eval_shape(jax.vmap(training.recorder.weights), state.parameters)
    size = count * sum(leaf.size * leaf.dtype.itemsize for leaf in shapes.values())
    everything = weights == "all" or (weights == "auto" and size <= _WEIGHTS_BYTES)
    return frozenset() if everything else frozenset(shapes)
