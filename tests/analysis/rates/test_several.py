import json

import numpy as np
import pytest
import xarray as xr

from attractor.analysis import Rates, fit_rates
from attractor.support.errors import InvalidInputError, TrialStatus

STEPS = np.unique(np.rint(np.geomspace(1, 10_000, 60)))
CURVED = np.exp(-STEPS / 2000)


def noisy(rng, curves, level=0.05):
    return curves * np.exp(level * rng.normal(size=curves.shape))


@pytest.fixture
def curves(rng):
    """Three instances with two seeds that obey every law, one of them frozen, one without D."""
    log_time = 0.5 * STEPS * np.linspace(1, 1.2, 3)[:, None, None] * np.ones((1, 2, 1))
    solution_norm = np.array([2.0, 3.0, 5.0])[:, None] * np.ones((1, 2))
    error = noisy(rng, 3 / log_time**2, 0.01)
    dims = ("instance", "seed", "step")
    data = xr.Dataset(
        {
            "margin_ratio": (dims, 1 - error),
            "directional_bregman_divergence": (dims, error.copy()),
            "norm": (dims, solution_norm[..., None] * log_time),
            "log_time": (dims, log_time),
            "loss": (dims, 0.4 + error),
            "log_unselected_probability": (dims, 1 - log_time),
            "solution_norm": (dims[:2], solution_norm),
            "status": (dims[:2], np.full((3, 2), int(TrialStatus.TRAINED))),
        },
        coords={"instance": [4, 5, 6], "seed": [0, 1], "step": STEPS},
    )
    data["status"][0, 1] = int(TrialStatus.STATIONARY)
    data["directional_bregman_divergence"][2, 0] = np.nan
    return data


def test_each_quantity_is_fitted_with_the_law_of_its_abscissa(curves):
    rates = fit_rates(curves)
    expected = {
        ("margin_ratio", "step"): -2,
        ("margin_ratio", "log_time"): -2,
        ("margin_ratio", "norm"): -2,
        ("norm", "step"): 1,
        ("norm", "log_time"): 1,  # relative to the norm of the solution
        ("log_unselected_probability", "log_time"): -1,
        ("directional_bregman_divergence", "log_time"): -2,
    }
    for name, slope in expected.items():
        assert rates[name].settled, name
        assert rates[name].slope == pytest.approx(slope, abs=0.02), name
    assert ("norm", "norm") not in rates.by_name
    assert rates["margin_ratio", "log_time"].unit_name == "instances"


def test_frozen_trials_are_left_out_and_counted(curves):
    rates = fit_rates(curves, against="step")
    assert rates["norm", "step"].left_out == {"terminated before the end": 1}
    left_out = rates["directional_bregman_divergence", "step"].left_out
    assert left_out == {"terminated before the end": 1, "not finite": 1}
    assert fit_rates(curves.drop_vars("status"), against="step")["norm", "step"].trials == 6


def test_rates_print_as_a_table_without_the_numbers_that_have_not_settled(curves):
    curves["loss"] = curves["loss"] * 0 + np.exp(-curves["step"] / 2000)
    rates = fit_rates(curves, against=["step", "log_time"])
    text = str(rates)
    assert max(map(len, text.splitlines())) <= 80
    assert "not settled" in text
    assert "left out 1: 1 terminated before the end" in text.replace("\n", " ")
    assert "(log k)^a" in text
    assert not rates["loss", "step"].settled
    assert f"{rates['loss', 'step'].parts['whole window'].mean:.2f}" not in text
    assert "not settled" in rates._repr_html_()
    assert len(list(rates)) == len(rates)


def test_labeled_rates_survive_a_file(curves, tmp_path):
    rates = fit_rates(curves)
    data = rates.to_xarray()
    assert data.sizes == {"rate": len(rates), "part": 3}
    data.to_netcdf(tmp_path / "rates.nc", engine="h5netcdf")
    again = xr.load_dataset(tmp_path / "rates.nc")
    np.testing.assert_array_equal(again["slope"], [rate.slope for rate in rates])
    one = rates["norm", "log_time"].to_xarray()
    one.to_netcdf(tmp_path / "rate.nc", engine="h5netcdf")
    assert json.loads(json.dumps(xr.load_dataset(tmp_path / "rate.nc").attrs["outcome"]))


def test_curves_of_one_trial_need_no_axes_of_trials(curves):
    one = curves.isel(instance=0, seed=0, drop=True)
    rates = fit_rates(one, against="step", quantities=["margin_ratio"])
    assert isinstance(rates, Rates)
    assert rates["margin_ratio", "step"].unit_name == "points"


def test_curves_along_a_radius(curves):
    along = curves.rename(step="radius")
    rates = fit_rates(along, against="radius")
    assert rates["margin_ratio", "radius"].slope == pytest.approx(-2, abs=0.02)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quantities": ["accuracy"]}, "quantities"),
        ({"against": "radius"}, "against"),
        ({"against": "norm", "quantities": ["norm"]}, "quantities"),
    ],
)
def test_names_that_are_not_there_are_refused(curves, options, words):
    with pytest.raises(InvalidInputError, match=words):
        fit_rates(curves, **options)


def test_data_without_an_axis_is_refused():
    with pytest.raises(InvalidInputError, match="curves"):
        fit_rates(xr.Dataset({"loss": ("place", np.ones(4))}))


def test_the_excess_loss_takes_the_place_of_the_loss(curves):
    assert ("loss", "step") in fit_rates(curves).by_name
    curves["log_excess_loss"] = curves["log_unselected_probability"]
    rates = fit_rates(curves)
    assert ("loss", "step") not in rates.by_name
    assert rates["log_excess_loss", "log_time"].slope == pytest.approx(-1, abs=0.02)
    assert ("loss", "step") in fit_rates(curves, quantities=["loss"]).by_name


def test_curves_without_a_clock_are_fitted_over_what_there_is(curves):
    rates = fit_rates(curves.drop_vars("log_time"))
    assert {name for _, name in rates.by_name} == {"step", "norm"}
