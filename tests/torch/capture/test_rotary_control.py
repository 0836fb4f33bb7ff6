"""Pairings trained in the query's frame of a rotary model, found in it again."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from attractor.heads.audit.result import Margin


@pytest.mark.slow
def test_heads_of_a_rotary_model_at_margin_solutions():
    from benchmarks.rotary_control import Sizes, control

    found = {one.arm.name: one for one in control(Sizes(models=1, width=8, texts=6, steps=5_000))}
    whole = found.pop("M, trained to the end")
    factors = found.pop("factors of M, trained to the end")
    assert (whole.verdict == f"{Margin.AT} (frobenius)").all()
    assert (factors.verdict == f"{Margin.AT} (nuclear)").all()
    assert whole.ratio[:, 0].min() > 0.99 and np.median(whole.ratio[:, 1]) < 0.95
    assert factors.ratio[:, 1].min() > 0.98 and np.median(factors.ratio[:, 0]) < 0.95
    for one in (whole, factors, *found.values()):
        assert one.score_error < 1e-13 and one.shift_error < 1e-5
    for one in found.values():
        assert all(map(one.arm.right, one.verdict.tolist()))
        assert one.ratio.max() < 0.8
