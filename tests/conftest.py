import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Compiling is most of what the tests take, and optimizing most of compiling. The paper-size runs
# are optimized: `make test-slow` sets this to 0.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

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
