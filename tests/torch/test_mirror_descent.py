"""Mirror descent in PyTorch against its equations in NumPy, and against PyTorch's own SGD."""

import copy
import inspect
import io
import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import attractor
from attractor.support.errors import DivergenceWarning, InvalidInputError, PrecisionWarning

torch = pytest.importorskip("torch")

from attractor.torch import MirrorDescent, TorchOptimizer  # noqa: E402 - needs torch

EXPONENTS = (1.05, 1.1, 1.3, 1.5, 2, 3, 4)
FURTHER = (
    {"normalize": False},
    {"normalize": True},
    {"normalize": False, "momentum": 0.9, "dual_weight_decay": 0.1},
)


def model(dtype=torch.float32):
    """Weights of several shapes, some of them zero."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(9, 5), (4,), (), (2, 3, 4), (70_000,)]
    found = [torch.randn(shape, generator=generator) / 10 for shape in shapes]
    found[0][0] = 0
    return [torch.nn.Parameter(one.to(dtype)) for one in found]


def descend(optimizer, weights, steps=4, seed=1):
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        for one in weights:
            one.grad = torch.randn(one.shape, generator=random).to(one.dtype)
        optimizer.step()


def reference(W, gradients, rate, p, normalize=False, momentum=0.0, dual_weight_decay=0.0):
    """The equations in NumPy; returns the dual variable and the weights."""
    Y, M = np.sign(W) * np.abs(W) ** (p - 1), 0
    q = p / (p - 1)
    for G in gradients:
        if normalize and G.any():
            largest = np.abs(G).max()
            G = G / (largest * ((np.abs(G) / largest) ** q).sum() ** (1 / q))
        M = momentum * M + G
        Y = (1 - rate * dual_weight_decay) * Y - rate * M
    return Y, np.sign(Y) * np.abs(Y) ** (1 / (p - 1))


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def one_weight(values, gradient, dtype=torch.float32, steps=1, **settings):
    weight = torch.nn.Parameter(torch.tensor(values, dtype=dtype))
    optimizer = MirrorDescent([weight], **settings)
    for _ in range(steps):
        weight.grad = torch.as_tensor(gradient, dtype=dtype).expand(weight.shape).clone()
        optimizer.step()
    return weight.detach(), optimizer


@pytest.mark.parametrize("further", FURTHER)
@pytest.mark.parametrize("p", EXPONENTS)
def test_it_follows_its_equations(p, further):
    start = model(torch.float64)
    random = torch.Generator().manual_seed(1)
    shapes = [one.shape for one in start]
    gradients = [[torch.randn(shape, generator=random) for shape in shapes] for _ in range(4)]
    for dtype, rounding in ((torch.float64, 1e-14), (torch.float32, 2e-6)):
        weights = [torch.nn.Parameter(one.detach().to(dtype, copy=True)) for one in start]
        optimizer = MirrorDescent(weights, 0.01, p, **further)
        descend(optimizer, weights)
        for i, weight in enumerate(weights):
            past = [step[i].double().numpy() for step in gradients]
            W = start[i].detach().numpy()
            Y, W = reference(W, past, 0.01, p, **further)
            dual = optimizer.state[weight].get("dual", weight).detach().numpy()
            np.testing.assert_allclose(dual, Y, rtol=rounding, atol=rounding)
            image = np.sign(dual) * np.abs(dual).astype(float) ** (1 / (p - 1))
            np.testing.assert_allclose(weight.detach().numpy(), image, rtol=2e-5, atol=1e-44)


@settings(max_examples=40, deadline=None)
@given(
    arrays.arrays(
        np.float64, arrays.array_shapes(max_dims=3, max_side=4), elements=st.floats(-3, 3)
    ),
    st.sampled_from([1.1, 1.37, 1.5, 2, 2.5, 3, 6]),
    st.booleans(),
    st.sampled_from([1.0, 1e-30, 1e30]),
)
def test_any_shape_and_size_follows_the_equations(W, p, normalize, size):
    G = np.cos(np.arange(W.size).reshape(W.shape) + 1) * size
    found, optimizer = one_weight(
        W, G, torch.float64, lr=0.1 if normalize else 0.1 / size, p=p, normalize=normalize
    )
    Y, expected = reference(W, [G], 0.1 if normalize else 0.1 / size, p, normalize)
    dual = next(iter(optimizer.state.values()), {}).get("dual", found)
    np.testing.assert_allclose(dual, Y, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("further", [{}, {"momentum": 0.9}])
def test_at_two_it_is_gradient_descent_to_the_last_bit(further):
    mine, other = model(), model()
    descend(MirrorDescent(mine, 0.03, 2, False, **further), mine, 10)
    descend(torch.optim.SGD(other, 0.03, **further), other, 10)
    assert same(mine, other)


@pytest.mark.parametrize(
    ("p", "step", "weight"), [(1.1, 1e-4, 1e-10), (1.1, 1e-5, 1e-20), (1.05, 1e-3, 1.0)]
)
def test_a_weight_that_is_zero_leaves_it_when_the_map_says(p, step, weight):
    found, optimizer = one_weight([0.0], -1.0, lr=step, p=p, steps=1000)
    assert found.item() == pytest.approx(weight, rel=2e-3)
    few, _ = one_weight([0.0], -1.0, lr=1e-5, p=1.05, steps=100)  # (1e-3)^20 is no float
    assert few.item() == 0
    (state,) = optimizer.state.values()
    assert state["dual"].item() == pytest.approx(1000 * step, rel=1e-4)


@pytest.mark.parametrize("size", [1e-30, 1e-6, 1.0, 1e30])
@pytest.mark.parametrize("p", [1.01, 1.1, 3])
def test_the_dual_norm_neither_underflows_nor_overflows(p, size):
    _, optimizer = one_weight([0.0, 0, 0], [3 * size, -size, 0], lr=0.1, p=p, normalize=True)
    expected, _ = reference(np.zeros(3), [np.array([3.0, -1, 0])], 0.1, p, normalize=True)
    (state,) = optimizer.state.values()
    np.testing.assert_allclose(state["dual"], expected, rtol=1e-6)
    still, _ = one_weight([0.3, 0.1], 0.0, lr=0.1, p=p, normalize=True)
    assert torch.equal(still, torch.tensor([0.3, 0.1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("p", [1.1, 2, 3])
def test_half_precision_weights_follow_a_dual_in_single_precision(dtype, p):
    mine = model(dtype)
    wide = [torch.nn.Parameter(one.detach().float()) for one in mine]
    optimizer = MirrorDescent(mine, 1e-4, p)
    descend(optimizer, mine)
    gradients = torch.Generator().manual_seed(1)
    other = MirrorDescent(wide, 1e-4, p)
    for _ in range(4):
        for one in wide:
            one.grad = torch.randn(one.shape, generator=gradients).to(dtype).float()
        other.step()
    for one, exact in zip(mine, wide, strict=True):
        assert optimizer.state[one]["dual"].dtype == torch.float32
        torch.testing.assert_close(one.detach(), exact.detach().to(dtype), rtol=0.01, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [1.1, 1.5, 3])
def test_all_at_once_is_one_after_the_other(p, dtype):
    runs = []
    for at_once in (True, False):
        weights = model(dtype)
        optimizer = MirrorDescent(weights, 0.01, p, True, 0.9, 0.1, foreach=at_once)
        descend(optimizer, weights)
        runs.append([*weights, *(optimizer.state[one]["dual"] for one in weights)])
    for one, other in zip(*runs, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-6 if one.dtype != dtype else 0.02, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_saved_state_goes_on_bit_for_bit(dtype):
    settings = {"lr": 0.01, "p": 1.1, "momentum": 0.9}
    whole = model(dtype)
    optimizer = MirrorDescent(whole, **settings)
    descend(optimizer, whole)
    file = io.BytesIO()
    torch.save({"weights": whole, "optimizer": optimizer.state_dict()}, file)
    descend(optimizer, whole, seed=2)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    weights = [torch.nn.Parameter(one.detach()) for one in saved["weights"]]
    resumed = MirrorDescent(weights, lr=7.0)
    seen = []
    resumed.register_load_state_dict_post_hook(
        lambda one: seen.append(one.state[weights[0]]["dual"].dtype)
    )
    resumed.load_state_dict(saved["optimizer"])
    assert seen == [torch.promote_types(dtype, torch.float32)]
    descend(resumed, weights, seed=2)
    assert same(weights, whole)
    for one, other in zip(weights, whole, strict=True):
        assert torch.equal(resumed.state[one]["dual"], optimizer.state[other]["dual"])


def test_copies_and_pickles_go_on_bit_for_bit():
    weights = model()
    optimizer = MirrorDescent(weights, 0.01, momentum=0.9)
    descend(optimizer, weights)
    both = [copy.deepcopy((weights, optimizer)), pickle.loads(pickle.dumps((weights, optimizer)))]
    descend(optimizer, weights)
    for other, twin in both:
        descend(twin, other)
        assert same(other, weights)


def test_a_weight_that_never_moves_keeps_its_value_to_the_last_bit():
    for p in (1.1, 1.37, 3, 8):
        start = torch.linspace(-1, 1, 999) ** 9  # some too small for their dual variables
        weight = torch.nn.Parameter(start.clone())
        optimizer = MirrorDescent([weight], 0.1, p)
        for _ in range(3):
            weight.grad = torch.zeros(999)
            weight.grad[5] = 1.0
            optimizer.step()
        moved = (weight != start).nonzero().flatten().tolist()
        assert moved == [5]


@pytest.mark.parametrize("p", [1.1, 1.37, 2, 3])
@pytest.mark.parametrize("at_once", [True, False])
def test_weights_changed_by_somebody_else_count_as_they_are(p, at_once):
    weights = model()
    optimizer = MirrorDescent(weights, 0.01, p, foreach=at_once)
    descend(optimizer, weights)
    for one in weights:
        one.data.clamp_(-0.05, 0.05)
    fresh = [torch.nn.Parameter(one.detach().clone()) for one in weights]
    descend(MirrorDescent(fresh, 0.01, p, foreach=at_once), fresh, 1)
    descend(optimizer, weights, 1)
    for one, other in zip(weights, fresh, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-4, atol=1e-7)


def test_groups_have_settings_of_their_own_and_schedules_are_followed():
    first, second = model()[:2]
    alone = model()[:2]
    optimizer = MirrorDescent([{"params": [first]}, {"params": [second], "p": 2, "lr": 0.2}], 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    others = [MirrorDescent([alone[0]], torch.tensor(0.1)), MirrorDescent([alone[1]], 0.2, p=2)]
    for step in range(3):
        for one, other in zip((first, second), alone, strict=True):
            one.grad = other.grad = torch.full_like(one, 0.3)
        optimizer.step()
        schedule.step()
        for other, rate in zip(others, (0.1, 0.2), strict=True):
            other.param_groups[0]["lr"] = rate * 0.5**step
            other.step()
    assert torch.equal(second, alone[1])
    torch.testing.assert_close(first, alone[0])


def test_closures_scalers_and_weights_without_gradient():
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    idle = torch.nn.Parameter(torch.ones(3))
    empty = torch.nn.Parameter(torch.ones(0, 3))
    empty.grad = torch.ones(0, 3)
    optimizer = MirrorDescent([weight, idle, empty], 0.1, p=1.5, normalize=True)

    def closure():
        optimizer.zero_grad(set_to_none=False)
        loss = (weight**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 5
    assert torch.equal(idle, torch.ones(3))
    after = weight.detach().clone()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((weight**2).sum() * torch.inf).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(weight, after)  # skipped, as it must be
    weight.grad = None
    scaler.scale((weight**2).sum()).backward()
    scaler.step(optimizer)
    twin = torch.nn.Parameter(after)
    twin.grad = 2 * after
    other = MirrorDescent([twin], 0.1, p=1.5, normalize=True)
    other.step()
    torch.testing.assert_close(weight, twin)


def test_a_gradient_that_is_not_a_number_harms_its_own_weight_alone():
    found, _ = one_weight([0.5, 0.5], [torch.nan, 1.0], lr=0.1, p=1.1, normalize=False)
    assert found.isnan().tolist() == [True, False]
    found, _ = one_weight([0.5, 0.5], [torch.nan, 1.0], lr=0.1, p=1.1, normalize=True)
    assert found.isnan().all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p", 1), ("p", float("inf")), ("p", float("nan")), ("p", "2"), ("lr", -1.0),
        ("lr", float("nan")), ("lr", torch.ones(2)), ("momentum", 1.0), ("momentum", -0.1),
        ("dual_weight_decay", -1), ("normalize", 1), ("foreach", "yes"),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_named(name, value):
    with pytest.raises(InvalidInputError) as raised:
        MirrorDescent(model(), **{"lr": 0.1, name: value})
    assert raised.value.argument == name
    assert not raised.value.remedy.endswith("such as 0")  # which would leave weights as they are
    with pytest.raises(InvalidInputError):
        MirrorDescent([{"params": model(), name: value}], 0.1)


def test_sparse_and_complex_are_refused():
    with pytest.raises(InvalidInputError, match=r"params: .*complex64"):
        MirrorDescent([torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))], 0.1)
    table = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = MirrorDescent(table.parameters(), 0.1)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(InvalidInputError, match="gradient: it is sparse"):
        optimizer.step()


@pytest.mark.parametrize(
    ("settings", "start", "found"),
    [
        ({"p": 1 + 1e-7, "lr": 0.1}, 0.5, "differ by a factor"),
        ({"p": 1.1, "lr": 1e-9}, 1.0, "below the rounding"),
        ({"p": 1.001, "lr": 1.0}, 0.5, "longer than the whole range"),
    ],
)
def test_it_warns_once_of_steps_that_weights_cannot_follow(settings, start, found):
    with pytest.warns(PrecisionWarning, match=found) as told:
        one_weight([start, start], 1.0, steps=3, **settings)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_weight([start, start], 1.0, lr=1e-4, p=1.1, steps=2)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("settings", "advice"),
    [({"normalize": False}, "or set normalize=True"), ({"normalize": True}, "")],
)
def test_it_warns_once_of_weights_that_are_no_longer_finite(settings, advice, named):
    layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).double()
    given = layers.named_parameters() if named else layers.parameters()
    optimizer = MirrorDescent(given, lr=100.0, p=1.1, **settings)
    x = torch.randn(16, 3, dtype=torch.float64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(140):
            optimizer.zero_grad()
            (100 * layers(x)).exp().sum().backward()
            optimizer.step()
    (said,) = (str(one.message) for one in caught if one.category is DivergenceWarning)
    name = r"the parameter 0\.weight" if named else r"parameter 0 of group 0, of shape \(4, 3\),"
    assert re.match(rf"MirrorDescent: {name} holds NaN or infinity after step \d+: lower lr", said)
    assert "(it is 100)" in said and advice in said
    assert said.count("normalize") == (advice != "")


def test_large_finite_weights_are_no_divergence():
    weights = [torch.nn.Parameter(torch.full((4,), 2.0e38))]  # whose sum is infinite
    optimizer = MirrorDescent(weights, p=2.0)
    weights[0].grad = torch.ones(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()


def test_it_can_be_tried_on_exact_gradients():
    made = TorchOptimizer.tried(lambda given: MirrorDescent(given, 0.1, 1.75), "mirror")
    assert made.settings == {"lr": 0.1, "p": 1.75, "normalize": True}


def test_a_decay_of_the_weights_is_refused():
    with pytest.raises(InvalidInputError, match=r"^weight_decay: .*dual_weight_decay"):
        MirrorDescent([{"params": model(), "weight_decay": 0.2}], 0.1)
    assert MirrorDescent([{"params": model(), "weight_decay": 0.0}], 0.1).param_groups


def test_defaults_are_those_of_the_optax_optimizer():
    mine = inspect.signature(MirrorDescent).parameters
    other = inspect.signature(attractor.mirror_descent).parameters
    shared = {*mine} & {*other}
    assert shared == {"p", "normalize", "momentum", "dual_weight_decay"}
    for name in shared:
        assert mine[name].default == other[name].default


@pytest.mark.slow
def test_a_compiled_step_is_the_step():
    mine, other = model(), model()
    optimizer = MirrorDescent(mine, 0.01, momentum=0.9, normalize=True)
    compiled = torch.compile(optimizer.step)
    descend(type("Steps", (), {"step": staticmethod(compiled)}), mine, 3)
    descend(MirrorDescent(other, 0.01, momentum=0.9, normalize=True), other, 3)
    for one, twin in zip(mine, other, strict=True):
        torch.testing.assert_close(one, twin, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("at_once", [True, False])
def test_weights_may_lie_in_memory_in_any_order(at_once):
    values, gradient = torch.linspace(-1, 1, 24).view(4, 6), torch.linspace(1, -2, 24).view(4, 6)
    plain = torch.nn.Parameter(values.clone())
    turned = torch.nn.Parameter(values.t().contiguous().t())
    for one in (plain, turned):
        optimizer = MirrorDescent([one], 0.1, p=1.1, foreach=at_once)
        for _ in range(3):
            one.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(plain, turned)
