import subprocess
import sys

import numpy as np
import pytest

from attractor.datasets import digit_patches
from attractor.datasets.digits import QUERY_PATCH, patch_vectors
from attractor.margin.selection import optimal_tokens
from attractor.support.errors import InvalidInputError, TiedTokensWarning


@pytest.fixture(scope="module")
def drawn():
    return digit_patches(6, 5)


def test_shapes_labels_and_unit_norm(drawn):
    tokens = drawn.tokens
    assert tokens.keys.shape == (5, 6, 16, 8)
    np.testing.assert_allclose(np.linalg.norm(tokens.keys, axis=-1), 1)
    np.testing.assert_array_equal(tokens.queries[..., 0, :], tokens.keys[..., QUERY_PATCH, :])
    np.testing.assert_array_equal(tokens.labels[..., 0].sum(-1), 0)
    assert set(np.unique(tokens.labels)) == {-1, 1}


def test_patches_are_the_pixels_of_their_place():
    image = np.arange(64.0).reshape(8, 8)
    vectors = patch_vectors(image, 0.0)
    pixels = vectors[6] / np.linalg.norm(vectors[6, 4:]) * np.sqrt(2)
    np.testing.assert_allclose(pixels[:4], [20, 21, 28, 29])


def test_blank_image_has_distinct_patches():
    vectors = patch_vectors(np.zeros((8, 8)), 0.3)
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)
    assert distances[~np.eye(16, dtype=bool)].min() > 0.5


def test_a_data_set_does_not_depend_on_how_many_are_drawn(drawn):
    np.testing.assert_array_equal(digit_patches(6, 2).images, drawn.images[:2])
    assert not np.array_equal(digit_patches(6, 2, seed=1).images, drawn.images[:2])


def test_images_of_a_data_set_are_distinct():
    images = digit_patches(24, 3).images.reshape(3, 24, 64)
    assert all(len(np.unique(one, axis=0)) == 24 for one in images)


def test_head_answers_better_than_chance(drawn):
    assert drawn.probe_accuracy > 0.6


def test_scores_do_not_tie(drawn, recwarn):
    optimal_tokens(drawn.tokens, drawn.head)
    assert not [w for w in recwarn if issubclass(w.category, TiedTokensWarning)]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (dict(n=5, instances=1), "n"),
        (dict(n=6.0, instances=1), "n"),
        (dict(n=10_000, instances=1), "n"),
        (dict(n=6, instances=0), "instances"),
        (dict(n=6, instances=1, digits=(3, 3)), "digits"),
        (dict(n=6, instances=1, digits=(3, 11)), "digits"),
    ],
)
def test_refuses_bad_arguments(arguments, named):
    with pytest.raises(InvalidInputError, match=f"^{named}:"):
        digit_patches(**arguments)


@pytest.mark.processes
def test_scikit_learn_is_loaded_only_when_digits_are():
    code = "import sys, attractor.datasets; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
