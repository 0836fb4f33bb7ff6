import numpy as np
import pytest
from made_checkpoints import made_checkpoint_audit

from attractor import heads, plots
from attractor.heads.checkpoints.checkpoint_result import movements_of


def draw(audit):
    with plots.style():
        return heads.plots.checkpoint_figure(audit.data)


def test_sizes_and_directions_stand_side_by_side_for_each_checkpoint():
    audit = made_checkpoint_audit(2, 3, 4)
    figure = draw(audit)
    left, right, lower, lowest = figure.axes[:4]
    assert left.get_title(loc="left") == "From 0 to 2: size"
    found = movements_of(audit.data)
    written = [text.get_text() for text in left.texts]
    assert written[0] == f"{found[0]['norm_ratio']:.2f}".removeprefix("0") and len(written) == 12
    signed = [text.get_text() for text in right.texts]
    assert signed[1].startswith("+") and signed[2].startswith("\N{MINUS SIGN}")
    assert len([patch for patch in right.patches if not patch.get_fill()]) == 2
    assert not lowest.patches and lowest.images[0].get_array().mask.sum() == 1
    assert len(lower.texts) == 12 and len(lowest.texts) == 11
    assert left.images[0].norm.vcenter == 1 and right.images[0].norm.vcenter == 0


@pytest.mark.parametrize(("heads", "written"), [(1, 1), (12, 12), (40, 0)])
def test_numbers_are_written_where_there_is_room(heads, written):
    audit = made_checkpoint_audit(1, 2, max(heads, 3))
    axes = draw(audit).axes[0]
    assert (len(axes.texts) > 0) == (written > 0)


def test_what_was_not_asked_is_gray():
    audit = made_checkpoint_audit(1, 2, 3)
    bare = audit.data.drop_vars(["cosine", "cosine_null", "norm_ratio"])
    with plots.style():
        figure = heads.plots.checkpoint_figure(bare)
    assert all(axes.images[0].get_array().mask.all() for axes in figure.axes[:2])
    assert np.isfinite(figure.get_size_inches()).all()
