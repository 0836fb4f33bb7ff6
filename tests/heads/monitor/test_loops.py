"""The monitor inside loops of PyTorch and optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import attractor as at
from attractor.heads import HeadMonitor, WatchedHead

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(4, 5, 6)).astype(np.float32), RNG.normal(size=(4, 6)).astype(np.float32)


def assert_recorded(found, matrices):
    """Every record is that of the matrix which the loop held."""
    tokens = at.Tokens(X, Z)
    for step, W in matrices.items():
        at_step = found.sel(step=step).isel(head=0)
        W = W.astype(np.float64)
        assert float(at_step["frobenius_norm"]) == pytest.approx(np.linalg.norm(W), rel=1e-6)
        problem = at.MarginProblem.from_selection(tokens, at.attended_tokens(tokens, W))
        solution = at.solve(problem)
        ratio = problem.margins(W).min() / np.linalg.norm(W) * solution.norm
        assert float(at_step["margin_ratio"]) == pytest.approx(ratio, rel=1e-4)
        scores = np.einsum("ntd,de,ne->nt", X, W, Z)
        np.testing.assert_array_equal(at_step["selected"].values[:, 0], scores.argmax(-1))


def test_an_optax_loop():
    optimizer = optax.adam(0.05)
    keys, queries = RNG.normal(size=(2, 6, 3))
    parameters = {"keys": jnp.asarray(keys, jnp.float32), "queries": jnp.asarray(queries)}
    head = WatchedHead("head", lambda p: (p["keys"], p["queries"]), (X, Z), scale=0.5)
    monitor = HeadMonitor(head, every=10, budget=None)

    def loss(parameters):
        scores = X @ (0.5 * parameters["keys"] @ parameters["queries"].T) @ Z[..., None]
        return -jax.nn.log_softmax(scores[..., 0])[:, 0].mean()

    @jax.jit
    def step(parameters, state):
        updates, state = optimizer.update(jax.grad(loss)(parameters), state)
        return optax.apply_updates(parameters, updates), state

    state, kept = optimizer.init(parameters), {}
    for number in range(41):
        monitor(number, parameters)
        if number % 10 == 0:
            kept[number] = 0.5 * np.asarray(parameters["keys"] @ parameters["queries"].T)
        parameters, state = step(parameters, state)
    found = monitor.to_xarray()
    assert found["step"].values.tolist() == [0, 10, 20, 30, 40]
    assert_recorded(found, kept)
    assert found["selected"].values[-1].ravel().tolist() == [0, 0, 0, 0]
    assert float(found["log_unselected_probability"][-1, 0]) < float(
        found["log_unselected_probability"][1, 0]
    )


@pytest.mark.torch
def test_a_hook_of_a_pytorch_optimizer():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({name: torch.nn.Linear(6, 3, bias=False) for name in "kq"})
    embedded = torch.nn.Parameter(torch.as_tensor(X))
    model.register_parameter("embedded", embedded)

    def tokens(model):
        return model.embedded, Z, torch.ones(4, 5, dtype=torch.bool)

    head = WatchedHead("head", lambda m: (m["k"].weight.T, m["q"].weight.T), tokens, scale=0.5)
    monitor = HeadMonitor(head, every=5, budget=None)
    optimizer = torch.optim.SGD([*model["k"].parameters(), *model["q"].parameters()], lr=0.5)
    optimizer.register_step_post_hook(monitor.hook(model))
    kept = {}
    for number in range(1, 21):
        scores = 0.5 * torch.einsum("ntm,nm->nt", model["k"](embedded), model["q"](torch.tensor(Z)))
        loss = -scores.log_softmax(-1)[:, 0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 5 == 0:
            W = 0.5 * model["k"].weight.T @ model["q"].weight
            kept[number] = W.detach().numpy().copy()
    found = monitor.to_xarray()
    assert found["step"].values.tolist() == [5, 10, 15, 20]
    assert_recorded(found, kept)
    assert all(parameter.requires_grad for parameter in model.parameters())
    for step, half in ((21, torch.bfloat16), (22, torch.float16)):
        monitor.record(step, model.to(half))
        exact = 0.5 * model["k"].weight.double().T @ model["q"].weight.double()
        norm = monitor.to_xarray()["frobenius_norm"].sel(step=step, head="head")
        assert float(norm) == pytest.approx(float(exact.norm()), rel=1e-14)
