import numpy as np
import pytest
import scipy.stats

from attractor.prompts.finite_length.averages import ScoreVariance

SPECTRA = {
    "one": [0.3],
    "equal": np.full(20, 0.05),
    "two scales": [1.0, 1e-4],
    "wide": np.geomspace(1e-9, 1, 12),
    "singular": [1.0, 0.0, 0.0],
    "one above many": [*np.full(100, 0.01), 1.0],
    "many": np.full(300, 1.0),
    "huge": [1e12, 3e11],
    "tiny": [1e-9, 5e-10],
}


@pytest.mark.parametrize("name", SPECTRA)
def test_means_of_exponentials_are_those_in_closed_form(name):
    variances = np.array(SPECTRA[name])
    law = ScoreVariance.of(variances, 1e-15)
    for rate in np.array([0.5, 5.0, -0.1]) / variances.sum():
        weighted = law.weights * np.exp(-rate * law.deviations[:, None] ** 2)
        values, factors = weighted.ravel(), law.factors.reshape(len(variances), -1)
        bases = 1 + 2 * rate * variances
        mean = np.prod(bases**-0.5)
        assert values.sum().real == pytest.approx(mean, rel=3e-9)
        np.testing.assert_allclose((factors @ values).real, mean / bases, rtol=1e-8)
        seen = variances > 1e-6 * variances.max()  # the rest moves nothing
        sloped = (factors @ (-law.transform.ravel() * values)).real / -rate
        np.testing.assert_allclose(sloped[seen], (mean / bases)[seen], rtol=1e-6)


@pytest.mark.parametrize("degrees", [1, 2, 7])
def test_equal_variances_have_the_law_of_chi(degrees):
    law = ScoreVariance.of(np.full(degrees, 4.0), 1e-15)
    for power in (1, 4):
        found = (law.masses * law.deviations**power).sum()
        assert found == pytest.approx(2**power * scipy.stats.chi.moment(power, degrees), rel=1e-9)


def test_a_form_that_vanishes_has_all_its_mass_at_zero():
    law = ScoreVariance.of(np.zeros(3), 1e-12)
    assert law.deviations[-1] < 1e-5
    assert law.masses.sum() == pytest.approx(1, rel=1e-9)


def test_wide_scores_resolve_functions_of_narrow_ones():
    law = ScoreVariance.of(np.array([1e6]), 1e-15)
    x, masses = np.polynomial.legendre.leggauss(40)
    edges = np.concatenate([[0.0], np.geomspace(0.1, 9e3, 24)])
    half = np.diff(edges)[:, None] / 2
    s, weight = (edges[:-1, None] + half * (x + 1)).ravel(), (half * masses).ravel() / 1e3
    weight *= 2 * scipy.stats.norm.pdf(s / 1e3)
    for f in (lambda s: 1 / (1 + s), lambda s: np.tanh((s - 10) / 2)):
        assert law.masses @ f(law.deviations) == pytest.approx(weight @ f(s), rel=1e-9)
