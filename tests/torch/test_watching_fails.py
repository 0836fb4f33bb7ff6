"""A training run of PyTorch in which watching fails midway, beside the same run without it."""

import random
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from attractor.heads import HeadMonitor, WatchedHead  # noqa: E402
from attractor.support.errors import AttractorWarning, InvalidInputError  # noqa: E402 - after the skip

STEPS, FAIL_AT = 5, 3
X = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))


class Model(torch.nn.Module):
    """Attention between what keeps statistics of training and what draws in it."""

    def __init__(self):
        super().__init__()
        self.before = torch.nn.BatchNorm1d(6)
        self.attention = torch.nn.ModuleList(
            torch.nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2)
        )
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        x = self.before(x)
        for attention in self.attention:
            x = x + self.drop(attention(x, x, x, need_weights=False)[0])
        return x


class Probe:
    """Runs a model on the probe batch, and fails at one of its calls."""

    def __init__(self, fail=None, at=FAIL_AT):
        self.fail, self.at, self.calls = fail, at, 0

    def __call__(self, state):
        self.calls += 1
        model = state["model"] if isinstance(state, dict) else state
        model(X + 0 * torch.randn(X.shape) * random.random() * np.random.normal())
        if self.fail is not None and self.calls == self.at + 1:  # once before training
            self.fail(model)


def raising(error):
    def fail(model):
        raise error

    return fail


def train(probe=None, *, held=False, interrupted=False, change=lambda step, model: None):
    """Trains; returns all that a monitor could disturb, the warnings, and the monitor."""
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    monitor = None
    if probe is not None:
        heads = [
            WatchedHead.from_module(f"{i}.{h}", layer, h, probe)
            for i, layer in enumerate(model.attention)
            for h in range(2)
        ]
        monitor = HeadMonitor(heads, every=1, budget=None)
        hook = monitor.hook({"model": model} if held else model)
        optimizer.register_step_post_hook(hook)
    seen = []
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for step in range(1, STEPS + 1):
            change(step, model)
            optimizer.zero_grad()
            model(X).square().mean().backward()
            try:
                optimizer.step()
            except KeyboardInterrupt:
                assert interrupted
            seen.append([one.clone() for one in model.state_dict().values()])
            seen.append([one.grad.clone() for one in model.parameters()])
            seen.append(torch.get_rng_state())
            seen.append((random.getstate(), np.random.get_state()[1:]))
            modes = [module.training for module in model.modules()]
            hooks = [len(module._forward_pre_hooks) for module in model.modules()]
            ways = torch.is_grad_enabled(), torch.backends.mha.get_fastpath_enabled()
            seen.append((modes, hooks, ways, [one.requires_grad for one in model.parameters()]))
    said = [str(one.message) for one in given if issubclass(one.category, AttractorWarning)]
    return seen, said, monitor


def assert_same(one, other):
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, list | tuple) and one and not isinstance(one[0], int):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_same(first, second)
    elif isinstance(one, np.ndarray):
        assert np.array_equal(one, other)
    else:
        assert one == other


FAILURES = {
    "nothing": None,
    "an exception": raising(RuntimeError("no")),
    "memory": raising(MemoryError()),
    "the model called twice": lambda model: model(X),
    "an index out of range": lambda model: torch.zeros(3)[torch.tensor(7)],
    "other shapes": lambda model: model(torch.zeros(4, 7, 8)),
}


@pytest.fixture(scope="module")
def plain():
    return train()[0]


@pytest.mark.parametrize("held", [False, True], ids=["the model", "a dictionary"])
@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_training_is_the_same_bits_when_watching_fails(plain, fail, held):
    seen, said, monitor = train(Probe(fail), held=held)
    assert_same(plain, seen)
    status = monitor.to_xarray()["status"]
    wrong = [FAIL_AT] if fail else []
    assert (status.sel(step=wrong) == "could not be read").all()
    assert (status.drop_sel(step=wrong) == "optimal").all()
    assert len(said) == len(wrong)


def test_an_interruption_of_a_pass_passes_and_changes_nothing(plain):
    seen, said, monitor = train(Probe(raising(KeyboardInterrupt())), interrupted=True)
    assert_same(plain, seen)
    status = monitor.to_xarray()["status"]
    assert not said and 3 not in status["step"]
    assert (status == "optimal").all() and status["step"].values.tolist() == [1, 2, 4, 5]


def test_a_module_that_is_gone_is_said_of_its_heads_alone():
    def change(step, model):
        if step == FAIL_AT:
            del model.attention[1]

    _, said, monitor = train(Probe(), change=change)
    status = monitor.to_xarray()["status"]
    assert (status.sel(head=["0.0", "0.1"]) == "optimal").all()
    gone = status.sel(head=["1.0", "1.1"])
    assert (gone.sel(step=[1, 2]) == "optimal").all()
    assert (gone.sel(step=[3, 4, 5]) == "could not be read").all()
    assert len(said) == 1 and "it called MultiheadAttention 0 times" in said[0]


def test_weights_that_are_no_numbers_and_weights_of_another_shape():
    def change(step, model):
        if step == 2:
            with torch.no_grad():
                model.attention[0].in_proj_weight[0, 0] = torch.nan
        if step == 4:
            model.attention[0] = model.attention[1]
            model.attention[1].num_heads, model.attention[1].head_dim = 4, 2

    _, said, monitor = train(Probe(), change=change)
    status = monitor.to_xarray()["status"].sel(head="0.0").values.tolist()
    assert status == ["optimal"] + ["not finite"] * 2 + ["could not be read"] * 2
    assert said


def test_what_cannot_be_watched_is_refused_before_the_first_step():
    for fail, words in [
        (raising(RuntimeError("no")), r"reading: that of head '0\.0' raised RuntimeError: no"),
        (lambda model: model(X), "run: it called MultiheadAttention 2 times"),
    ]:
        with pytest.raises(InvalidInputError, match=words):
            train(Probe(fail, at=0))
    causal = torch.triu(torch.full((64, 64), -torch.inf), 1)
    x, layer = torch.randn(16, 64, 8), torch.nn.MultiheadAttention(8, 2, batch_first=True)
    head = WatchedHead.from_module("0.0", layer, 0, lambda layer: layer(x, x, x, attn_mask=causal))
    with pytest.raises(InvalidInputError, match=r"'0.0' makes 32,256 constraints"):
        HeadMonitor(head).hook(layer)


def test_a_callback_of_the_trainer_refuses_before_the_first_step():
    transformers = pytest.importorskip("transformers")
    from attractor.heads import trainer_callback

    probe = np.ones((1, 2, 3)), np.ones((1, 3))
    monitor = HeadMonitor(WatchedHead("a", lambda model: model["W"], probe))
    handler = transformers.trainer_callback.CallbackHandler(
        [trainer_callback(monitor)], {"V": 1}, None, None, None
    )
    state = transformers.TrainerState(global_step=1)
    with pytest.raises(InvalidInputError, match="matrix: that of head 'a' raised KeyError"):
        handler.on_train_begin(None, state, transformers.TrainerControl())
    state.is_world_process_zero = False
    handler.on_train_begin(None, state, transformers.TrainerControl())
