import numpy as np
import pytest
import xarray as xr

from attractor import heads, plots
from attractor.heads.plots.marked_text import WIDE


def examples(token, attention, *, position=1, selected=0, content=None, allowed=None, head=0):
    count = len(token)
    rows = {
        "token": np.array([token], dtype=object),
        "attention": [attention],
        "allowed": [np.ones(count, bool) if allowed is None else allowed],
        "content": [np.ones(count, bool) if content is None else content],
    }
    one = {
        "layer": [0], "head": [head], "document": [0], "position": [position],
        "selected": [selected], "selected_probability": [attention[selected]],
    }  # fmt: skip
    variables = {name: (("example", "token_place"), value) for name, value in rows.items()}
    return xr.Dataset(variables | {name: ("example", value) for name, value in one.items()})


def drawn(data, **headings):
    with plots.style():
        return heads.plots.attention_text_figure(data, headings or {"0.0": "the head"}).axes[0]


def boxes(axes, words):
    """The box behind each word, by its left end."""
    found = {}
    for word in words:
        text = next(text for text in axes.texts if text.get_text() == word)
        x, y = text.get_position()
        found[word] = next(
            patch for patch in axes.patches
            if patch.get_x() <= x <= patch.get_x() + patch.get_width()
            and patch.get_y() <= y - 0.05 <= patch.get_y() + patch.get_height()
        )  # fmt: skip
    return found


def test_attention_shades_content_blue_and_the_rest_red():
    content = np.array([False, True, True, True])
    data = examples(
        ["[CLS]", "one", "two", "three"], [0.6, 0.0, 0.3, 0.1], selected=2, content=content
    )
    axes = drawn(data)
    found = boxes(axes, ["[CLS]", "one", "two", "three"])
    red, green, blue = found["[CLS]"].get_facecolor()[:3]
    assert red > max(green, blue)
    red, green, blue = found["two"].get_facecolor()[:3]
    assert blue > red
    assert found["one"].get_facecolor()[:3] == (1, 1, 1)
    assert found["three"].get_facecolor()[0] > found["two"].get_facecolor()[0]
    assert found["one"].get_linewidth() > 1  # the box of the query
    assert "30 %" in [text.get_text() for text in axes.texts if text.get_fontsize() == 6.5]


def test_tokens_are_read_as_text():
    token = ["\u0120hello", "\u2581wor", "##ld", "$x$", "\U00020000", "a" * 40, "\u010a", " "]
    axes = drawn(examples(token, np.full(8, 0.125)))
    shown = [text.get_text() for text in axes.texts]
    for word in ("hello", "wor", "##ld", "$x$", "\N{REPLACEMENT CHARACTER}", "a" * 17 + "\u2026"):
        assert word in shown
    assert not any(text.get_parse_math() for text in axes.texts)


def test_long_texts_go_on_in_further_lines_within_the_page():
    token = ["word"] * 60
    axes = drawn(examples(token, np.full(60, 1 / 60), position=30))
    words = [text for text in axes.texts if text.get_text() == "word"]
    lines = sorted({text.get_position()[1] for text in words})
    counts = [sum(text.get_position()[1] == line for text in words) for line in lines]
    assert sum(counts) == 60 and max(counts) <= 24 and len(lines) == 3
    assert all(patch.get_x() + patch.get_width() <= WIDE for patch in axes.patches)


def test_padding_is_left_out_and_the_future_is_gray():
    content = np.array([True, True, True, False])
    allowed = np.array([True, True, False, False])
    axes = drawn(examples(["a", "b", "c", ""], [0.5, 0.5, 0, 0], content=content, allowed=allowed))
    shown = {text.get_text(): text.get_color() for text in axes.texts}
    assert shown["c"] == "#9a9a9a" and "\u2423" not in shown


def test_a_heading_stands_once_above_the_texts_of_its_head():
    one = examples(["a", "b"], [0.5, 0.5])
    other = examples(["a", "b"], [0.5, 0.5], head=1)
    data = xr.concat([one, one, other], "example")
    axes = drawn(data, **{"0.0": "the first", "0.1": "the second"})
    shown = [text.get_text() for text in axes.texts]
    assert shown.count("the first") == shown.count("the second") == 1


def test_a_query_that_selects_nothing():
    data = examples(["a", "b"], [0.5, 0.5]).assign(selected=("example", [-1]))
    assert len(drawn(data).patches) > 0


@pytest.mark.parametrize("headings", [None, {0: "head"}])
def test_headings_are_texts_by_name(headings):
    from attractor.support.errors import InvalidInputError

    with pytest.raises(InvalidInputError, match="headings"):
        heads.plots.attention_text_figure(examples(["a", "b"], [0.5, 0.5]), headings)
