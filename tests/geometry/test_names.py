import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral, get_geometry
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize(
    "name, geometry",
    [
        ("frobenius", Frobenius()),
        ("nuclear", Nuclear()),
        ("spectral", Spectral()),
        ("l_1", Lp(1)),
        ("l1", Lp(1)),
        ("l_1.5", Lp(1.5)),
        ("l1.5", Lp(1.5)),
        ("l_3.0", Lp(3)),
        ("l_inf", Lp(math.inf)),
        ("linf", Lp(math.inf)),
        ("l_2", Frobenius()),
        ("schatten_1", Nuclear()),
        ("schatten_1.5", Schatten(1.5)),
        ("schatten_2", Frobenius()),
        ("schatten_inf", Spectral()),
    ],
)
def test_geometries_by_name(name, geometry):
    assert get_geometry(name) == geometry


@pytest.mark.parametrize(
    "geometry, name",
    [
        (Lp(1), "l_1"),
        (Lp(1.1), "l_1.1"),
        (Lp(2.0), "frobenius"),
        (Lp(math.inf), "l_inf"),
        (Schatten(1), "nuclear"),
        (Schatten(1.5), "schatten_1.5"),
        (Schatten(2), "frobenius"),
        (Schatten(math.inf), "spectral"),
    ],
)
def test_names(geometry, name):
    assert geometry.name == name


@given(st.floats(1, 1e300) | st.just(math.inf), st.sampled_from([Lp, Schatten]))
def test_every_exponent_has_a_name_of_its_own(p, kind):
    geometry = kind(p)
    assert get_geometry(geometry.name) == geometry
    above = kind(np.nextafter(p, math.inf))
    assert (above == geometry) == (above.p == p)


@pytest.mark.parametrize(
    "name",
    ["", "l", "l_", "l_p", "lp", "l_nan", "l_-1", "l_1_5", "frobenious", "schatten", 3, None],
)
def test_unknown_names_are_told_the_known_ones(name):
    with pytest.raises(InvalidInputError, match=r"^geometry: .*frobenius, .*l_<p> .*spectral"):
        get_geometry(name)


@pytest.mark.parametrize("kind", [Lp, Schatten])
@pytest.mark.parametrize("p", [0.5, 0, -1, math.nan, -math.inf, "1", None, True, 1j, np.ones(2)])
def test_exponents_that_make_no_norm_are_refused(kind, p):
    with pytest.raises(InvalidInputError, match=r"^p: .*from 1 to inf"):
        kind(p)


@pytest.mark.parametrize("name", ["l_0.5", "l0", "schatten_0.99"])
def test_names_with_such_an_exponent_are_refused(name):
    with pytest.raises(InvalidInputError, match=r"^p: "):
        get_geometry(name)


@pytest.mark.parametrize("kind", [Lp, Schatten])
def test_exponents_of_any_number_type(kind):
    assert kind(np.float32(1.5)) == kind(np.float64(1.5)) == kind(1.5)
    assert kind(np.int64(3)) == kind(3)
