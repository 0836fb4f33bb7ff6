"""Heads on Gaussian mixtures: two classes with labels, and clusters seen with noise."""

import numpy as np
import pytest

from attractor.papers import Outcome, examine, examine_control, get_claim
from attractor.papers.large_prompt.denoising import both_heads, posterior_mean, residual
from attractor.papers.large_prompt.denoising_data import noisy_points, variances
from attractor.papers.large_prompt.discriminant import (
    Effective,
    bayes_head,
    bayes_risk,
    classes,
    risk,
)
from attractor.papers.large_prompt.discriminant_head import bayes_matrices, head_risk
from attractor.papers.large_prompt.mixture_data import (
    clusters,
    mixture,
    random_mixture,
    two_classes,
)
from attractor.papers.large_prompt.quadrature import Points, attended, gaussian_points, union
from attractor.prompts import HeadCase
from attractor.prompts.head import AttentionHead, output
from attractor.prompts.measures.gaussian import Gaussian


def found(name, case, seed=0):
    return examine(get_claim(f"large-prompt/{name}"), case, seed)


def test_quadrature_over_a_mixture_agrees_with_the_operator():
    case = random_mixture(2)
    parts = [gaussian_points(m, c, 40) for m, c in zip(*clusters(case)[1:], strict=True)]
    queries = np.random.default_rng(0).standard_normal((5, 2))
    integrated = attended(union(clusters(case).weights, parts), queries @ case.U.T) @ case.V.T
    assert output(case.tokens, case.head, queries) == pytest.approx(integrated, rel=1e-12)


def test_two_nodes_are_random_signs():
    rule = gaussian_points(np.array([1.0, 2.0]), np.diag([4.0, 9.0]), 2)
    assert sorted(map(tuple, rule.points.round(12))) == [(-1, -1), (-1, 5), (3, -1), (3, 5)]
    assert np.exp(rule.log_weights) == pytest.approx(np.full(4, 1 / 4))


@pytest.mark.parametrize("probability", [0.3, 0.5, 0.6])
@pytest.mark.parametrize("negative", [(0.0, 1.0), (-1.0, 0.0), (1.0, 0.0)])
def test_the_bayes_head_for_all_kinds_of_classes(probability, negative):
    case = two_classes((1.0, 0.0), negative, probability, wide=True)
    assert found("bayes-discriminant", case).measured.value < 1e-12
    points = np.random.default_rng(1).standard_normal((6, 2))
    w, b = classes(case).bayes
    queries = np.column_stack([points, np.zeros(6)])
    score = output(case.tokens, bayes_head(classes(case)), queries)
    assert score[:, 0] == pytest.approx(points @ w + b, abs=1e-12)


def test_the_log_odds_of_independent_coordinates():
    w, b = classes(two_classes(probability=0.6)).bayes
    assert w == pytest.approx([1, -1]) and b == pytest.approx(np.log(1.5))


def test_the_gradient_of_the_logistic_risk():
    of = classes(two_classes((1.0, 0.5), (-0.5, 1.0), 0.3, wide=True))
    flat = np.random.default_rng(2).standard_normal(6)
    steps = 1e-5 * np.eye(6)
    differences = [(risk(of, flat + h).value - risk(of, flat - h).value) / 2e-5 for h in steps]
    assert risk(of, flat).gradient == pytest.approx(differences, abs=1e-9)


def test_the_logistic_risk_by_sampling():
    case = two_classes(probability=0.6)
    of, score = classes(case), Effective(np.array([1.0, -0.5]), 0.2, 0.7, np.array([0.4, 1.0]))
    drawn = case.tokens.sample(40_000, seed=1)
    points, labels = drawn[:, :-1], drawn[:, -1]
    gate = 1 / (1 + np.exp(-of.log_odds - points @ score.s))
    losses = np.logaddexp(0, -labels * (points @ score.w + score.b + score.r * gate))
    assert risk(of, score.flat).value == pytest.approx(losses.mean(), abs=4 * losses.std() / 200)
    assert bayes_risk(of) < risk(of, score.flat).value


