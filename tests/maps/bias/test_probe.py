"""What optimizers do at zero and tiny gradients."""

import optax
import pytest

from attractor.datasets import unit_tokens
from attractor.maps.bias import as_method, load_method, which_norm
from attractor.training import declare, polyak_step


@pytest.mark.parametrize(
    ("optimizer", "moves", "least"),
    [
        (optax.sgd(0.1), False, 0),
        (optax.sign_sgd(0.1), False, 0),
        (optax.adam(0.1, eps=1e-6), False, 1e-6),
        (optax.adamw(0.1, eps=1e-9, weight_decay=1e-4), True, 1e-9),
        (optax.lion(0.1, weight_decay=0.01), True, 0),
        (optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.1)), True, 0),
        (declare(optax.adamw(0.1, eps=1e-7), geometry=None), True, 1e-7),
        (polyak_step(), False, 0),  # it needs more than a gradient
    ],
    ids=["sgd", "sign", "adam", "adamw", "lion", "coupled", "declared", "polyak"],
)
def test_what_is_tried(optimizer, moves, least):
    found = as_method(optimizer, "mine").at_tiny_gradients
    assert found.moves_without_gradient == moves
    # eps is added to entries of the gradient, and its norm is over the root of their number
    assert found.least_gradient == 0 if not least else least < found.least_gradient < 20 * least


@pytest.mark.parametrize(
    ("spelling", "moves", "least"),
    [("sign", False, 0), ("sign:weight_decay=0.1", True, 0), ("adam:eps=1e-8", False, 1e-8)],
)
def test_what_the_librarys_own_say(spelling, moves, least):
    assert load_method(spelling).at_tiny_gradients == (moves, least)


@pytest.mark.long
def test_decay_is_named_as_the_reason():
    signs = optax.chain(optax.scale_by_sign(), optax.add_decayed_weights(0.1), optax.scale(-0.1))
    found = which_norm(*unit_tokens(4, 5, 4, seeds=8), signs, steps=1500).answer("the optimizer")
    assert not found.norm and "as weight decay does" in found.reason
    assert found.remedy == "Take the decay out to see its norm"
    assert not found.more_steps and not found.larger_steps


@pytest.mark.torch
def test_torch_optimizers_are_tried():
    torch = pytest.importorskip("torch")
    from attractor.torch import TorchOptimizer

    for make, moves, least in (
        (torch.optim.SGD, False, 0),
        (torch.optim.Adam, False, 1e-8),
        (torch.optim.AdamW, True, 1e-8),
        (torch.optim.Muon, True, 0),
    ):
        method = as_method(TorchOptimizer.tried(lambda p, make=make: make(p, lr=0.1), "it"), "it")
        found = method.at_tiny_gradients
        assert found.moves_without_gradient == moves
        assert not least or least < found.least_gradient < 20 * least
