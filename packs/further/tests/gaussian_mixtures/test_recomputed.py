"""Claims on heads computed again from their definitions, sharing the arrays of the data alone."""

import mpmath
import numpy as np
import pytest
import scipy.optimize

from attractor.papers import examine, get_claim


def found(name):
    claim = get_claim(f"gaussian-mixtures/{name}")
    case = claim.example()
    return case, examine(claim, case)


def law(case):
    """Weights, means and covariances of the mixture that tokens are drawn from."""
    return [
        (float(weight), np.asarray(part.mean), np.asarray(part.covariance))
        for weight, part in zip(case.tokens.weights, case.tokens.components, strict=True)
    ]


def moments(mean, variance, exponent):
    """Integrals of ``exp(f(x))`` and ``x exp(f(x))`` against a normal density on the line."""
    mean, variance = mpmath.mpf(float(mean)), mpmath.mpf(float(variance))
    if not variance:
        return [mpmath.exp(exponent(mean)), mean * mpmath.exp(exponent(mean))]
    scale = mpmath.sqrt(variance)

    def density(x):
        return mpmath.exp(exponent(x) - (x - mean) ** 2 / (2 * variance))

    ends = [mean + scale * steps for steps in (-25, -8, 0, 8, 25)]
    both = mpmath.quad(lambda x: density(x) * mpmath.mpc(1, x), ends, method="gauss-legendre")
    both /= scale * mpmath.sqrt(2 * mpmath.pi)
    return [both.real, both.imag]


def reweighted_mean(mixture, exponents):
    """The mean of a mixture with independent coordinates, reweighted by ``exp(sum f_i(x_i))``."""
    total, sums = mpmath.mpf(0), [mpmath.mpf(0)] * len(exponents)
    for weight, mean, variances in mixture:
        parts = [moments(*each) for each in zip(mean, variances, exponents, strict=True)]
        mass = weight * mpmath.fprod(zeroth for zeroth, _ in parts)
        total += mass
        sums = [s + mass * first / zeroth for s, (zeroth, first) in zip(sums, parts, strict=True)]
    return np.array([float(s / total) for s in sums])


def attention(case, U, V, query):
    """``V int x exp(x^T U z) dmu(x) / int exp(x^T U z) dmu(x)``, by integrals on lines."""
    mixture = [(weight, mean, np.diag(covariance)) for weight, mean, covariance in law(case)]
    slopes = [mpmath.mpf(float(slope)) for slope in U @ query]
    return V @ reweighted_mean(mixture, [lambda x, a=a: a * x for a in slopes])


@pytest.mark.parametrize("name", ["residual-denoiser", "linear-attention-gap", "one-head-gap"])
def test_data_of_denoising_are_two_clusters_seen_with_noise(name):
    (_, first, covariance), (_, second, other) = law(
        get_claim(f"gaussian-mixtures/{name}").example()
    )
    assert np.array_equal(first, [3, 0]) and np.array_equal(second, [0, 3])
    assert np.array_equal(covariance, 5 * np.eye(2)) and np.array_equal(other, covariance)


def test_residual_denoiser():
    # Points are of deviation 1 around (3, 0) or (0, 3), and seen with noise of deviation 2.
    case, finding = found("residual-denoiser")
    off, off_with_half = [], []
    for z in case.queries.sample(16, seed=0):
        likely = [lambda x, seen=float(seen): -((seen - x) ** 2) / 8 for seen in z]
        points = [(weight, mean, np.ones(2)) for weight, mean, _ in law(case)]
        posterior = reweighted_mean(points, likely)
        head = attention(case, np.eye(2) / 5, 4 / 5 * np.eye(2), z)
        off.append(np.abs(head + z - 8 / 5 * z - posterior).max())
        off_with_half.append(np.abs(head + z - 4 / 5 * z - posterior).max())
    assert max(off) < 1e-12 and finding.measured.value < 1e-12
    length = np.sqrt(3**2 + 2 * 5)  # root mean square of what is seen
    assert max(off_with_half) / length == pytest.approx(finding.control.value, abs=1e-12)


