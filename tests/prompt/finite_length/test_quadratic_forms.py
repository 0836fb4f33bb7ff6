import numpy as np
import pytest
import scipy.stats

from attractor.prompt.finite_length.quadratic_forms import QuadraticForm

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
    law = QuadraticForm.of(variances, 1e-15)
    for rate in np.array([0.5, 5.0, -0.1]) / variances.sum():
        values = law.weights * np.exp(-rate * law.deviations**2)
        bases = 1 + 2 * rate * variances
        mean = np.prod(bases**-0.5)
        assert values.sum().real == pytest.approx(mean, rel=3e-9)
        np.testing.assert_allclose((law.factors @ values).real, mean / bases, rtol=1e-8)
        seen = variances > 1e-6 * variances.max()  # the rest moves nothing
        sloped = (law.factors @ (-law.transform * values)).real / -rate
        np.testing.assert_allclose(sloped[seen], (mean / bases)[seen], rtol=1e-6)


@pytest.mark.parametrize("degrees", [1, 2, 7])
def test_equal_variances_have_the_law_of_chi(degrees):
    law = QuadraticForm.of(np.full(degrees, 4.0), 1e-15)
    for power in (1, 4):
        found = (law.weights * law.deviations**power).sum().real
        assert found == pytest.approx(2**power * scipy.stats.chi.moment(power, degrees), rel=1e-9)


def test_a_form_that_vanishes_has_all_its_mass_at_zero():
    law = QuadraticForm.of(np.zeros(3))
    assert law.largest < 1e-5
    assert law.weights.sum().real == pytest.approx(1, rel=1e-9)
