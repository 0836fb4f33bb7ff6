import numpy as np
import pytest
import xarray as xr

import attractor as at
from attractor.maps.basins import BasinMap, basin_map, basin_shares
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.training import train


def trained(data, step, starts, steps):
    run = train(
        *data, step, steps=steps, seeds=len(starts), initial=starts[None],
        parameterization="p", record=[steps],
    )  # fmt: skip
    return run.data["attended"].values[0, :, 0, ..., 0], run.W()[0]


def cells(data):
    grid = np.meshgrid(data["first"].values, data["second"].values)
    return np.stack(grid, axis=-1).reshape(-1, 2)


@pytest.mark.long
def test_every_cell_has_the_selection_that_long_training_ends_on(three_tokens, step, plane_map):
    data = plane_map.data
    assert data["basin"].dims == ("second", "first")
    assert data["basin"].shape == (12, 14)
    np.testing.assert_allclose(data["first"].values[[0, -1]], [-3 + 3 / 14, 3 - 3 / 14])
    end, _ = trained(three_tokens, step, cells(data), 20_000)
    selected = data["token"].values[data["basin"].values.ravel()]
    assert (data["basin"].values >= 0).all()
    np.testing.assert_array_equal(selected[:, :, 0], end)


def test_it_knows_what_it_found(plane_map):
    data = plane_map.data
    assert data["selection"].values.tolist() == ["0", "1"]  # the globally optimal one first
    np.testing.assert_allclose(data["solution"].values[0, :, 0], [-0.1 / 1.01, 1 / 1.01])
    np.testing.assert_allclose(data["solution"].values[1, :, 0], [1, 0], atol=1e-12)
    np.testing.assert_allclose(data["solution_norm"], [1.01**-0.5, 1])
    assert data["locally_optimal"].values.tolist() == [True, True]
    assert data["globally_optimal"].values.tolist() == [True, False]
    assert float(data["correlation"].median()) > 0.999
    assert (data["margin_ratio"] <= 1 + 1e-9).all()


def test_saturated_is_not_settled(three_tokens, step):
    near = {"plane": ((1, 0), (0, 1)), "center": (0, -0.8697), "parameterization": "p"}
    options = near | {"extent": 1e-3, "resolution": (1, 5), "steps": 500}
    short = basin_map(*three_tokens, step, **options, most_steps=500).data
    assert (short["smallest_weight"] > 0.99).all()
    assert (short["attended"] == 1).all()  # but most of them will leave it
    assert (short["basin"] == -1).all()
    long = basin_map(*three_tokens, step, **options, most_steps=8000).data
    assert set(long["basin"].values.ravel()) == {0, 1}
    assert ((long["steps"] > 500) & (long["steps"] <= 8000)).all()
    end, _ = trained(three_tokens, step, np.array([0, -0.8697]) + cells(long), 8000)
    np.testing.assert_array_equal(long["attended"].values.reshape(-1, 1), end)


@pytest.mark.parametrize("remembers", [False, True])
def test_following_on_gives_the_numbers_of_one_long_run(three_tokens, step, remembers):
    chosen = at.normalized_momentum(0.1, 0.5) if remembers else step
    starts = np.array([[0, -0.8697], [0, 1.0], [0, -0.87], [1, -1]])
    found = basin_shares(
        *three_tokens, chosen, starts=4, sampler=lambda random, count: starts,
        parameterization="p", steps=300,
    ).data  # fmt: skip
    assert len(set(found["steps"].values.tolist())) > 1
    for steps in set(found["steps"].values.tolist()):
        _, W = trained(three_tokens, chosen, starts, int(steps))
        chosen_ones = found["steps"].values == steps
        np.testing.assert_array_equal(found["final"].values[chosen_ones], W[chosen_ones])


