"""Steepest descent in PyTorch against the same geometries on NumPy arrays."""

import io

import numpy as np
import pytest

from attractor.geometry import Lp, Spectral, get_geometry, registered_geometries
from attractor.support.errors import InvalidInputError

torch = pytest.importorskip("torch")

from attractor.torch import SteepestDescent  # noqa: E402 - needs torch

GEOMETRIES = {geometry for kind in registered_geometries() for geometry in kind.examples()}


class Doubled(Lp):
    """A geometry of the user's own, which no name restores."""

    def __init__(self):
        super().__init__(2)
        self.name = "mine"

    def steepest_descent_direction(self, G):
        return G * 2


def one_step(start, gradient, dtype=torch.float64, steps=1, **settings):
    weight = torch.nn.Parameter(torch.tensor(start, dtype=dtype))
    optimizer = SteepestDescent([weight], **settings)
    for _ in range(steps):
        weight.grad = torch.tensor(gradient, dtype=dtype)
        optimizer.step()
    return weight.detach(), optimizer


@pytest.mark.parametrize("geometry", sorted(GEOMETRIES, key=lambda one: one.name), ids=str)
def test_it_takes_the_direction_of_the_geometry(geometry):
    random = np.random.default_rng(0)
    for shape in ((4, 6), (5, 1), (5,), (2, 3, 4), ()):
        for size in (1.0, 1e-30, 1e30):
            gradient = size * random.normal(size=shape)
            found, _ = one_step(np.zeros(shape), gradient, lr=1.0, norm=geometry)
            matrix = gradient.reshape(shape[0] if shape else 1, -1)
            expected = -geometry.steepest_descent_direction(matrix).reshape(shape)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    still, _ = one_step(np.ones((2, 3)), np.zeros((2, 3)), lr=1.0, norm=geometry)
    assert (still == 1).all()


@pytest.mark.parametrize("norm", ["l_1", "l_inf", "nuclear", "spectral", "frobenius", "l_3"])
def test_a_tied_gradient_still_gives_a_steepest_direction(norm):
    gradient = np.array([[1.0, 1, 0], [0, -1, 1], [1, 0, 1]])
    direction = -one_step(np.zeros((3, 3)), gradient, lr=1.0, norm=norm)[0].numpy()
    geometry = get_geometry(norm)
    assert (gradient * direction).sum() == pytest.approx(geometry.dual_norm(gradient))
    assert geometry.norm(direction) == pytest.approx(1)


def test_momentum_and_weight_decay_come_before_the_direction():
    start, gradient = np.array([[0.5, -0.3], [0.2, 0.1]]), np.array([[0.1, 0.4], [-0.2, 0.3]])
    found, _ = one_step(
        start, gradient, lr=0.1, norm="spectral", momentum=0.9, weight_decay=0.5, steps=3
    )
    W, M = start, 0
    for _ in range(3):
        M = 0.9 * M + gradient + 0.5 * W
        W = W - 0.1 * Spectral().steepest_descent_direction(M)
    np.testing.assert_allclose(found, W, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_weights_gather_steps_below_their_rounding(dtype):
    found, optimizer = one_step(
        [[1.0, 1.0]], [[1.0, -1.0]], dtype, lr=1e-4, norm="l_inf", steps=100
    )
    torch.testing.assert_close(found, torch.tensor([[0.99, 1.01]], dtype=dtype))
    ((_, state),) = optimizer.state.items()
    assert state["master"].dtype == torch.float32
    (weight,) = optimizer.param_groups[0]["params"]
    weight.data.fill_(3.0)
    optimizer.step()
    torch.testing.assert_close(state["master"], torch.tensor([[2.9999, 3.0001]]))


def test_a_saved_state_goes_on_bit_for_bit():
    settings = {"lr": 1e-3, "norm": Spectral(), "momentum": 0.9}
    start = [[0.5, -0.25, 1.0], [0.125, 2.0, 0.5]]
    weight = torch.nn.Parameter(torch.tensor(start, dtype=torch.bfloat16))
    optimizer = SteepestDescent([weight], **settings)
    for step in range(6):
        if step == 3:
            file = io.BytesIO()
            torch.save([weight.detach(), optimizer.state_dict()], file)
            file.seek(0)
            values, state = torch.load(file, weights_only=True)
            twin = torch.nn.Parameter(values)
            resumed = SteepestDescent([twin], 1.0, "l_1")
            resumed.load_state_dict(state)
        weight.grad = torch.cos(torch.arange(6.0).reshape(2, 3) + step).bfloat16()
        optimizer.step()
        if step >= 3:
            twin.grad = weight.grad.clone()
            resumed.step()
    assert torch.equal(weight, twin)
    assert torch.equal(optimizer.state[weight]["master"], resumed.state[twin]["master"])


def test_geometries_of_ones_own_and_of_each_group():
    one, other = (torch.nn.Parameter(torch.zeros(2, dtype=torch.float64)) for _ in range(2))
    optimizer = SteepestDescent(
        [{"params": [one]}, {"params": [other], "norm": "l_inf"}], 1.0, Doubled()
    )
    one.grad = other.grad = torch.tensor([3.0, -1.0], dtype=torch.float64)
    optimizer.step()
    assert one.tolist() == [-6.0, 2.0]
    assert other.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("norm", ["l_1", "l_inf", "l_3", "spectral"])
def test_a_gradient_that_is_not_a_number_is_not_hidden(norm):
    found, _ = one_step(np.zeros((2, 2)), [[1.0, np.nan], [0.5, 2.0]], lr=1.0, norm=norm)
    assert found.isnan().any()


@pytest.mark.parametrize(
    ("name", "value"), [("norm", "l_0.5"), ("norm", "round"), ("lr", -1), ("momentum", 1)]
)
def test_settings_out_of_range_are_named(name, value):
    with pytest.raises(InvalidInputError) as raised:
        one_step([1.0], [1.0], **{"lr": 0.1, "norm": "l_inf", name: value})
    assert raised.value.argument == name
