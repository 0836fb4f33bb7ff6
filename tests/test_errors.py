import pickle

import pytest

from attractor.errors import InvalidInputError


def test_errors_come_back_whole_from_another_process():
    error = InvalidInputError("tolerance", "it is 0", "Give a number between 0 and 1")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InvalidInputError
    assert str(again) == str(error)
    assert again.remedy == error.remedy
    with pytest.raises(ValueError, match="tolerance: it is 0"):
        raise again
