"""Mirror descent on the entries of a matrix or on its singular values."""

from __future__ import annotations

from typing import Any

from attractor.geometry import Lp, Schatten
from attractor.support.checks import check_flag, check_function
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.checks import check_mirror_exponent, check_not_traced
from attractor.training.optimizers.dual_descent import DualDescent, Exponents
from attractor.training.optimizers.hyperparameters import Number, Numbers, hyperparameters, is_zero
from attractor.training.optimizers.optimizer import SINGULAR_POWERS, GradientScale, Optimizer
from attractor.training.optimizers.registry import register_optimizer
from attractor.training.optimizers.scheduled import name_of


@register_optimizer("mirror descent", "md", number="p")
def mirror_descent(
    learning_rate: Numbers,
    p: Exponents = 1.5,
    normalize: bool = True,
    *,
    per_factor: bool = True,
    eps: Numbers = 0.0,
    momentum: Numbers = 0.0,
    weight_decay: Numbers = 0.0,
    dual_weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Mirror descent with the potential ``sum |W_ij|^p / p``.

        M <- momentum M + G,    Y <- Y - learning_rate (M + dual_weight_decay Y),
        W <- sign(Y) |Y|^(1 / (p - 1))

    ``Y`` starts at ``sign(W) |W|^(p - 1)`` and ``M`` at zero; ``G`` is the gradient, divided by its
    norm ``||.||_q``, ``q = p / (p - 1)``, if normalized. Without momentum and decay this is
    l_p-AttGD, and with a trained head l_p-JointGD, of *Optimizing Attention with Mirror Descent*
    (arXiv 2410.14581). With p = 2 it is (normalized) gradient descent, to the last bit.

    ``Y`` is the state, in single precision at least, because near p = 1 most values of ``Y`` are
    images of weights too small to store: a weight that starts at zero would never leave it.
    The parameters follow from ``Y`` alone. So in a chain of optax transformations this one comes
    last, and a loop of your own must not change the parameters otherwise; where it has to, as when
    weights are loaded, call ``init`` again. An entry that never had a gradient keeps its bits.

    ``update`` gives differences in the precision of ``Y``, and ``optax.apply_updates`` brings the
    sum back to that of the parameters. In half precision the parameters are then ``Y`` mapped and
    rounded once.

    Args:
        learning_rate: The length of a step in ``Y``, positive; or a schedule of it.
        p: The exponent, more than 1; or a function from the path of an array among the parameters,
            such as "attention" or "head.weight", to its exponent.
        normalize: Whether the gradient is divided by its dual norm. If not, steps follow its true
            magnitude.
        per_factor: Whether every array is divided by the dual norm of its own gradient, as the
            paper trains attention and head; otherwise all by the one norm of all together. With a
            single array there is no difference.
        eps: What is added to the dual norm that divides, 2.2e-16 in published code: gradients
            much smaller than it make no progress.
        momentum: What remains of the memory of gradients after a step, in [0, 1).
        weight_decay: Multiple of the parameters to add to the gradient before anything else.
        dual_weight_decay: Multiple of ``Y`` to step against, beside the gradient: the gradient of
            ``dual_weight_decay ||W||_p^p / p``. It is neither normalized nor remembered.

    Raises:
        InvalidInputError: If an argument is out of its range, or ``eps`` is given where nothing
            is divided.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.mirror_descent(0.1, p=1.5), steps=1000)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([1., 1.])
    """
    decays = {"weight_decay": weight_decay, "dual_weight_decay": dual_weight_decay}
    return _make(Lp, learning_rate, p, normalize, per_factor, eps=eps, momentum=momentum, **decays)


@register_optimizer("Schatten mirror descent", "smd", number="p")
def schatten_mirror_descent(
    learning_rate: Numbers,
    p: Exponents = 1.5,
    normalize: bool = True,
    *,
    per_factor: bool = True,
    momentum: Numbers = 0.0,
    weight_decay: Numbers = 0.0,
    dual_weight_decay: Numbers = 0.0,
) -> Optimizer:
    """Mirror descent with the potential ``sum s_i^p / p`` of the singular values of ``W``.

    The step is that of ``mirror_descent`` with ``W = U s^(1 / (p - 1)) V^T`` for ``Y = U s V^T``,
    the dual norm being that of the singular values. Singular values of ``Y`` that rounding alone
    could have made count as zero.

    Args:
        learning_rate: The length of a step in ``Y``, positive; or a schedule of it.
        p: The exponent, more than 1; or a function from the path of an array among the parameters
            to its exponent.
        normalize: Whether the gradient is divided by its dual norm.
        per_factor: Whether every array is divided by the dual norm of its own gradient;
            otherwise all by the one norm of all together.
        momentum: What remains of the memory of gradients after a step, in [0, 1).
        weight_decay: Multiple of the parameters to add to the gradient before anything else.
        dual_weight_decay: Multiple of ``Y`` to step against, beside the gradient.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """
    decays = {"weight_decay": weight_decay, "dual_weight_decay": dual_weight_decay}
    return _make(
        Schatten, learning_rate, p, normalize, per_factor, eps=0.0, momentum=momentum, **decays
    )


def _make(
    family: type[Lp] | type[Schatten],
    learning_rate: Any,
    p: Any,
    normalize: Any,
    per_factor: Any,
    **numbers: Any,
) -> Optimizer:
    """Checks all settings, and makes the optimizer."""
    for argument, value in ({"p": p} | numbers).items():
        check_not_traced(argument, value)
    return _mirror_descent(
        family,
        learning_rate,
        check_function("p", p, "Give an exponent") if callable(p) else check_mirror_exponent(p),
        check_flag("normalize", normalize),
        check_flag("per_factor", per_factor),
        **numbers,
    )


@hyperparameters("learning_rate", "eps", "momentum", "dual_weight_decay", "weight_decay")
def _mirror_descent(
    family: type[Lp] | type[Schatten],
    learning_rate: Number,
    p: Exponents,
    normalize: bool,
    per_factor: bool,
    eps: Number,
    momentum: Number,
    dual_weight_decay: Number,
    weight_decay: Number,
) -> Optimizer:
    if not (normalize or is_zero(eps)):
        raise InvalidInputError("eps", "nothing is divided", "Leave it out, or set normalize=True")
    optional = {"eps": eps, "momentum": momentum, "dual_weight_decay": dual_weight_decay}
    descent = DualDescent(family, learning_rate, p, normalize, per_factor, **optional)
    guarded, remembers, decays = (not is_zero(number) for number in optional.values())
    normalized: GradientScale = "per_array" if per_factor else "global"
    return Optimizer(
        descent.init,
        descent.update,
        geometry=None if callable(p) else family(p),
        gradient_scale="log_per_array" if guarded else normalized if normalize else "absolute",
        name="mirror descent" if family is Lp else "Schatten mirror descent",
        settings={
            "learning_rate": learning_rate,
            "p": name_of(p) if callable(p) else p,
            "normalize": normalize,
            "per_factor": per_factor,
            **{name: number for name, number in optional.items() if not is_zero(number)},
        },
        retract=descent.retract,
        log_time_step=None if remembers or decays else descent.log_time_step,
        weight_decay=weight_decay,
        steps_by_array=normalize and per_factor,
        of_singular_values=not callable(p) and family(p) in SINGULAR_POWERS,
        takes="real",
    )
