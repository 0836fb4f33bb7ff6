"""The verdict on a trial has the same bits whatever trials stand beside it."""

import numpy as np
import pytest
from sizes import MANY, drawn

import attractor as at


@pytest.mark.parametrize("selection", ["reached at end", "reached at step"])
def test_parts_of_the_data_sets_and_of_the_seeds_give_the_same_bits(selection):
    tokens, head = drawn(MANY)

    def verdict(instances, seeds):
        heads = head.for_instances(np.array(instances))
        run = at.train(
            tokens[instances], heads, at.normalized_gradient_descent(0.1), steps=60, seeds=seeds
        )
        return at.verify(run, selection=selection).data

    whole = verdict(range(6), 2)
    assert whole.isel(instance=[3, 4]).identical(verdict([3, 4], 2))
    assert whole.isel(instance=[2], seed=[0]).identical(verdict([2], 1))
