import matplotlib
from PIL import Image

from attractor import plots


def test_the_style_holds_inside_the_block_only():
    before = dict(matplotlib.rcParams)
    with plots.style():
        assert matplotlib.rcParams["axes.spines.top"] is False
    assert dict(matplotlib.rcParams) == before


def test_the_same_figure_is_saved_as_the_same_bytes(tmp_path, data):
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        with plots.style():
            plots.save_figure(plots.direction_figure({"run": data}), folder, "figure")
    for file in ("figure.svg", "figure.png"):
        first, second = ((tmp_path / name / file).read_bytes() for name in ("first", "second"))
        assert first == second
    assert Image.open(tmp_path / "first" / "figure.png").width == 1440
