"""Calls of ``attractor.prompts``: laws of tokens, heads, finite prompts, their length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor import prompts
from attractor.prompts import finite_length, length, measures
from fuzzing.arguments import examples as ex
from fuzzing.arguments.table import Call

POINT = np.array([0.1, -0.2])
KEYS = np.array([[1.0, 0.5], [0.0, 1.0]])


def calls() -> Iterator[Call]:
    """One call of each."""
    yield from _measures()
    yield from _operator()
    yield from _concentration()
    yield from _finite_length()
    yield from _length()


def _measures() -> Iterator[Call]:
    law = {"self": ex.GAUSSIAN}
    two = {"first": "second", "second": "first"}
    yield Call(measures.Convolution, first=ex.GAUSSIAN, second=ex.UNIFORM, blames=two)
    yield Call(measures.Empirical, points=ex.POINTS, weights=np.ones(4), mask=np.ones(4, bool))
    yield Call(measures.Empirical.pushforward, self=ex.EMPIRICAL, matrix=KEYS)
    yield Call(
        measures.Gaussian, mean=POINT, covariance=np.eye(2),
        blames={"mean": "covariance", "covariance": "mean"},
    )  # fmt: skip
    yield Call(measures.Gaussian.isotropic, dimension=2)
    yield Call(measures.Gaussian.pushforward, **law, matrix=KEYS)
    yield Call(measures.Gaussian.with_noise, **law, variance=0.5)
    yield Call(measures.Laplace, scale=0.4, dimension=2)
    both = {"direction": POINT, "vector": POINT}
    yield Call(measures.Gaussian.covariance_product, **law, **both)
    for method in (
        measures.Gaussian.admissible,
        measures.Gaussian.exists,
        measures.Gaussian.log_normalizer,
        measures.Gaussian.tilt,
        measures.Gaussian.tilted_mean,
        measures.Gaussian.tilted_norm_moments,
    ):
        yield Call(method, **law, direction=POINT)
    yield Call(measures.Uniform.pushforward, self=ex.UNIFORM, matrix=KEYS)
    yield Call(measures.Uniform.with_noise, self=ex.UNIFORM, variance=0.5)
    yield Call(measures.Gaussian.sample, **law, count=2, seed=0)
    yield Call(
        measures.Mixture, weights=[0.5, 0.5], components=ex.COMPONENTS,
        blames={"weights": "components", "components": "weights"},
    )  # fmt: skip
    yield Call(measures.Mixture.pushforward, self=ex.MIXTURE, matrix=KEYS)
    yield Call(measures.Mixture.with_noise, self=ex.MIXTURE, variance=0.5)
    yield Call(measures.Mixture.responsibilities, self=ex.MIXTURE, direction=POINT)
    yield Call(measures.Product, factors=ex.COMPONENTS)
    yield Call(
        measures.Pushforward, source=ex.UNIFORM, matrix=KEYS,
        blames={"matrix": "source"},
    )  # fmt: skip
    yield Call(measures.Rademacher, dimension=2)
    yield Call(measures.Sphere, dimension=2, radius=1.2)
    yield Call(measures.StudentT, degrees_of_freedom=3.0, dimension=2)
    yield Call(measures.Uniform, half_width=1.3, dimension=2)


def _operator() -> Iterator[Call]:
    factors = {"keys": KEYS, "queries": KEYS, "divide_by_sqrt_head_dimension": True}
    yield Call(prompts.AttentionHead, score_matrix=KEYS, value_matrix=KEYS)
    yield Call(prompts.AttentionHead.from_factors, **factors, values=KEYS)
    at_query = {"measure": ex.GAUSSIAN, "head": ex.PROMPT_HEAD, "query": POINT}
    yield Call(prompts.head_gradients, **at_query, cotangent=POINT)
    yield Call(prompts.output, **at_query)
    yield Call(prompts.output_jacobian, **at_query)


def _concentration() -> Iterator[Call]:
    yield Call(prompts.row_concentration, scores=KEYS, mask=np.ones((2, 2), bool))
    row = {"self": ex.ROW_CONCENTRATION}
    for method in (
        prompts.RowConcentration.bound,
        prompts.RowConcentration.sharp_bound,
        prompts.RowConcentration.top_probability_bound,
        prompts.RowConcentration.top_probability_ceiling,
    ):
        yield Call(method, **row, inverse_temperature=1.5)
    yield Call(prompts.RowConcentration.inverse_temperature_for, **row, probability=0.5)
    yield Call(prompts.certified_concentration, solution=ex.SOLUTION_OF_ONE)
    certified = {"self": ex.CERTIFIED_CONCENTRATION}
    yield Call(prompts.CertifiedConcentration.top_probability_bound, **certified, norm=2.0)
    yield Call(prompts.CertifiedConcentration.norm_for, **certified, probability=0.5)


def _finite_length() -> Iterator[Call]:
    deviation = {"score_deviation": 1.5, "length": 10}
    for function in (
        finite_length.covariance_moments,
        finite_length.mean_output,
        finite_length.output_error,
        finite_length.output_second_moment,
        finite_length.prompt_moments,
        finite_length.sum_of_squared_weights,
        prompts.effective_sample_size,
    ):
        yield Call(function, **deviation)
    yield Call(prompts.freezing_length, score_deviation=1.5)
    yield Call(finite_length.error_exponent, horizon=0.5)
    yield Call(finite_length.finite_length_exponent, singular_values=POINT + 1, length=10)
    yield Call(finite_length.averaged_output_error, singular_values=POINT + 1, length=10)
    yield Call(finite_length.error_table, lengths=[10.0])
    for method in (
        finite_length.ErrorTable.excess_per_variance,
        finite_length.ErrorTable.mean_output,
        finite_length.ErrorTable.output_error,
        finite_length.ErrorTable.output_second_moment,
        finite_length.ErrorTable.sum_of_squared_weights,
    ):
        yield Call(method, self=ex.ERROR_TABLE, score_deviation=1.5)
    matrices = {"covariance": np.eye(2), "score_matrix": KEYS, "value_matrix": KEYS, "length": 10}
    yield Call(finite_length.error_of_output, **matrices, query=POINT)
    yield Call(finite_length.finite_length_error, **matrices, query=POINT)
    scores = {"covariance": "score_matrix", "query_covariance": "score_matrix"}
    yield Call(
        finite_length.averaged_error_of_output, **matrices, query_covariance=np.eye(2),
        blames=scores,
    )  # fmt: skip
    yield Call(finite_length.two_head_moments, score_covariance=np.eye(2), length=10)
    bounds = finite_length.ConcentrationBounds(1, 1, 0.5, 1.0, 0.5, 0.5, (1.0, 1.0))
    yield Call(
        finite_length.ConcentrationBounds, token_dimension=1, query_dimension=1, score_norm=0.5,
        value_norm=1.0, limit=0.5, mean=0.5, tilted_moments=(1.0, 1.0),
    )  # fmt: skip
    for method in (
        finite_length.ConcentrationBounds.output,
        finite_length.ConcentrationBounds.score_gradient,
        finite_length.ConcentrationBounds.value_gradient,
    ):
        yield Call(method, self=bounds, sigma=1.5, length=10)
    shape = finite_length.BoundShape(6, 1, 1.0)
    yield Call(
        finite_length.ConcentrationBounds.constants, self=bounds, error="output", shape=shape
    )
    of_law = {"measure": ex.GAUSSIAN, "head": ex.PROMPT_HEAD, "query": POINT, "length": 10}
    # The gradient in the scores is not known for tokens of more than one dimension.
    yield Call(finite_length.measure_error, **of_law, nan=True)
    yield Call(finite_length.measure_output_error, **of_law)
    yield Call(
        finite_length.monte_carlo_error, measure=ex.GAUSSIAN, head=ex.PROMPT_HEAD,
        queries=POINT[None], length=40, prompts=4, seed=0, blames={"queries": "length"},
    )  # fmt: skip


def _length() -> Iterator[Call]:
    head = {"head": ex.PROMPT_HEAD, "tokens": ex.GAUSSIAN}
    queries = {"queries": ex.POINTS}
    either = {"head": "tokens", "tokens": "head"}
    yield Call(length.AffineLimit, **head, blames=either)
    yield Call(length.PromptLength.errors_at, self=ex.PROMPT_LENGTH, lengths=[10.0, 20.0])
    undefined = {"nan": True}  # relative errors of queries whose scores do not vary
    yield Call(length.non_gaussian_defect, **head, **queries, **undefined)
    yield Call(length.prompt_length, **head, **queries, **undefined)
    yield Call(length.required_length, score_deviation=1.5, error=0.1)
