"""Optimizers of PyTorch and optax, step by step beside those of the library of the same name."""

import functools

import numpy as np
import optax
import pytest

from attractor.datasets import unit_tokens
from attractor.training import adam, declare, lion, muon, train

torch = pytest.importorskip("torch")

from attractor.torch import TorchOptimizer, train_with_torch  # noqa: E402 - needs torch

OPTIONS = {"steps": 12, "record": range(13), "parameterization": "KQ"}


@pytest.fixture(scope="module")
def data():
    return unit_tokens(3, 4, 5, seeds=2)


def by_torch(data, optimizer, **settings):
    factory = functools.partial(optimizer, **settings)
    return train_with_torch(*data, TorchOptimizer.tried(factory, "its own"), **OPTIONS).data


@pytest.fixture
def double_muon(monkeypatch):
    """PyTorch's Muon iterates in half precision, which is all that keeps it from the formula."""
    muon = pytest.importorskip("torch.optim").Muon
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    return muon


@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_of_torch_in_double_precision_without_weight_decay(data, double_muon, nesterov):
    theirs = by_torch(data, double_muon, lr=0.05, weight_decay=0, nesterov=nesterov)
    ours = train(*data, muon(0.05, nesterov=nesterov, bias_correction=False), **OPTIONS).data
    for name in ("K", "Q", "loss"):
        np.testing.assert_allclose(theirs[name], ours[name], rtol=1e-9, atol=1e-11)


def test_muon_of_torch_as_it_is_differs_by_its_precision_and_by_what_it_decays(data):
    """Its iterations multiply a rounding to half precision by up to 3.4^5 = 485.

    Weights that it decays are ``1 - lr weight_decay`` times as large before a step.
    """
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this PyTorch has no Muon")
    ours = train(*data, muon(0.05, bias_correction=False), **OPTIONS).data
    half = by_torch(data, torch.optim.Muon, lr=0.05, weight_decay=0)
    away = np.abs(half["K"] - ours["K"]).isel(step=1).max().item() / 0.05
    assert 0.01 < away < 0.5
    decayed = by_torch(data, torch.optim.Muon, lr=0.05, weight_decay=0.1)
    step = (decayed["K"] - half["K"]).isel(step=1)
    np.testing.assert_allclose(step, -0.005 * half["K"].isel(step=0), rtol=1e-9)


def test_adam_of_torch_and_of_optax(data):
    ours = train(*data, adam(0.05, 0.8, 0.9), **OPTIONS).data
    theirs = by_torch(data, torch.optim.Adam, lr=0.05, betas=(0.8, 0.9), eps=0)
    np.testing.assert_allclose(theirs["K"], ours["K"], rtol=1e-9, atol=1e-11)
    stock = declare(optax.adam(0.05, 0.8, 0.9, eps=0.0), geometry="l_inf", name="of optax")
    np.testing.assert_allclose(train(*data, stock, **OPTIONS).data["K"], ours["K"], rtol=1e-9)


def test_lion_of_optax(data):
    """There is none in PyTorch."""
    ours = train(*data, lion(0.05, 0.8, 0.9), **OPTIONS).data
    stock = declare(optax.lion(0.05, 0.8, 0.9, weight_decay=0.0), geometry="l_inf", name="lion")
    np.testing.assert_allclose(train(*data, stock, **OPTIONS).data["K"], ours["K"], rtol=1e-9)