def test_runs_at_a_finite_point_never_settle(make, step, tmp_path):
    # The best tokens lie between the others, so that no prompt singles them out.
    between = make([[[0, 0], [1, 0], [-1, 0]], [[0, 0], [0, 1], [0, -1]]], [[1, 0, 0], [1, 0, 0]])
    found = basin_map(*between, step, parameterization="p", resolution=4, most_steps=2000)
    assert (found.data["basin"] == -1).all()
    assert found.data.sizes["selection"] == 0
    assert "not settled" in str(found) and "100.0 %" in str(found)
    found.save(tmp_path / "none.nc")
    xr.testing.assert_identical(BasinMap.load(tmp_path / "none.nc").data, found.data)


def test_a_plane_of_matrices(step):
    tokens, heads = at.datasets.unit_tokens(2, 3, 2, seeds=[3])
    data = (tokens[0], at.LinearHead(heads.weight[0]))
    u, v, center = np.eye(2), np.array([[0, 1], [-1, 0]]), np.array([[0.5, 0], [0, -0.5]])
    found = basin_map(
        *data, step, plane=(u, v), center=center, extent=(-1, 3, -2, 2), resolution=(4, 3)
    ).data
    start = center + found["first"].values[3] * u + found["second"].values[1] * v
    steps = int(found["steps"][1, 3])
    run = train(*data, step, steps=steps, initial=start, record=[steps])
    end = run.data["attended"].isel(instance=0, seed=0, step=-1)
    np.testing.assert_array_equal(found["attended"].values[1, 3], end)
    assert found["basin"][1, 3] >= 0
    assert "keys" not in found


def test_saved_and_read_back(plane_map, tmp_path):
    plane_map.save(tmp_path / "map.nc")
    xr.testing.assert_identical(BasinMap.load(tmp_path / "map.nc").data, plane_map.data)
    with pytest.raises(InvalidInputError, match="path"):
        plane_map.save(tmp_path / "map.csv")
    (tmp_path / "other.nc").write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match="other"):
        BasinMap.load(tmp_path / "other.nc")
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "strange.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="no attractor basin map"):
        BasinMap.load(tmp_path / "strange.nc")


def test_it_prints(plane_map):
    lines = str(plane_map).splitlines()
    assert "168 starts" in lines[0]
    assert max(map(len, lines)) <= 80
    assert "globally" in plane_map._repr_html_()
    summary = plane_map.summary()
    parts = sum(one["part"] for one in summary["selections"])
    assert parts + summary["not_settled"] == pytest.approx(1)


def test_bad_input_is_refused_before_training(three_tokens, step):
    tokens, head = three_tokens
    two = at.Tokens(tokens.keys[None], tokens.queries[None], tokens.labels[None])
    cases = [
        ((two, at.LinearHead([1.0, 0])), {}, "tokens"),
        (three_tokens, {"plane": ((1, 0), (2, 0))}, "plane"),
        (three_tokens, {"plane": (1, 0, 0)}, "plane"),
        (three_tokens, {"plane": 3}, "plane"),
        (three_tokens, {"center": (1, 0, 0)}, "center"),
        (three_tokens, {"extent": -1}, "extent"),
        (three_tokens, {"extent": (0, 1)}, "extent"),
        (three_tokens, {"resolution": 0}, "resolution"),
        (three_tokens, {"resolution": (2, 2, 2)}, "resolution"),
        (three_tokens, {"most_steps": 10}, "most_steps"),
        (three_tokens, {"loss": "hinge"}, "loss"),
        (three_tokens, {"parameterization": "(v, W)"}, "parameterization"),
    ]
    for nouns, options, argument in cases:
        with pytest.raises(InvalidInputError, match=argument):
            basin_map(*nouns, step, **{"parameterization": "p", "resolution": 2} | options)
    with pytest.raises(InvalidInputError, match="optimizer"):
        basin_map(tokens, head, "ngd", parameterization="p")
    three_numbers = at.Tokens(np.eye(3)[None], np.ones((1, 1)), np.ones(1))
    with pytest.raises(InvalidInputError, match="3 entries"):
        basin_map(three_numbers, at.LinearHead([1.0, 0, 0]), step, parameterization="p")
