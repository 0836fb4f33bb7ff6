import numpy as np
import pytest
import xarray as xr

STEPS = np.unique(np.r_[0, np.geomspace(1, 3000, 40).astype(int)])


def verdict_data(instances=40, seed=0, speed=1.0):
    random = np.random.default_rng(seed)
    shortfall = np.minimum(
        1.6, speed * random.lognormal(0, 0.5, (instances, 1, 1)) / (1 + STEPS) ** 0.9
    )
    dims = ("instance", "seed", "step")
    norm = np.broadcast_to(1.0 + 10 * STEPS, shortfall.shape)
    log_mass = -0.02 * norm / (1 + shortfall) - 0.5
    return xr.Dataset(
        {
            "margin_ratio": (dims, 1 - shortfall),
            "correlation": (dims, 1 - shortfall**2 / 3),
            "norm": (dims, norm),
            "loss": (dims, 0.4 + 0.3 * shortfall),
            "selected_probability": (dims, -np.expm1(log_mass)),
            "log_unselected_probability": (dims, log_mass),
        },
        coords={"instance": np.arange(instances), "seed": [0], "step": STEPS},
    )


@pytest.fixture
def data():
    return verdict_data()
