"""Mirror descent as a PyTorch optimizer to drop in."""

# PyTorch's own optimizers are made of some of these functions; it exports them under no other name.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attractor.geometry.precision_limits import mirror_limits
from attractor.support.checks import check_flag
from attractor.support.errors import InvalidInputError, PrecisionWarning
from attractor.torch.signed_powers import signed_power_into, signed_powers
from attractor.torch.wide_state import WideStateOptimizer, plain_step, wide_type
from attractor.training.optimizers.checks import check_mirror_exponent

DUAL = "dual"
CHUNK = 2**16
"""Entries of a piece."""


class MirrorDescent(WideStateOptimizer):
    """Mirror descent with the potential ``sum |W_ij|^p / p``, tensor by tensor.

    With the gradient ``G`` of a tensor of weights ``W``, a step is::

        G <- G / ||G||_q                          if normalize, with q = p / (p - 1)
        M <- momentum M + G
        Y <- (1 - lr dual_weight_decay) Y - lr M
        W  = sign(Y) |Y|^(1 / (p - 1))

    ``Y`` starts at ``sign(W) |W|^(p - 1)`` and is the state, in single precision at least: near
    p = 1 most of its values are images of weights too small to store, and a weight that starts at
    zero would never leave it. The decay shrinks ``Y``, which is the gradient of
    ``dual_weight_decay sum |W_ij|^p / p``. With p = 2 and ``normalize=False`` and without decay
    this is ``torch.optim.SGD`` to the last bit, and needs no ``Y`` but for half-precision weights.
    Settings mean what they mean in ``attractor.mirror_descent``, and have its defaults.

    Weights are read at every step as by any other optimizer. Where one is no longer the image of
    its ``Y``, because it was clamped, averaged or loaded from elsewhere, its ``Y`` is computed
    from it anew; where ``Y`` does not move, the weight keeps its value to the last bit. A NaN in a
    gradient makes its weight NaN, and with ``normalize`` the whole tensor.

    Every setting is read at every step, and parameter groups may have their own. The first step
    warns, once, if steps of this length cannot be followed in this precision. Every 100 steps, and
    at powers of two before, weights are looked at: where they are no longer finite, as a rate of 1
    makes them with p = 1.1 and ``normalize=False``, a ``DivergenceWarning`` says so, once.

    Source: l_p-AttGD of *Optimizing Attention with Mirror Descent* (arXiv 2410.14581), which has
    neither momentum nor weight decay.
    """

    decay = "dual_weight_decay"
    _warned = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        p: float = 1.5,
        normalize: bool = True,
        momentum: float = 0.0,
        dual_weight_decay: float = 0.0,
        foreach: bool | None = None,
    ) -> None:
        """Takes parameters, or groups of them with settings of their own.

        Args:
            params: Tensors, pairs of names and tensors, or dictionaries, as for any optimizer of
                PyTorch.
            lr: The length of a step in ``Y``, zero or more; may be a tensor.
            p: The exponent, more than 1 and finite.
            normalize: Whether the gradient of every tensor is divided by its dual norm.
            momentum: What remains of the momentum after a step, in [0, 1).
            dual_weight_decay: By how much ``Y`` shrinks in a step, relative to the learning rate.
            foreach: Whether to work on all tensors of a group at once, which saves launches on
                accelerators; one after the other saves memory traffic on processors. None chooses.
                Both give the same but for the rounding of powers.

        Raises:
            InvalidInputError: If a setting is out of its range, or a parameter is complex or
                sparse.
        """
        defaults = {
            "lr": lr,
            "p": p,
            "normalize": normalize,
            "momentum": momentum,
            "dual_weight_decay": dual_weight_decay,
            "foreach": foreach,
        }
        super().__init__(params, defaults)

    def _check_settings(self, group: dict[str, Any]) -> None:
        super()._check_settings(group)
        check_mirror_exponent(group["p"])
        check_flag("normalize", group["normalize"])
        if group.get("weight_decay"):  # training loops give groups that are not to decay a zero
            raise InvalidInputError(
                "weight_decay", "mirror descent lets Y decay, not W", "Give dual_weight_decay"
            )
        if group["foreach"] not in (None, True, False):
            raise InvalidInputError(
                "foreach", f"{group['foreach']!r} is not known", "Give True, False or None"
            )

    def _step(self, group: dict[str, Any], weights: list[Tensor], gradients: list[Tensor]) -> None:
        p, rate = group["p"], group["lr"]
        if isinstance(rate, Tensor) and rate.device.type == "cpu" and not _compiling():
            rate = rate.item()
        settings = {"rate": rate, "shrinkage": rate * group["dual_weight_decay"]}
        if group["normalize"]:
            gradients = unit_in_dual_norm(gradients, p)
        steps = self._with_momentum(weights, gradients, group["momentum"])
        at_once = group["foreach"]
        if at_once is None:
            at_once = _compiling() or weights[0].device.type != "cpu"
        in_chunks = ChunkedStep(p, **settings)
        for alike in _alike(weights, steps, at_once):
            some, moves = [pair[0] for pair in alike], [pair[1] for pair in alike]
            if p == 2 and some[0].dtype == wide_type(some[0].dtype):
                plain_step(some, moves, **settings)
                continue
            duals = [self._dual(*pair, group) for pair in alike]
            if at_once or some[0].device.type != "cpu":
                mirror_step(some, duals, moves, p=p, **settings)
            else:
                in_chunks(some[0], duals[0], moves[0])

    def _dual(self, weight: Tensor, step: Tensor, group: dict[str, Any]) -> Tensor:
        """The dual variable of a weight, made from it where there is none yet."""
        state = self.state[weight]
        if DUAL not in state:
            wide = weight.to(wide_type(weight.dtype))
            (image,) = signed_powers([wide], group["p"] - 1)
            state[DUAL] = image.clone() if image is wide else image
            if not (self._warned or _compiling()):
                self._look_for_problem(weight.dtype, state[DUAL], step, group)
        return state[DUAL]

    def _look_for_problem(
        self, dtype: torch.dtype, dual: Tensor, step: Tensor, group: dict[str, Any]
    ) -> None:
        """Warns, once for each optimizer, of steps that weights of this precision cannot follow."""
        limits = mirror_limits(
            group["p"],
            smallest=torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps,
            largest=torch.finfo(dtype).max,
            epsilon=torch.finfo(dual.dtype).eps,
        )
        length = float(group["lr"]) * step.abs().amax().item()
        problem = limits.problem(length, dual.abs().amin().item())
        if problem is not None:
            self._warned = True
            warnings.warn(
                f"mirror descent with p = {group['p']!r} on {str(dtype).removeprefix('torch.')} "
                f"weights: {problem}; change p or lr, or use wider weights",
                PrecisionWarning,
                stacklevel=2,
            )


