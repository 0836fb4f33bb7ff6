import pytest
import runs

ALONG = (runs.trajectory, runs.path, runs.flow, runs.logarithmic_flow)


@pytest.fixture(params=ALONG, ids=lambda make: make.__name__)
def make_any(request):
    """Makes a run of attention along each axis that records may have."""
    return request.param


@pytest.fixture
def any_run(make_any):
    return make_any()


@pytest.fixture
def any_verdict(make_any):
    return runs.verdict(make_any)
