import numpy as np
import pytest

from attractor.models import ClassificationData, Examples
from attractor.support.errors import InvalidInputError

IDS = np.arange(12).reshape(3, 4)
LABELS = np.array([0, 1, 1])


def test_lengths_become_a_mask():
    found = Examples.of_lengths(IDS, LABELS, np.array([4, 0, 2]))
    assert found.mask.tolist() == [[True] * 4, [False] * 4, [True, True, False, False]]
    assert len(found) == 3
    assert repr(found) == "Examples(3 of 4, masked)"


def test_arrays_are_kept_and_cannot_be_written_to():
    ids = IDS.copy()
    found = Examples(ids, [False, True, True])
    ids[:] = 0
    np.testing.assert_array_equal(found.inputs, IDS)
    assert found.labels.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        found.inputs[0, 0] = 1


@pytest.mark.parametrize(
    ("argument", "inputs", "labels", "mask"),
    [
        ("inputs", [[1, 2], [3]], LABELS, None),
        ("inputs", np.zeros((0, 4)), [], None),
        ("inputs", np.array([["a"] * 3] * 3), LABELS, None),
        ("inputs", np.full((3, 2), np.nan), LABELS, None),
        ("labels", IDS, LABELS[:2], None),
        ("labels", IDS, [0, 1, -1], None),
        ("labels", IDS, [0, 0.5, 1], None),
        ("labels", IDS, [0, np.nan, 1], None),
        ("mask", IDS, LABELS, np.ones((3, 4))),
        ("mask", IDS, LABELS, np.ones((3, 3), bool)),
    ],
)
def test_refuses_arrays_that_do_not_belong_together(argument, inputs, labels, mask):
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        Examples(inputs, labels, mask)


@pytest.mark.parametrize("lengths", [[1, 2], [1, 2, 5], [1, 2, -1], [1.0, 2.0, 3.0]])
def test_refuses_lengths_that_texts_have_not(lengths):
    with pytest.raises(InvalidInputError, match=r"^lengths: "):
        Examples.of_lengths(IDS, LABELS, np.array(lengths))


def test_splits_are_of_one_kind():
    train = Examples(IDS, LABELS)
    data = ClassificationData(train, test=train)
    assert [name for name, _ in data.held_out] == ["test"]
    assert set(data.arrays) == {"train.inputs", "train.labels", "test.inputs", "test.labels"}
    for other in (Examples(IDS[:, :2], LABELS), Examples(IDS, LABELS, IDS > 0), IDS):
        with pytest.raises(InvalidInputError, match=r"^validation: "):
            ClassificationData(train, other)