def _alike(
    weights: list[Tensor], steps: list[Tensor], at_once: bool
) -> list[list[tuple[Tensor, Tensor]]]:
    """Weights with their steps, together where device and type are the same; else each alone."""
    pairs = list(zip(weights, steps, strict=True))
    if not at_once:
        return [[pair] for pair in pairs]

    def kind(pair: tuple[Tensor, Tensor]) -> tuple[str, str]:
        return str(pair[0].device), str(pair[0].dtype)

    return [list(alike) for _, alike in itertools.groupby(sorted(pairs, key=kind), key=kind)]


def _compiling() -> bool:
    return torch.compiler.is_compiling()


def unit_in_dual_norm(gradients: Sequence[Tensor], p: float) -> list[Tensor]:
    """Every gradient by its norm ``||.||_q``, ``q = p / (p - 1)``; zero stays zero.

    It is divided by its largest entry first, so that no power underflows or overflows.
    """
    found = []
    for gradient in gradients:
        largest = gradient.abs().amax()
        shrunk = gradient / torch.where(largest != 0, largest, 1)
        (powers,) = signed_powers([shrunk.abs()], p / (p - 1))
        norm = powers.sum() ** ((p - 1) / p)
        found.append(shrunk.div_(torch.where(norm != 0, norm, 1)))
    return found


