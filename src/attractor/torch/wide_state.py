"""The base of this package's optimizers: checked settings, and state wider than the weights."""

# PyTorch's own optimizers are made of some of these functions; it exports them under no other name.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from attractor.support.checks import check_number
from attractor.support.errors import DivergenceWarning, InvalidInputError

MOMENTUM = "momentum_buffer"
_EVERY = 100
"""Steps from one look at all weights to the next, and powers of two before."""


def _name(groups: list[dict[str, Any]], group: dict[str, Any], weight: Tensor) -> str:
    """What a parameter is called: by its name, where parameters were given with names."""
    place = next(i for i, one in enumerate(group["params"]) if one is weight)
    if "param_names" in group:
        return f"the parameter {group['param_names'][place]}"
    number = next(i for i, one in enumerate(groups) if one is group)
    return f"parameter {place} of group {number}, of shape {tuple(weight.shape)},"


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """The type of the state of weights of a type: single precision at least."""
    return torch.promote_types(dtype, torch.float32)


class WideStateOptimizer(torch.optim.Optimizer):
    """An optimizer whose state is in single precision at least, whatever that of its weights.

    Attributes:
        decay: The setting that is a weight decay.
    """

    decay: ClassVar[str] = "weight_decay"
    _steps = 0
    _diverged = False

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, with settings of its own where it has any.

        Raises:
            InvalidInputError: If a setting is out of its range, or a parameter is complex or
                sparse.
        """
        found = param_group.get("params", ())
        listed = [found] if isinstance(found, Tensor) else list(found)
        group = {**self.defaults, **param_group, "params": listed}
        self._check_settings(group)
        for one in listed:
            tensor = one[1] if isinstance(one, tuple) else one
            if isinstance(tensor, Tensor) and not (
                tensor.is_floating_point() and tensor.layout == torch.strided
            ):
                raise InvalidInputError(
                    "params",
                    f"one has the type {tensor.dtype} and the layout {tensor.layout}",
                    "Give real, dense tensors of floating point",
                )
        super().add_param_group({**param_group, "params": listed})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what ``state_dict`` gave, bit for bit.

        PyTorch would round the state to the type of the weights, which half-precision weights
        would pay for with all that the state knows beyond them.
        """
        given: dict[str, Any] = {}

        def keep(_: Any, read: dict[str, Any]) -> None:
            given.update(read)

        def restore(_: Any) -> None:
            saved = [number for group in given["param_groups"] for number in group["params"]]
            here = [tensor for group in self.param_groups for tensor in group["params"]]
            for number, tensor in zip(saved, here, strict=True):
                for name, value in given["state"].get(number, {}).items():
                    if isinstance(value, Tensor):
                        wide = wide_type(tensor.dtype)
                        self.state[tensor][name] = value.to(tensor.device, wide, copy=True)

        hooks = (
            self.register_load_state_dict_pre_hook(keep),
            self.register_load_state_dict_post_hook(restore, prepend=True),
        )
        try:
            super().load_state_dict(state_dict)
        finally:
            for hook in hooks:
                hook.remove()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes a step.

        Args:
            closure: Computes the loss and its gradients anew, if given.

        Returns:
            What the closure returned, None without one.

        Raises:
            InvalidInputError: If a gradient is sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [one for one in group["params"] if one.grad is not None and one.numel()]
            if any(one.grad.layout != torch.strided for one in weights):
                raise InvalidInputError(
                    "gradient", "it is sparse", "Set sparse=False where it comes from"
                )
            if weights:
                wide = [one.grad.to(wide_type(one.dtype)) for one in weights]
                self._step(group, weights, wide)
        if not torch.compiler.is_compiling():
            self._steps += 1
            rarely = self._steps % _EVERY == 0 or self._steps & (self._steps - 1) == 0
            if rarely and not self._diverged:
                self._look_for_divergence()
        return loss

    def _look_for_divergence(self) -> None:
        """Warns, once, of weights that are no longer finite: one reading of each, and one wait."""
        groups = [(group, one) for group in self.param_groups for one in group["params"]]
        sums: dict[torch.device, list[Tensor]] = {}
        for _, one in groups:
            # A sum of finite numbers may overflow; what is in question is looked at again.
            sums.setdefault(one.device, []).append(one.detach().sum(dtype=wide_type(one.dtype)))
        if all(bool(torch.stack(some).isfinite().all()) for some in sums.values()):
            return
        for group, one in groups:
            if not bool(one.detach().isfinite().all()):
                self._diverged = True
                remedy = f"lower lr (it is {float(group['lr']):g})"
                if group.get("normalize") is False:
                    remedy += " or set normalize=True, which makes it the length of a step"
                name = _name(self.param_groups, group, one)
                warnings.warn(
                    f"{type(self).__name__}: {name} holds NaN or infinity after step "
                    f"{self._steps}: {remedy}, and look whether gradients and loss are finite",
                    DivergenceWarning,
                    stacklevel=5,  # through two wrappers of PyTorch's around every step
                )
                return

    def _check_settings(self, group: dict[str, Any]) -> None:
        """Checks the settings of a group of parameters."""
        rate = group["lr"]
        if isinstance(rate, Tensor):
            if rate.numel() != 1:
                raise InvalidInputError("lr", f"it has {rate.numel()} elements", "Give one number")
            rate = rate.reshape(())
        check_number("lr", rate, least=0, example=1e-3)
        check_number(self.decay, group[self.decay], least=0, example=0.01)
        check_number("momentum", group["momentum"], least=0, below=1, example=0.9)

    def _step(self, group: dict[str, Any], weights: list[Tensor], gradients: list[Tensor]) -> None:
        """Takes a step of some parameters of a group, none of them empty; gradients are wide."""
        raise NotImplementedError

    def _with_momentum(
        self, weights: list[Tensor], gradients: list[Tensor], momentum: float
    ) -> list[Tensor]:
        """The momentum with the current gradients added."""
        if momentum == 0:
            return gradients
        found = []
        for weight, gradient in zip(weights, gradients, strict=True):
            state = self.state[weight]
            if MOMENTUM in state:
                state[MOMENTUM].mul_(momentum).add_(gradient)
            else:
                state[MOMENTUM] = gradient.clone()
            found.append(state[MOMENTUM])
        return found


def plain_step(
    weights: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    rate: float | Tensor,
    shrinkage: float | Tensor,
) -> None:
    """``W <- (1 - shrinkage) W - rate M``, in place: that of mirror descent for p = 2."""
    weights, steps = list(weights), list(steps)
    if isinstance(shrinkage, Tensor) or shrinkage != 0:
        torch._foreach_mul_(weights, 1 - shrinkage)
    if isinstance(rate, Tensor):
        torch._foreach_sub_(weights, torch._foreach_mul(steps, rate))
    else:
        torch._foreach_add_(weights, steps, alpha=-rate)
