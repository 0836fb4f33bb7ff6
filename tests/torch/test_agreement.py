"""Mirror descent of PyTorch and of optax take the same steps."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.support.precision import double_precision
from attractor.training.optimizers import mirror_descent

torch = pytest.importorskip("torch")
from attractor.torch import MirrorDescent  # noqa: E402

EXPONENTS = (1.1, 1.5, 2.0, 3.0, 10.0)
RATE = 1e-4
SETTINGS = {"body": (0.9, 1e-2), "head": (0.0, 0.0)}  # momentum and decay


def problem(dtype):
    """Data, and weights of one network for each exponent."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(16, 3))
    targets = np.where(rng.normal(size=16) > 0, 1.0, -1.0)
    # Mirror maps have no slope or an infinite one at zero, so that paths that cross it part.
    body, head = (
        rng.uniform(1, 1.5, (5, *size)) * rng.choice([-1, 1], (5, *size)) for size in ((3, 4), (4,))
    )
    return tuple(array.astype(dtype) for array in (inputs, targets, body, head))


def gradient(xp, inputs, targets, body, head):
    """That of the mean logistic loss of ``tanh(x^T body) head``, for all networks at once."""
    hidden = xp.tanh(inputs @ body)
    outputs = (hidden @ head[:, :, None])[:, :, 0]
    slopes = -targets / (1 + xp.exp(targets * outputs)) / len(targets)
    back = slopes[:, :, None] * (1 - hidden**2) * head[:, None, :]
    return inputs.T @ back, (slopes[:, None, :] @ hidden)[:, 0]


def with_optax(dtype, normalize, steps):
    """Bodies and heads after each step: every body with its exponent, all heads with 1.5."""
    inputs, targets, bodies, heads = map(jnp.asarray, problem(dtype))

    def descent(p, part):
        momentum, decay = SETTINGS[part]
        return mirror_descent(RATE, p, normalize, momentum=momentum, dual_weight_decay=decay)

    labels = {str(p): "body" for p in EXPONENTS} | {"head": "head"}
    optimizer = optax.multi_transform(
        {"body": descent(lambda path: float(path), "body"), "head": descent(1.5, "head")}, labels
    )

    def step(carry, _):
        W, memory = carry
        stacked = jnp.stack([W[str(p)] for p in EXPONENTS])
        body, head = gradient(jnp, inputs, targets, stacked, W["head"])
        slopes = {str(p): one for p, one in zip(EXPONENTS, body, strict=True)} | {"head": head}
        updates, memory = optimizer.update(slopes, memory, W)
        W = optax.apply_updates(W, updates)
        return (W, memory), W

    W = {str(p): one for p, one in zip(EXPONENTS, bodies, strict=True)} | {"head": heads}
    _, path = jax.jit(lambda *start: jax.lax.scan(step, start, length=steps))(W, optimizer.init(W))
    return np.stack([path[str(p)] for p in EXPONENTS], 1), np.asarray(path["head"])


def with_torch(dtype, normalize, steps):
    """The same, by one optimizer with a group of parameters for each exponent."""
    inputs, targets, *stacks = problem(dtype)
    bodies, heads = (torch.from_numpy(stack.copy()) for stack in stacks)
    groups = [{"params": [body], "p": p} for body, p in zip(bodies, EXPONENTS, strict=True)]
    groups += [{"params": [heads], "p": 1.5}]
    for group, part in zip(groups, ["body"] * 5 + ["head"], strict=True):
        group["momentum"], group["dual_weight_decay"] = SETTINGS[part]
    optimizer = MirrorDescent(groups, lr=RATE, normalize=normalize)
    paths = [], []
    for _ in range(steps):
        body, head = gradient(np, inputs, targets, bodies.numpy(), heads.numpy())
        for group, slope in zip(optimizer.param_groups, [*body, head], strict=True):
            group["params"][0].grad = torch.from_numpy(slope)
        optimizer.step()
        for path, stack in zip(paths, (bodies, heads), strict=True):
            path.append(stack.numpy().copy())
    return tuple(map(np.stack, paths))


@pytest.mark.parametrize("normalize", [True, False])
def test_a_thousand_steps_in_double_precision_agree(normalize):
    with double_precision():
        found = with_optax(float, normalize, 1000), with_torch(float, normalize, 1000)
    for of_optax, of_torch in zip(*found, strict=True):
        np.testing.assert_allclose(of_optax, of_torch, rtol=1e-10)
        moved = np.abs(of_torch[-1] - of_torch[0])
        assert (moved.reshape(5, -1).max(1) > 1e-3).all()


@pytest.mark.parametrize("steps", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_steps_in_single_precision_agree_to_the_roundings_of_the_dual(steps):
    # Each step rounds Y once or twice; a relative change of W is 1 / (p - 1) times that of Y.
    found = with_optax("float32", True, steps), with_torch("float32", True, steps)
    bodies, heads = zip(*found, strict=True)
    pairs = [(p, *(path[:, i] for path in bodies)) for i, p in enumerate(EXPONENTS)]
    for p, *paths in [*pairs, (1.5, *heads)]:
        assert all(path.dtype == np.float32 for path in paths)
        one, two = (np.sign(W) * np.abs(W.astype(float)) ** (p - 1) for W in paths)
        assert np.abs(one - two).max() <= steps * 2.0**-23 * np.abs(two).max()
