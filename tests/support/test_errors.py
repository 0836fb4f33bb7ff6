import errno
import os
import pickle

import pytest

from attractor.support.errors import InvalidInputError, WriteError


def test_errors_come_back_whole_from_another_process():
    error = InvalidInputError("tolerance", "it is 0", "Give a number between 0 and 1")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InvalidInputError
    assert str(again) == str(error)
    assert again.remedy == error.remedy
    with pytest.raises(ValueError, match="tolerance: it is 0"):
        raise again


def test_a_failed_write_comes_back_whole_from_another_process():
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    again = pickle.loads(pickle.dumps(WriteError("results.nc", full)))
    assert str(again) == str(WriteError("results.nc", full))
    assert (again.path, again.errno) == ("results.nc", errno.ENOSPC)