def test_log_odds_of_two_classes():
    # Classes at (1, 0) and (0, 1) of covariance I and odds 3 : 2, with w = (1, -1), b = log(3/2).
    # With U11 = -w w^T / 2, v21 = -w and u12 = w / 2 the gate stays at 3/5, and the score is
    # w^T x + 1 - v22 + (2 v22 - 2) 3/5.
    case, finding = found("bayes-discriminant")
    (_, first, covariance), (_, second, _) = law(case)
    assert np.array_equal(first, [1, 0, 1]) and np.array_equal(second, [0, 1, -1])
    assert np.array_equal(covariance, np.diag([1, 1, 0]))
    w = np.array([1.0, -1.0])
    U, V = np.zeros((3, 3)), np.append(-w, 1 + 5 * np.log(1.5))
    U[:2, :2], U[2, :2] = -np.outer(w, w) / 2, w / 2
    labels = np.array([1.0, 1.0, 0.0])
    off, off_without = [], []
    for x in case.queries.sample(8, seed=0):
        log_odds = x[:2] @ w + np.log(1.5)
        off.append(abs(attention(case, U, V, x) - log_odds))
        off_without.append(abs(attention(case, labels[:, None] * U, V * labels, x) - log_odds))
    assert max(off) < 1e-12 and finding.measured.value < 1e-12
    assert max(off_without) == pytest.approx(finding.control.value, abs=1e-12)


def test_risk_far_away():
    # On the same classes, with w = 0, the score depends on u = w*^T x alone, which is N(1, 2) for
    # the label 1 and N(-1, 2) for the label -1.
    _, finding = found("discriminant-escape")
    r = mpmath.mpf(3) * 10**4  # times the most that u^2 is on average in a class

    def risk(score):
        losses = [
            moments(
                sign, 2, lambda u, sign=sign: mpmath.log(mpmath.log1p(mpmath.exp(-sign * score(u))))
            )[0]
            for sign in (1, -1)
        ]
        return (3 * losses[0] + 2 * losses[1]) / 5

    def gated(slope):
        odds = mpmath.log(mpmath.mpf(3) / 2)
        return lambda u: (
            odds + r * (1 / (1 + mpmath.exp(-odds - u / (slope * r))) - mpmath.mpf(3) / 5)
        )

    with mpmath.workdps(30):
        bayes = risk(lambda u: u + mpmath.log(mpmath.mpf(3) / 2))
        excess, too_flat = (risk(gated(slope)) - bayes for slope in (mpmath.mpf(6) / 25, 1))
    assert finding.measured.value == pytest.approx(float(excess), rel=1e-4)
    assert finding.control.value == pytest.approx(float(too_flat), rel=1e-10)


def test_gaps_of_linear_attention_and_of_one_head():
    # Trapezoidal sums over what is seen, ten deviations wide, where the claims take 24 nodes of
    # Gauss and Hermite along an axis, which leave 1e-8; the values by normal equations.
    _, linear = found("linear-attention-gap")
    _, one = found("one-head-gap")
    axis = np.arange(-22.0, 26.0, 0.5)
    seen = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    means = np.array([[3.0, 0.0], [0.0, 3.0]])
    densities = np.exp(-((seen[:, None] - means) ** 2).sum(-1) / 10)
    weights = densities.sum(-1) / densities.sum()
    gates = densities[:, :1] / densities.sum(-1, keepdims=True)
    posterior = seen / 5 + 4 / 5 * (gates * means[0] + (1 - gates) * means[1])

    def missed(features):
        moment = features.T @ (weights[:, None] * features)
        values = np.linalg.solve(moment, features.T @ (weights[:, None] * posterior))
        # Gates move E[X | Z] from its middle by 4/5 of half the distance of the means.
        return weights @ ((features @ values - posterior) ** 2).sum(-1) / ((4 / 5) ** 2 * 18 / 4)

    def of_scores(entries):
        a = seen @ entries.reshape(2, 2).T
        own = 1 / (1 + np.exp(-a @ (means[0] - means[1])))[:, None]
        return missed(own * means[0] + (1 - own) * means[1] + 5 * a)

    assert linear.measured.value == pytest.approx(missed(seen), rel=1e-7)
    tight = {"xatol": 1e-6, "fatol": 1e-12, "maxiter": 4000}
    best = scipy.optimize.minimize(
        of_scores, [0.3, -0.1, 0.1, 0.1], method="Nelder-Mead", options=tight
    )
    assert one.measured.value == pytest.approx(best.fun, rel=1e-6)
