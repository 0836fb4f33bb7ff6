"""What optimizers and models of PyTorch draw: it follows --seed, and the user's generators stay."""

import pickle
import random

import numpy as np
import pytest

import attractor as at
from attractor.maps.bias import bias_matrix, load_method
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import seeded

torch = pytest.importorskip("torch")

from attractor.heads.capture import capture_heads  # noqa: E402
from attractor.torch import TorchOptimizer, train_with_torch  # noqa: E402

STEPS = 6


class Noisy(torch.optim.SGD):
    """Draws from every generator that a process shares, at first and at every step."""

    fails = False

    def __init__(self, params, lr=0.1):
        super().__init__(params, lr=lr)
        self.size = 0.1 * random.random()
        self.taken = 0

    @torch.no_grad()
    def step(self):
        super().step()
        self.taken += 1
        for parameter in self.param_groups[0]["params"]:
            parameter += self.size * np.random.normal() * torch.randn_like(parameter)
            torch.nn.functional.dropout(parameter, 0.5)
        if self.fails and self.taken > 3:
            raise RuntimeError("enough")


def states():
    of_torch = torch.get_rng_state().numpy()
    return pickle.dumps((of_torch.tobytes(), np.random.get_state(), random.getstate()))


@pytest.fixture(autouse=True)
def generators_stay():
    torch.manual_seed(3), np.random.seed(3), random.seed(3)
    np.random.normal(), torch.randn(3)
    before = states()
    yield
    assert states() == before


@pytest.fixture(scope="module")
def data():
    return at.datasets.unit_tokens(3, 4, 5, seeds=3)


def weights(data, trained=Noisy, **settings):
    tokens, head = data
    optimizer = TorchOptimizer.tried(trained, "noisy")
    run = train_with_torch(tokens, head, optimizer, **{"steps": STEPS} | settings)
    return run.data["W"].values


def test_every_trial_has_numbers_of_its_own_whatever_runs_beside_it(data):
    whole = weights(data, seeds=2)
    np.testing.assert_array_equal(weights(data, seeds=2), whole)
    np.testing.assert_array_equal(weights(data, seed=1, seeds=2)[:, 0], whole[:, 1])
    tokens, head = data
    alone = tokens[1:2], at.LinearHead(head.weight[1])
    np.testing.assert_array_equal(weights(alone, seeds=6)[0, :2], whole[1])
    longer = weights(data, seeds=2, steps=2 * STEPS, record=[STEPS])
    np.testing.assert_array_equal(longer[:, :, 0], whole[:, :, -1])
    drawn = whole - weights(data, torch.optim.SGD, seeds=2)
    sizes = np.abs(drawn[:, :, -1, 0, 0]).ravel()
    assert len(np.unique(sizes)) == 6 and (sizes > 0).all()
    scaled = weights(data, initial=[0.1, 1.0])
    np.testing.assert_array_equal(scaled, weights(data, initial=[1.0, 0.1])[::-1])


def test_an_optimizer_that_raises_leaves_generators_alone(data, monkeypatch):
    monkeypatch.setattr(Noisy, "fails", True)
    with pytest.raises(InvalidInputError, match="noisy raised RuntimeError: enough"):
        weights(data)


def test_a_row_of_the_matrix_follows_its_seed(data, tmp_path, monkeypatch):
    (tmp_path / "noisy_rows.py").write_text(NOISY)
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(len(found))
        methods = [load_method("noisy_rows:Noisy", learning_rate=0.2)]
        matrix = bias_matrix(*data, methods=methods, norms=["l_2"], steps=STEPS, seed=seed)
        found.append(matrix.data["W"].values)
        initial = train_with_torch(*data, methods[0].optimizer, steps=STEPS, seed=seed)
        np.testing.assert_array_equal(initial.W()[:, 0], found[-1][0])
    torch.manual_seed(3), torch.randn(3)
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


NOISY = """
import torch

class Noisy(torch.optim.SGD):
    def __init__(self, params, lr=0.1):
        torch.manual_seed(int(torch.randint(100, ())))
        super().__init__(params, lr=lr)

    def step(self):
        super().step()
        with torch.no_grad():
            for parameter in self.param_groups[0]["params"]:
                parameter += 0.1 * torch.randn_like(parameter)
"""


def test_numbers_are_those_of_any_other_process():
    with seeded(3, 1, 7, purpose="a test"):
        found = torch.rand(2, dtype=torch.float64).tolist()
    assert found == pytest.approx([0.44029140877, 0.25380492136])


def test_a_model_that_draws_is_captured_the_same_every_time():
    pytest.importorskip("transformers")
    from tiny_models import Letters, letters, small

    model, texts = small("GPT2"), letters(6)
    torch.manual_seed(3), torch.randn(3)

    def draw(module, given):
        return given[0] + 0.1 * torch.randn_like(given[0]) * random.random(), *given[1:]

    model.h[0].register_forward_pre_hook(draw)
    first, second = (capture_heads(model, Letters(), texts).layer(1) for _ in range(2))
    np.testing.assert_array_equal(first.queries, second.queries)
    np.testing.assert_array_equal(first.attention, second.attention)


@pytest.mark.parametrize("used", [False, True])
def test_generators_of_devices_in_use_are_seeded_and_put_back(monkeypatch, used):
    """Devices that nobody uses yet are not started for it, nor seeded for later."""
    state = ["the user's"]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: used)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: list(state))
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", lambda states: state.append(states[0]))
    monkeypatch.setattr(torch.cuda, "manual_seed_all", state.append)
    found = []
    for _ in range(2):
        with pytest.raises(ValueError, match="no"), seeded(1, purpose="a test"):
            found.append(state[-1])
            raise ValueError("no")
        assert state[-1] == "the user's"
    assert found[0] == found[1] and (isinstance(found[0], int) is used)
    assert len(state) == (5 if used else 1)
