import numpy as np
import pytest
import safetensors.numpy


@pytest.fixture
def make(rng):
    """Makes the arrays of a file as they were before scores and starts: labels and a head."""

    def arrays(lead=()):
        return {
            "keys": rng.normal(size=(*lead, 3, 4, 5)),
            "queries": rng.normal(size=(*lead, 3, 2)),
            "labels": rng.choice([-1.0, 1.0], size=(*lead, 3)),
            "head": rng.normal(size=(*lead, 5)),
            "mask": np.arange(4) < rng.integers(2, 5, size=(*lead, 3, 1)),
        }

    return arrays


@pytest.fixture(params=[".npz", ".safetensors"])
def suffix(request):
    return request.param


@pytest.fixture
def write(tmp_path):
    """Writes arrays and texts as a user would, without this library."""

    def save(given, suffix=".npz", **texts):
        path = tmp_path / f"a{suffix}"
        given = {name: np.asarray(array) for name, array in given.items() if array is not None}
        if suffix == ".npz":
            np.savez(path, **given, **texts)
        else:
            safetensors.numpy.save_file(given, path, metadata=texts or None)
        return path

    return save
