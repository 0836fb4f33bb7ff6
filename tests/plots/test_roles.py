from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from attractor import InvalidInputError, plots
from attractor.plots.design.roles import SEQUENCES, tint

TOGETHER = [
    ("frobenius", "nuclear"),
    ("train_W", "train_KQ"),
    ("train_p", "train_v", "relaxed"),
    ("globally_optimal", "locally_optimal", "neither", "not_settled"),
    ("exact", "as_published"),
    ("measured", "predicted"),
    ("measured", "fitted"),
    ("logistic", "exponential", "linear"),
    ("optimal", "confused", "non_optimal", "non_comparable"),
    ("feed_forward", "attention"),
    ("l_1.1", "l_1.75", "l_2", "l_3"),
    ("l_1", "l_1.5", "l_2", "l_4", "l_inf"),
]

# Machado, Oliveira and Fernandes 2009, severity 1, on linear sRGB.
VISION = {
    "ordinary": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def lab(color, vision="ordinary"):
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISION[vision]) @ linear, 0, 1)
    x, y, z = np.cbrt(TO_XYZ @ seen / np.array([0.9505, 1, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(first, second, vision):
    return np.linalg.norm(lab(first, vision) - lab(second, vision))


def test_the_scale_of_differences_is_that_of_cielab():
    np.testing.assert_allclose(lab("white"), [100, 0, 0], atol=0.1)
    np.testing.assert_allclose(lab("red"), [53.2, 80.1, 67.2], atol=0.2)
    assert difference("#ff0000", "#7f6f00", "deuteranopia") < 25  # red and olive are confused


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("together", TOGETHER, ids=" ".join)
def test_readers_of_any_color_vision_tell_apart_what_is_drawn_together(together, vision):
    for first, second in combinations(together, 2):
        colors = plots.line_style(first)["color"], plots.line_style(second)["color"]
        assert difference(*colors, vision) > 15, (first, second)


@pytest.mark.parametrize("together", TOGETHER, ids=" ".join)
def test_a_gray_copy_tells_them_apart_by_dash_or_by_brightness(together):
    for first, second in combinations(together, 2):
        one, other = plots.role_of(first), plots.role_of(second)
        brightness = abs(lab(one.color)[0] - lab(other.color)[0])
        assert one.dash != other.dash or brightness > 20, (first, second)
        assert one.marker != other.marker or brightness > 20, (first, second)


@pytest.mark.parametrize("vision", VISION)
def test_a_path_stands_out_from_the_ray_that_it_ends_on(vision):
    for role in ("train_W", "train_KQ", "train_p", "train_v", "l_1.75", "l_3"):
        color = plots.line_style(role)["color"]
        assert difference(color, tint(color), vision) > 20


def test_sequences_are_told_apart_by_marker_and_by_color():
    assert len({marker for _, marker in SEQUENCES}) == len(SEQUENCES)
    assert len({color for color, _ in SEQUENCES}) == len(SEQUENCES)


def test_the_norm_with_exponent_two_is_the_frobenius_norm():
    assert plots.line_style("l_2") == plots.line_style("frobenius")
    assert plots.role_of("l_3").label == r"$\ell_{3}$ solution"
    assert plots.role_of("l_inf").label == r"$\ell_{\infty}$ solution"


def test_other_exponents_darken_with_p():
    brightness = [
        lab(plots.line_style(f"l_{p}")["color"])[0] for p in (1, 1.2, 1.5, 2.5, 4, 8, "inf")
    ]
    assert np.all(np.diff(brightness) < 0)


def test_line_properties_can_be_changed():
    assert plots.line_style("train_W", linewidth=3)["linewidth"] == 3
    assert plots.line_style("train_W", color="red")["color"] == "red"


@pytest.mark.parametrize("name", ["frobenious", "spectral", "l_0.5", ""])
def test_what_has_no_look_is_refused_with_those_that_have(name):
    with pytest.raises(InvalidInputError, match=r"role.*frobenius, nuclear.*l_p"):
        plots.role_of(name)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_looks_of_an_ordered_parameter_go_from_light_to_dark(count):
    looks = plots.ordered_line_styles(count)
    brightness = [lab(one["color"])[0] for one in looks]
    assert np.all(np.diff(brightness) < 0)
    assert len({one["marker"] for one in looks}) == count


def test_tints_are_about_as_light_as_each_other_and_white_stays_white():
    weights = (0.299, 0.587, 0.114)
    for role in ("frobenius", "nuclear", "predicted"):
        assert np.dot(to_rgb(tint(plots.line_style(role)["color"])), weights) == pytest.approx(
            0.74, abs=0.01
        )
    assert tint("#ffffff") == "#ffffff"
    assert tint("#000000", 0.5) == to_hex((0.5, 0.5, 0.5))
