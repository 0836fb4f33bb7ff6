import json

import numpy as np
import pytest
import xarray as xr

import attractor as at
from attractor.maps.basins import BasinShares, basin_map, basin_shares
from attractor.support.errors import InvalidInputError
from attractor.training import train


def test_counts_are_those_of_the_starts(shares):
    data = shares.data
    assert data["outcome"].values.tolist() == ["0", "1", "not settled"]
    assert int(data["count"].sum()) == data.sizes["start"] == 150
    for place in range(2):
        assert int(data["count"][place]) == int((data["basin"] == place).sum()) > 0
    assert int(data["count"][-1]) == int((data["basin"] == -1).sum())
    np.testing.assert_allclose(data["share"], data["count"] / 150)


def test_intervals_are_wilson_s(shares):
    z = 1.959963984540054
    n = shares.data.sizes["start"]
    for name in ("0", "1", "not settled", "2"):
        q, low, high = shares.share(name)
        for end in (low, high):  # q is z standard deviations of a count from both ends
            assert (q - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, abs=1e-12)
        assert low <= q <= high and high - low > 0
    assert shares.share([[0]]) == shares.share("0")


def test_the_share_of_uniform_starts_is_the_area_of_the_map(three_tokens, step):
    options = {"parameterization": "p", "most_steps": 16_000}
    area = basin_map(*three_tokens, step, resolution=25, **options)
    drawn = basin_shares(
        *three_tokens, step, starts=400,
        sampler=lambda random, count: random.uniform(-3, 3, (count, 2)), **options,
    )  # fmt: skip
    part = float((area.data["basin"] == 0).mean())
    _, low, high = drawn.share("0")
    assert low < part < high
    assert 0.6 < part < 0.8


def test_default_starts_are_those_of_train(three_tokens, step):
    found = basin_shares(*three_tokens, step, starts=25, seed=7, parameterization="p").data
    run = train(*three_tokens, step, steps=1000, seeds=25, seed=7, parameterization="p", record=[0])
    np.testing.assert_array_equal(found["initial"], run.W(0)[0])
    first = found["steps"].values == 1000
    assert first.sum() > 20
    np.testing.assert_array_equal(found["final"].values[first], run.W()[0, first])


def test_the_same_seed_gives_the_same_numbers(three_tokens, step, shares):
    options = {"parameterization": "p", "starts": 150, "scale": 2.0}
    again = basin_shares(*three_tokens, step, **options)
    xr.testing.assert_identical(again.data, shares.data)
    other = basin_shares(*three_tokens, step, **options, seed=1)
    assert not np.array_equal(other.data["initial"], shares.data["initial"])
    assert float(np.std(shares.data["initial"])) == pytest.approx(2, rel=0.15)


def test_a_best_token_may_be_lost_for_good_and_ties_do_not_hide_it(two_rows, step):
    starts = np.array([[0, 0], [1, 0], [2, 0], [5, 0], [0, -5.0]])
    found = basin_shares(
        *two_rows, step, starts=5, sampler=lambda random, count: starts, parameterization="p"
    ).data
    assert found["selection"].values.tolist() == ["0,0", "0,1"]
    assert found["basin"].values.tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_allclose(found["solution"][1, :, 0], [1, 0], atol=1e-9)
    assert found["locally_optimal"].values.tolist() == [True, True]
    lost = at.Selection.from_index(two_rows[0], [0, 1])
    assert not at.check_local_optimality(*two_rows, lost).holds  # by the letter
    assert at.check_local_optimality(*two_rows, lost, ties="class").holds
    assert float(found["correlation"].min()) > 0.998


def test_copies_of_a_token_count_as_one(make, step):
    data = make([[[-0.1, 1], [-0.1, 1], [1, 0]]], [[1, 1, 0.9]])
    found = basin_shares(*data, step, starts=10, scale=1.0, parameterization="p").data
    assert found["selection"].values.tolist() == ["0"]
    assert (found["basin"] == 0).all()
    assert found["globally_optimal"].values.tolist() == [True]


def test_optimality_agrees_with_the_census(unit_data_set, step):
    data = unit_data_set(1)
    found = basin_shares(*data, step, starts=75, scale=10.0, parameterization="p").data
    assert found.sizes["selection"] > 2
    chosen = at.Selection.from_index(data[0], found["token"].values[..., 0])
    census = at.locally_optimal_selections(*data, selections=chosen)
    np.testing.assert_array_equal(found["locally_optimal"], census.locally_optimal)
    assert census.locally_optimal.all()
    np.testing.assert_allclose(found["solution_norm"], census.norms, rtol=1e-9)
    best = at.optimal_tokens(*data)
    expected = [chosen[i] == best for i in range(len(chosen.mask))]
    assert found["globally_optimal"].values.tolist() == expected


def test_saved_and_read_back(shares, tmp_path):
    shares.save(tmp_path / "shares.nc")
    again = BasinShares.load(tmp_path / "shares.nc")
    xr.testing.assert_identical(again.data, shares.data)
    shares.save(tmp_path / "shares.json")
    assert json.loads((tmp_path / "shares.json").read_text()) == again.summary()
    with pytest.raises(InvalidInputError, match="path"):
        shares.save(tmp_path / "shares.txt")


def test_it_prints(shares, three_tokens, step):
    lines = str(shares).splitlines()
    assert max(map(len, lines)) <= 80
    assert "Wilson" in str(shares) and "normal, 2" in str(shares)
    assert "globally" in shares._repr_html_()
    short = basin_shares(
        *three_tokens, step, starts=3, sampler=lambda random, count: np.full((3, 2), 1e-3),
        parameterization="p", steps=5, most_steps=5,
    )  # fmt: skip
    assert "3 have no token with 99 % in some row" in " ".join(str(short).split())


def test_bad_input_is_refused_before_training(three_tokens, step):
    cases = [
        ({"starts": 0}, "starts"),
        ({"confidence": 1.0}, "confidence"),
        ({"scale": -1.0}, "scale"),
        ({"scale": 1.0, "sampler": lambda random, count: None}, "scale"),
        ({"sampler": lambda random, count: np.zeros((count, 3))}, "sampler"),
        ({"sampler": lambda random, count: {"W": np.zeros((count, 2))}}, "sampler"),
        ({"seed": -1}, "seed"),
        ({"steps": 10, "most_steps": 5}, "most_steps"),
    ]
    for options, argument in cases:
        with pytest.raises(InvalidInputError, match=argument):
            basin_shares(*three_tokens, step, **{"parameterization": "p"} | options)