def mirror_step(
    weights: Sequence[Tensor],
    duals: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    p: float,
    rate: float | Tensor,
    shrinkage: float | Tensor,
) -> None:
    """``Y <- (1 - shrinkage) Y - rate M`` and ``W = sign(Y) |Y|^(1 / (p - 1))``, in place.

    A weight that is not the image of its ``Y`` was changed by other code, or has never moved
    since ``Y`` was first taken from it; ``Y`` is taken from it again. A weight whose ``Y`` then
    does not move keeps its value.
    """
    inverse = 1 / (p - 1)
    images = signed_powers(duals, inverse)
    differ = [
        image.to(weight.dtype) != weight for image, weight in zip(images, weights, strict=True)
    ]
    wide = [weight.to(dual.dtype) for weight, dual in zip(weights, duals, strict=True)]
    before = [
        torch.where(other, image, dual)
        for other, image, dual in zip(differ, signed_powers(wide, p - 1), duals, strict=True)
    ]
    torch._foreach_copy_(list(duals), before)
    plain_step(duals, steps, rate=rate, shrinkage=shrinkage)
    after = signed_powers(duals, inverse)
    for weight, dual, old, new in zip(weights, duals, before, after, strict=True):
        weight.copy_(torch.where(dual == old, weight, new.to(weight.dtype)))


class ChunkedStep:
    """Takes the same step as ``mirror_step``, with a memory of a few pieces for scratch."""

    def __init__(self, p: float, rate: float | Tensor, shrinkage: float | Tensor) -> None:
        self.p, self.rate, self.shrinkage = p, rate, shrinkage
        self.scratch: dict[torch.dtype, tuple[Tensor, ...]] = {}

    def __call__(self, weight: Tensor, dual: Tensor, step: Tensor) -> None:
        """Moves one weight and its dual variable in place."""
        if dual.dtype not in self.scratch:
            self.scratch[dual.dtype] = tuple(torch.empty(CHUNK, dtype=dual.dtype) for _ in "ab")
        if weight.is_contiguous() and dual.is_contiguous() and step.is_contiguous():
            pieces = (tensor.view(-1).split(CHUNK) for tensor in (weight, dual, step))
            for piece in zip(*pieces, strict=True):
                self._move(*piece)
        else:
            flat = weight.reshape(-1).clone(), dual.reshape(-1).clone(), step.reshape(-1)
            self(*flat)
            weight.copy_(flat[0].view(weight.shape))
            dual.copy_(flat[1].view(dual.shape))

    def _move(self, weight: Tensor, dual: Tensor, step: Tensor) -> None:
        inverse = 1 / (self.p - 1)
        image, spare = (buffer[: dual.numel()] for buffer in self.scratch[dual.dtype])
        signed_power_into(dual, inverse, image, spare)
        narrow = weight.dtype != dual.dtype
        expected = image.to(weight.dtype) if narrow else image
        # Differences and their largest size take a quarter of the time of a comparison.
        if torch.sub(expected, weight, out=None if narrow else spare).abs_().amax() == 0:
            plain_step([dual], [step], rate=self.rate, shrinkage=self.shrinkage)
            if narrow:
                weight.copy_(signed_power_into(dual, inverse, image, spare))
            else:
                signed_power_into(dual, inverse, weight, spare)
            return
        places = (expected != weight).nonzero().flatten()
        kept = weight[places]
        (before,) = signed_powers([kept.to(dual.dtype)], self.p - 1)
        dual[places] = before
        plain_step([dual], [step], rate=self.rate, shrinkage=self.shrinkage)
        weight.copy_(signed_power_into(dual, inverse, image, spare))
        unmoved = dual[places] == before
        weight[places[unmoved]] = kept[unmoved]
