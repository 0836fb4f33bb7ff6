"""The limit that linear attention is trained to, in units of any size."""

import numpy as np
import pytest

from attractor.papers import Outcome, RegressionCase, examine, get_claim
from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    linear_attention_risk,
    trained_limit,
)
from attractor_further.trained_linear_models.linear_attention_optimum import error_on_new_tasks


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_training_is_followed_until_it_rests_in_every_unit(unit):
    task = RegressionTask(unit * np.diag([1.0, 2.0]))
    case = RegressionCase(task, (20,), 0.1 / unit)
    claim = get_claim("trained-linear-models/linear-attention-limit")
    assert examine(claim, case).outcome is Outcome.HOLDS


def test_error_on_prompts_of_another_length_than_trained_on():
    covariance = np.diag([0.5, 1.0, 2.0])
    task = RegressionTask(covariance)
    trained, length, noise = 8, 30, 0.3
    weights = np.random.default_rng(0).standard_normal((40, 3))
    moments = weights @ covariance
    labels = np.sum(moments * weights, axis=1) + noise
    products = labels[:, None, None] * covariance + moments[:, :, None] * moments[:, None, :]
    errors = [
        error_on_new_tasks(
            covariance, m, p, best_linear_error=noise, trained_length=trained, length=length
        )
        for m, p in zip(moments, products, strict=True)
    ]
    # the same prompts by the risk, whose mean over weights depends on w w^T alone
    head = trained_limit(task, trained).blocks
    second = weights.T @ weights / len(weights)
    root = np.linalg.cholesky(second)
    # inputs R^T x have weights R^{-1} w of second moment one
    turned = RegressionTask(root.T @ covariance @ root, root.T @ covariance @ root)
    exact = Blocks(
        np.linalg.solve(root, head.key_query) @ np.linalg.inv(root.T),
        head.label_row,
        head.value_inputs,
        head.value_label,
    )
    noisy = RegressionTask(turned.covariance, turned.query_covariance, label_noise=noise)
    expected = 2 * linear_attention_risk(noisy, exact, length) + noise
    assert np.mean(errors) == pytest.approx(expected, rel=1e-11)