DENOISERS = ("residual-denoiser", "two-head-denoiser", "one-head-denoiser")
SCALES = [1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e8, 1e12]


def seen_in_other_units(scale, U=1.0, V=1.0, second=3.0, variances=(1.0, 1.0)):
    """Noise like the spread: tokens times a scale, each matrix times a factor of its own."""
    means = scale * np.array([[3.0, 0.0], [0.0, second]])
    seen = mixture([0.5, 0.5], means, [8 * scale**2 * np.diag(variances)] * 2)
    head = AttentionHead(U * np.eye(2) / (8 * scale**2), 0.5 * V * np.eye(2))
    return HeadCase(head, seen, seen, about=f"tokens times {scale:g}")


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DENOISERS)
def test_a_denoiser_is_one_in_every_unit(name, scale):
    case = seen_in_other_units(scale)
    assert found(name, case).outcome is Outcome.HOLDS
    assert examine_control(get_claim(f"large-prompt/{name}"), case).outcome is Outcome.FAILS


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("wrong", "assumption"),
    [
        ({"U": 2.0}, "denoising head"),
        ({"U": 1 + 1e-9}, "denoising head"),
        ({"V": np.diag([1.0, 1 + 1e-9])}, "denoising head"),
        ({"variances": (1.0, 5.0)}, "two clusters"),
        ({"variances": (1.0, 1 + 1e-9)}, "two clusters"),
        ({"second": 3 * (1 + 1e-9)}, "means of equal norm"),
    ],
)
def test_no_unit_hides_what_is_no_denoiser(scale, wrong, assumption):
    outcome = found("residual-denoiser", seen_in_other_units(scale, **wrong))
    assert outcome.outcome is Outcome.ASSUMPTION_NOT_MET
    assert outcome.reason.startswith(assumption)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("queries", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", ["mixture-attention", "mixture-sensitivity"])
def test_attention_over_mixtures_in_every_unit(name, queries, scale):
    plain = random_mixture(0)
    weights, means, covariances = clusters(plain)
    tokens = mixture(weights, scale * means, list(scale**2 * covariances))
    head = AttentionHead(plain.U / scale / queries, plain.V)
    case = HeadCase(head, tokens, Gaussian([0.0, 0.0], queries**2 * np.eye(2)))
    assert found(name, case).outcome is Outcome.HOLDS
    assert examine_control(get_claim(f"large-prompt/{name}"), case).outcome is Outcome.FAILS


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_descent_finds_the_best_heads_in_every_unit(scale):
    right = noisy_points()
    means = scale * clusters(right).means
    seen = mixture([0.5, 0.5], means, [5 * scale**2 * np.eye(2)] * 2)
    case = HeadCase(AttentionHead(right.U / scale**2, right.V), seen, seen)
    assert found("one-head-gap", case).outcome is Outcome.HOLDS


def test_opposite_means_and_equal_labels_leave_linear_attention_nothing_to_miss():
    case = two_classes((1.0, 0.0), (-1.0, 0.0), 0.5)
    assert found("discriminant-minimizers", case).outcome is Outcome.VACUOUS


@pytest.mark.parametrize(
    "case",
    [noisy_points(), noisy_points(spread=1.5, noise=1.0, probability=0.3), noisy_points(spread=0)],
)
def test_the_mean_of_a_point_given_what_is_seen(case):
    weights, means, _ = clusters(case)
    spread, noise = variances(case)
    parts = [gaussian_points(mean, spread * np.eye(2), 60) for mean in means]
    points, logs = union(weights, parts)
    seen = np.random.default_rng(3).standard_normal((5, 2)) * 2
    likely = Points(points, logs - (points**2).sum(-1) / (2 * noise))
    assert posterior_mean(case, seen) == pytest.approx(attended(likely, seen / noise), abs=1e-9)
    for denoiser in (both_heads, residual):
        assert denoiser(case, seen) == pytest.approx(posterior_mean(case, seen), abs=1e-9)


@pytest.mark.parametrize(
    ("case", "attractors"),
    [
        (noisy_points((1.5, 0.0), (-1.5, 0.0), spread=0.0), 1),
        (noisy_points((2.5, 0.0), (-2.5, 0.0), spread=0.0), 2),
        (noisy_points((2.0, 0.0), (-2.0, 0.0), spread=2.0, noise=1.5), 1),
        (noisy_points((4.0, 0.0), (0.0, 4.0)), 2),
    ],
)
def test_denoised_again_and_again_clusters_collapse_or_not(case, attractors):
    measured = found("iterated-denoiser", case).measured
    assert measured.details["attractors"] == attractors
    assert measured.value < 1e-8


def test_one_head_is_enough_where_noise_and_spread_are_alike():
    alike = noisy_points(spread=2.0)
    assert found("one-head-denoiser", alike).outcome is Outcome.HOLDS
    assert found("one-head-gap", alike).outcome is Outcome.ASSUMPTION_NOT_MET
    assert found("one-head-denoiser", noisy_points()).outcome is Outcome.ASSUMPTION_NOT_MET


def test_the_gradient_in_the_matrices_of_a_head_and_the_score_it_stands_for():
    case = two_classes((1.0, 0.5), (-0.5, 1.0), 0.3, wide=True)
    of, flat = classes(case), np.random.default_rng(4).standard_normal(9)
    steps = 1e-5 * np.eye(9)
    differences = [
        (head_risk(of, flat + h).value - head_risk(of, flat - h).value) / 2e-5 for h in steps
    ]
    assert head_risk(of, flat).gradient == pytest.approx(differences, abs=1e-9)
    U = np.zeros((3, 3))
    U[:2, :2], U[2, :2] = flat[:4].reshape(2, 2).T, flat[4:6]
    drawn = case.tokens.sample(40_000, seed=2)
    queries = drawn * [1, 1, 0]
    scores = output(case.tokens, AttentionHead(U, flat[None, 6:]), queries)[:, 0]
    losses = np.logaddexp(0, -drawn[:, -1] * scores)
    assert head_risk(of, flat).value == pytest.approx(losses.mean(), abs=4 * losses.std() / 200)


@pytest.mark.parametrize(("probability", "power"), [(0.6, 2), (0.5, 4)])
def test_the_risk_far_away_falls_like_a_power_of_the_size_of_the_gate(probability, power):
    measured = found("discriminant-escape", two_classes(probability=probability)).measured
    first, second, *_ = measured.details["risk above that of Bayes"]
    assert np.log10(first / second) == pytest.approx(power, abs=0.02)


def test_what_stays_at_bayes_does_not_escape():
    case = two_classes()
    w, b = classes(case).bayes
    staying = get_claim("large-prompt/discriminant-escape").about(
        lambda of, size: Effective(w, b, 0.0, np.array([size, 0.0]))
    )
    assert examine(staying, case).outcome is Outcome.FAILS


@pytest.mark.parametrize("gate", [True, False])
def test_critical_points_that_are_bayes_are_no_saddles(gate):
    case = two_classes()
    points = [bayes_matrices(classes(case), np.random.default_rng(0), gate=gate)]
    outcome = examine(get_claim("large-prompt/discriminant-saddles").about(points), case)
    assert outcome.outcome is Outcome.FAILS and abs(outcome.measured.value) < 1e-6


def test_critical_points_that_are_not_bayes_are_found_close_to_its_risk():
    details = found("discriminant-saddles", two_classes()).measured.details
    excess = details["risks above that of Bayes"]
    assert excess[0] < 0.01 and excess[-1] == pytest.approx(0.2145, abs=1e-4)
    assert details["largest norm of v21"] < 1e-6
