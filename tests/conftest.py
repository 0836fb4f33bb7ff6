import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "attractor",
    deadline=None,
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("attractor")


@pytest.fixture
def rng():
    return np.random.default_rng(20231)
