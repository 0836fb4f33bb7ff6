"""Half-way points and widths: on exact probabilities, on draws from them, and on jumps."""

import math

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from attractor.maps.sweeps import transition
from attractor.support.errors import InvalidInputError


def averages(shares, count, sizes, seeds=1, **coordinates):
    shares = np.asarray(shares, dtype=float)
    dims = ("set", "n")[-shares.ndim :]
    return xr.Dataset(
        {"mean": (dims, shares), "measured": (dims, np.broadcast_to(count, shares.shape))},
        {"n": sizes, **coordinates},
        {"kind": "probability", "confidence": 0.95, "seeds": seeds},
    )


def cover(sizes, unknowns):
    """Probabilities that a vector of that many unknowns separates n points, by Cover's theorem."""
    return [binom.cdf(unknowns - 1, n - 1, 0.5) for n in sizes]


def test_pairs_have_their_half_way_point_at_twice_the_unknowns():
    """Cover's probabilities are, in log n, nearly normal with mean log 2N and width 1/sqrt(2N)."""
    for unknowns, sizes, near in (
        (16, range(16, 60, 4), 0.04), (256, range(440, 600, 16), 0.005),
    ):  # fmt: skip
        found = transition(averages(cover(sizes, unknowns), 1000, [*sizes]), "n", scale="log")
        assert float(found["half"]) == pytest.approx(2 * unknowns, rel=2e-3)
        assert float(found["width"]) == pytest.approx(1 / math.sqrt(2 * unknowns), rel=near)
        assert found["half_low"] < 2 * unknowns < found["half_high"]
        assert not found["rises"]


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say(rng):
    sizes, trials = np.arange(20, 48, 4), 60
    shares = rng.binomial(20, cover(sizes, 16), size=(trials, len(sizes))) / 20
    found = transition(averages(shares, 20, sizes), "n", scale="log")
    for name, truth in (("half", 32), ("width", 1 / math.sqrt(32))):
        held = (found[f"{name}_low"] <= truth) & (truth <= found[f"{name}_high"])
        assert 0.85 < float(held.mean())
    chance = float((found["half_high"] - found["half_low"]).mean()) / 3.92
    assert float(found["half"].std()) == pytest.approx(chance, rel=0.35)


def test_a_transition_may_rise_and_its_axis_may_lie_anywhere():
    from scipy.special import ndtr

    x = np.linspace(-1e6, 3e6, 9)
    shares = ndtr((x - 7e5) / 4e5)
    found = transition(averages(shares, 50, x), "n")
    assert float(found["half"]) == pytest.approx(7e5, rel=1e-4)
    assert float(found["width"]) == pytest.approx(4e5, rel=1e-4)
    assert found["rises"] == 1
    turned = transition(averages(shares[::-1], 50, x), "n")
    assert float(turned["half"]) == pytest.approx(2e6 - 7e5, rel=1e-4)
    assert turned["rises"] == 0


def test_a_jump_has_no_width_and_lies_between_the_points_it_parts():
    found = transition(averages([1, 1, 1, 0, 0, 0], 10, np.arange(6.0)), "n")
    assert [float(found[name]) for name in ("half", "width", "width_low")] == [2.5, 0, 0]
    assert float(found["half_low"]) == pytest.approx(2, abs=0.01)
    assert float(found["half_high"]) == pytest.approx(3, abs=0.01)
    wider = transition(averages([1, 1, 1, 0, 0, 0], 2, np.arange(6.0)), "n")
    assert 0 < float(found["width_high"]) < float(wider["width_high"])
    through = transition(averages([1, 1, 0.5, 0, 0], 10, np.arange(5.0)), "n")
    assert float(through["half"]) == 2 and float(through["width"]) == 0


def test_what_the_data_do_not_bound_is_infinite_or_missing():
    weak = transition(averages([0.9, 0.8, 0.9, 0.8], 10, np.arange(4.0)), "n")
    assert float(weak["half_high"]) == math.inf and float(weak["half_low"]) < 100
    constant = transition(averages([1.0, 1.0, 1.0], 10, np.arange(3.0)), "n")
    assert all(np.isnan(float(constant[name])) for name in ("half", "half_low", "width_high"))
    assert constant["rises"] == -1


def test_points_without_trials_are_left_out_and_seeds_are_no_trials_of_their_own():
    shares, sizes = np.array([1, 0.9, 0.4, 0.1, np.nan]), np.arange(5.0)
    counts = np.array([20, 20, 20, 20, 0])
    found = transition(averages(shares, counts, sizes), "n")
    alone = transition(averages(shares[:4], 20, sizes[:4]), "n")
    assert float(found["half"]) == pytest.approx(float(alone["half"]), rel=1e-5)
    several = transition(averages(shares, counts * 3, sizes, seeds=3), "n")
    assert float(several["half_high"]) == pytest.approx(float(found["half_high"]), rel=1e-6)


def test_places_may_depend_on_another_axis():
    shares = np.array([[1, 0.7, 0.2, 0], [1, 0.7, 0.2, 0]])
    places = ("set", "n"), np.array([[1.0, 2, 3, 4], [10.0, 20, 30, 40]])
    data = averages(shares, 30, [0.5, 1, 1.5, 2], set=[4, 8], size=places)
    found = transition(data, "n", positions="size")
    assert found["half"].dims == ("set",) and found["set"].values.tolist() == [4, 8]
    assert float(found["half"][1]) == pytest.approx(10 * float(found["half"][0]), rel=1e-4)


def test_refusals():
    data = averages([1, 0.5, 0], 10, [0.0, 1.0, 2.0])
    with pytest.raises(InvalidInputError, match="numbers"):
        transition(data.assign_attrs(kind="number"), "n")
    with pytest.raises(InvalidInputError, match="along"):
        transition(data, "m")
    with pytest.raises(InvalidInputError, match="positions"):
        transition(data, "n", positions="size")
    with pytest.raises(InvalidInputError, match="not positive"):
        transition(data, "n", scale="log")
    with pytest.raises(InvalidInputError, match="averages"):
        transition(data["mean"], "n")  # pyright: ignore[reportArgumentType]
