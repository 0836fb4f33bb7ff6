"""PyTorch optimizers against the same steps by JAX."""

import numpy as np
import optax
import pytest

from attractor.datasets import unit_tokens
from attractor.maps.bias import as_method, bias_matrix, load_method
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.training import Trajectory, declare, sign_descent, train

torch = pytest.importorskip("torch")

from attractor.torch import TorchOptimizer, train_with_torch  # noqa: E402 - needs torch

STEPS = 60


class Signs(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter -= group["lr"] * parameter.grad.sign()


class Broken(Signs):
    def step(self):
        raise RuntimeError("not today")


class Slow(Signs):
    """Raises once training is under way."""

    def __init__(self, params):
        super().__init__(params)
        self.taken = 0

    def step(self):
        self.taken += 1
        if self.taken > 5:
            raise RuntimeError("enough")
        super().step()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.5, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.1)


@pytest.fixture(scope="module")
def data():
    return unit_tokens(3, 4, 5, seeds=2)


@pytest.mark.parametrize(
    ("factory", "same", "parameterization"),
    [
        (sgd, declare(optax.sgd(0.5, momentum=0.9), geometry=None), "W"),
        (adam, declare(optax.adam(0.1), geometry=None), "KQ"),
        (Signs, sign_descent(0.1), "(v, W)"),
    ],
)
def test_it_takes_the_steps_that_optax_takes(data, factory, same, parameterization):
    mine = TorchOptimizer.tried(factory, "mine")
    options = {"steps": STEPS, "seeds": 2, "seed": 3, "parameterization": parameterization}
    found = train_with_torch(*data, mine, record=[0, 7], **options)
    expected = train(*data, same, record=[0, 7], **options)
    np.testing.assert_allclose(found.data["W"], expected.data["W"], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.data["loss"], expected.data["loss"], rtol=1e-8)
    assert set(found.data) == set(expected.data)
    assert found.data["W"].dims == expected.data["W"].dims
    assert (found.data["status"] == TrialStatus.TRAINED).all()


def test_what_each_optimizer_is_given():
    assert "directions" in TorchOptimizer.tried(Signs, "signs").reads
    for factory in (sgd, adam, torch.optim.AdamW, torch.optim.Adagrad):
        assert "true magnitudes" in TorchOptimizer.tried(factory, "mine").reads
    assert TorchOptimizer.tried(adam, "mine").settings["lr"] == 0.1


def test_directions_outlast_floating_point(data):
    signs = TorchOptimizer.tried(lambda p: Signs(p, lr=50.0), "signs")
    run = train_with_torch(*data, signs, steps=STEPS)
    assert float(run.data["log_gradient_norm"].isel(step=-1).max()) < -800
    assert (run.data["steps_taken"] == STEPS).all()
    assert (run.data["status"] == TrialStatus.TRAINED).all()


def test_true_magnitudes_end_below_rounding_and_say_so(data):
    huge = np.tile(1e6 * np.eye(5), (2, 1, 1))
    sgd = TorchOptimizer.tried(lambda p: torch.optim.SGD(p, lr=0.1), "sgd")
    run = train_with_torch(*data, sgd, steps=5, initial=huge)
    assert (run.data["status"] == TrialStatus.BELOW_ROUNDING).all()
    assert (run.data["steps_taken"] == 0).all()


def test_a_saved_run_is_read_back(data, tmp_path):
    run = train_with_torch(*data, TorchOptimizer.tried(Signs, "signs"), steps=3)
    run.save(tmp_path / "run.nc")
    np.testing.assert_array_equal(Trajectory.load(tmp_path / "run.nc").data["W"], run.data["W"])


def test_it_is_a_row_of_the_matrix(data):
    rows = [as_method(TorchOptimizer.tried(Signs, "mine"), "mine"), load_method("sign:")]
    found = bias_matrix(*data, methods=rows, steps=STEPS)
    ratios = found.data["margin_ratio"]
    np.testing.assert_allclose(ratios.sel(optimizer="mine"), ratios.sel(optimizer="sign:"))


def test_factories_that_will_not_do(data):
    for factory in (Broken, lambda p: 3, lambda p: torch.optim.SGD(p, lr=-1.0)):
        with pytest.raises(InvalidInputError, match="optimizer: mine raised"):
            TorchOptimizer.tried(factory, "mine")
    with pytest.raises(InvalidInputError, match="RuntimeError: enough"):
        train_with_torch(*data, TorchOptimizer.tried(Slow, "mine"), steps=STEPS)


def test_by_module_and_factory():
    adam = load_method("torch.optim:Adam", learning_rate=0.5)
    assert adam.optimizer.name == "torch.optim:Adam" and adam.optimizer.settings["lr"] == 0.5
    assert load_method("torch.optim:SGD").step_size == 0.001
    with pytest.raises(InvalidInputError, match=r"not a torch\.optim\.Optimizer"):
        load_method("operator:not_")
