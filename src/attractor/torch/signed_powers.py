"""Signed powers of lists of tensors, one launch for all where the device has such."""

# PyTorch's own optimizers are made of these functions; it exports them under no other name.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_MOST_PRODUCTS = 256


def signed_powers(tensors: Sequence[Tensor], exponent: float) -> list[Tensor]:
    """``sign(x) |x|^exponent`` of every entry; with exponent one the tensors themselves.

    Exponents that are whole or half numbers, but for rounding, are made of products and a square
    root. That is several times as fast as the general power, and its relative error is below
    ``exponent + 1`` half units of the last place, about what the rounding of ``x`` itself makes.
    """
    tensors = list(tensors)
    whole, half = _split(exponent)
    if whole is None:
        return _with_signs(torch._foreach_pow(torch._foreach_abs(tensors), exponent), tensors)
    if not half:
        powers = _whole_powers(tensors, whole)
        return powers if whole % 2 else _with_signs(powers, tensors)
    roots = list(torch._foreach_abs(tensors))
    torch._foreach_sqrt_(roots)
    if whole:
        torch._foreach_mul_(roots, _whole_powers(tensors, whole))
    return roots if whole % 2 else _with_signs(roots, tensors)


def signed_power_into(tensor: Tensor, exponent: float, out: Tensor, spare: Tensor) -> Tensor:
    """The same of one tensor, in the same order of operations, without a new one.

    Args:
        tensor: What is raised.
        exponent: The exponent.
        out: Where the power goes; must not overlap the tensor.
        spare: Of the same shape and type; left with anything.

    Returns:
        ``out``.
    """
    whole, half = _split(exponent)
    if whole is None:
        torch.abs(tensor, out=out).pow_(exponent)
        return out.mul_(torch.sign(tensor, out=spare))
    if not whole:
        torch.abs(tensor, out=out).sqrt_()
        return out.mul_(torch.sign(tensor, out=spare))
    _whole_power_into(tensor, whole, out, spare)
    if half:
        out.mul_(torch.abs(tensor, out=spare).sqrt_())
    return out if whole % 2 else out.mul_(torch.sign(tensor, out=spare))


def _split(exponent: float) -> tuple[int | None, int]:
    """Whole and half parts of an exponent made of them but for rounding; None if it is not."""
    doubled = round(2 * exponent)
    if abs(2 * exponent - doubled) > 1e-12 * doubled or doubled > 2 * _MOST_PRODUCTS:
        return None, 0
    return divmod(doubled, 2)


def _whole_power_into(tensor: Tensor, exponent: int, out: Tensor, spare: Tensor) -> None:
    base = tensor
    while exponent % 2 == 0:
        base = torch.mul(base, base, out=out)
        exponent //= 2
    if exponent == 1:
        if base is tensor:
            out.copy_(tensor)
        return
    torch.mul(base, base, out=spare)
    exponent //= 2
    while exponent:
        if exponent % 2:
            base = torch.mul(base, spare, out=out)
        exponent //= 2
        if exponent:
            spare.mul_(spare)


def _whole_powers(tensors: list[Tensor], exponent: int) -> list[Tensor]:
    """``x^exponent`` by repeated squaring, for an exponent of at least one."""
    powers: list[Tensor] = []
    while True:
        if exponent % 2:
            powers = list(torch._foreach_mul(powers, tensors)) if powers else tensors
        exponent //= 2
        if not exponent:
            return powers
        tensors = list(torch._foreach_mul(tensors, tensors))


def _with_signs(sizes: Sequence[Tensor], tensors: list[Tensor]) -> list[Tensor]:
    """Sizes, which are overwritten, with the signs of tensors."""
    torch._foreach_mul_(list(sizes), torch._foreach_sign(tensors))
    return list(sizes)
