import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from attractor import corpora, plots
from attractor.corpora import Collocation, Corpus, QueryGraphs, corpus_structure
from attractor.corpora.plots.collocation import chains, layout
from attractor.corpora.plots.orders import largest, layers_of
from attractor.support.errors import InvalidInputError

SENTENCES = ["SVOP", "VOP", "OPP", "PSV"]


@pytest.fixture
def structure():
    return corpus_structure(Corpus.from_sentences(SENTENCES))


@pytest.fixture
def cyclic():
    """Under q: c before the component {a, b}, which comes before d; d and q before none."""
    contexts = ["cabq", "abq", "abdq", "bq"]
    corpus = Corpus.from_samples(contexts, "caba", "abcdq")
    return corpus_structure(corpus).priorities


def words(axes):
    return {text.get_text(): np.array(text.get_position()) for text in axes.texts}


def overlaps(axes):
    boxes = [patch.get_extents() for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    return any(
        boxes[i].shrunk(0.98, 0.98).overlaps(boxes[j]) for i in range(len(boxes)) for j in range(i)
    )


def test_optimal_tokens_stand_above_those_they_come_before(structure, tmp_path):
    with plots.style():
        figure = corpora.plots.orders_figure(structure.orders)
        plots.save_figure(figure, tmp_path, "orders")
    names = structure.corpus.vocabulary
    assert len(figure.axes) == 4
    for axes in figure.axes:
        place = words(axes)
        relations = structure.orders.of(int(axes.get_label()))
        for before, after in relations:
            assert place[names[before]][1] > place[names[after]][1]
        arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
        assert len(arrows) == len(relations)
        assert not overlaps(axes)
    assert (tmp_path / "orders.png").stat().st_size > 5000


def test_a_component_shares_a_layer_and_its_arrows_stand_out(cyclic):
    q = cyclic.vocabulary.index("q")
    layers = layers_of(cyclic, q)
    assert [{cyclic.vocabulary[token] for token in layer} for layer in layers.tokens] == [
        {"c"}, {"a", "b"}, {"d", "q"},
    ]  # fmt: skip
    with plots.style():
        (axes,) = corpora.plots.priority_figure(cyclic, [q]).axes
    colors = [
        to_hex(patch.get_edgecolor())
        for patch in axes.patches
        if isinstance(patch, FancyArrowPatch)
    ]
    orange = plots.ROLES["cyclic"].color.lower()
    assert colors.count(orange) == int(cyclic.cyclic.sum()) == 2
    assert len(colors) == len(cyclic.edges)


def test_queries_with_cycles_come_first():
    corpus = Corpus.from_samples(
        ["abq", "abq", "abcder", "zs"], "abaz", "abcdeqrsz"
    )  # fmt: skip
    graphs = corpus_structure(corpus).priorities
    assert [graphs.vocabulary[query] for query in largest(graphs)] == ["q", "r", "s"]
    with pytest.raises(InvalidInputError, match="queries"):
        corpora.plots.priority_figure(graphs, [])


def test_layers_of_many_long_words_say_how_many_are_left_out(tmp_path):
    words_ = [f"extraordinarily-long-{number}" for number in range(30)]
    corpus = Corpus.from_samples([[*words_, "best", "query"]], ["best"])
    with plots.style():
        figure = corpora.plots.priority_figure(corpus_structure(corpus).priorities)
        plots.save_figure(figure, tmp_path, "many")
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    shown = sum(text.startswith("extra") for text in texts) + ("query" in texts)
    assert f"+{31 - shown} more" in texts and shown >= 2
    assert max(map(len, texts)) <= 14
    assert not overlaps(axes)
    wide = axes.get_xlim()[1]
    assert all(
        0 <= patch.get_x() and patch.get_x() + patch.get_width() <= wide
        for patch in axes.patches
        if isinstance(patch, FancyBboxPatch)
    )


def test_words_of_any_kind_are_drawn_as_they_are(tmp_path):
    odd = ["$x$", "a_b", "\N{GREEK SMALL LETTER ALPHA}", "$", "%", "<b>"]
    structure = corpus_structure(Corpus.from_sentences([[*odd, odd[0]]], context_length=2))
    with plots.style():
        figure = corpora.plots.priority_figure(structure.priorities)
        plots.save_figure(figure, tmp_path, "odd")
        plots.save_figure(
            corpora.plots.collocation_figure(structure.collocation), tmp_path, "chains"
        )
    drawn = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert drawn <= set(odd) and len(drawn) > 3


def test_layers_lie_an_equal_way_apart():
    placed = layout([[], [], []], 2.0)
    assert placed.boxes == [[], [], []] and placed.height > 1


@pytest.mark.parametrize(
    ("followers", "expected"),
    [
        ([1, 2, 0, 3], [([0, 1, 2], 0, True), ([3], 3, True)]),
        ([1, 2, -1, 2], [([0, 1, 2], None, False), ([3], 2, False)]),
        ([1, 2, 1, -1], [([0, 1, 2], 1, False)]),
        ([-1, -1], []),
    ],
)
def test_chains_hold_every_token_once(followers, expected):
    names = tuple("abcd"[: len(followers)])
    found = chains(Collocation(np.array(followers), np.zeros(0, int), names))
    assert [tuple(chain) for chain in found] == expected


def test_random_collocations_are_drawn_without_overlap(rng):
    for size in (1, 12, 200):
        found = Collocation(
            rng.integers(-1, size, size), np.zeros(0, int), tuple(f"w{i}" for i in range(size))
        )
        own = [token for chain in chains(found) for token in chain.tokens]
        assert len(own) == len(set(own)) >= (found.next_token >= 0).sum()
        if not len(own):
            continue
        with plots.style():
            (axes,) = corpora.plots.collocation_figure(found, width=3.3).axes
        assert not overlaps(axes)
        if size == 200:
            assert any("more tokens" in text.get_text() for text in axes.texts)


def test_the_map_of_classes_has_a_cell_for_every_token(structure):
    with plots.style():
        figure = corpora.plots.class_map_figure(structure.orders)
    (axes,) = figure.axes
    (image,) = axes.images
    assert image.get_array().shape == (4, 4)
    colors = plots.ROLES
    names = structure.corpus.vocabulary
    for query, token, role in (("S", "S", "optimal"), ("O", "V", "non_optimal"),
                               ("V", "P", "non_comparable")):  # fmt: skip
        value = image.get_array()[names.index(query), names.index(token)]
        assert to_hex(image.cmap(image.norm(value))) == colors[role].color.lower()


def test_bars_are_as_long_as_the_shares(cyclic):
    corpus = Corpus.from_sentences([["a", "b", "c"], ["a", "c", "b"]])
    checks = corpus_structure(corpus).assumptions
    with plots.style():
        (axes,) = corpora.plots.assumptions_figure(checks).axes
    assert [bar.get_width() for bar in axes.patches] == [check.share for check in checks]
    said = [text.get_text() for text in axes.texts]
    assert [word == "met" for word in said] == [check.met for check in checks]


def test_curves_leave_out_what_has_no_place_on_their_axes():
    steps = np.array([0, 1, 10, 100])
    falling = np.array([[0.5, 0.1, 1e-3, 0.0]])
    along, late = ("instance", "step"), ("instance", "feed_forward_step")
    data = xr.Dataset(
        {
            "distance": (along, falling),
            "loss": (along, falling),
            "least_optimal_attention": (along, 1 - falling),
            "feed_forward_distance": (late, np.zeros((1, 4))),
            "feed_forward_loss": (late, falling),
        },
        {"step": steps, "feed_forward_step": steps},
    )
    with plots.style():
        figure = corpora.plots.two_stage_figure(data)
    distance, _, attention = figure.axes
    exact, curve = distance.lines
    assert not len(exact.get_xdata()) and curve.get_xdata().tolist() == [1, 10]
    assert attention.lines[0].get_ydata().tolist() == (1 - falling[0]).tolist()
    assert len(figure.legends[0].get_texts()) == 2


def test_limits_show_the_floor_and_the_finite_part():
    steps = np.array([0, 1, 10, 100])
    falling = np.array([0.5, 0.1, 1e-3, 1e-4])
    names = {
        "correlation": 1 - falling,
        "correlation_outside": 1 - falling**2,
        "cyclic_norm": 1 - falling,
        "finite_distance": falling,
        "log_excess": np.log(falling),
    }
    dims = ("instance", "seed", "step")
    data = xr.Dataset(
        {name: (dims, values[None, None]) for name, values in names.items()}, {"step": steps}
    )
    with plots.style():
        figure = corpora.plots.limits_figure(data)
    whole, outside = figure.axes[0].lines
    np.testing.assert_allclose(whole.get_ydata(), falling[1:])
    np.testing.assert_allclose(outside.get_ydata(), falling[1:] ** 2)
    assert figure.axes[1].get_ylim()[1] > 1.2  # room for the legend above the curves
    np.testing.assert_allclose(figure.axes[2].lines[0].get_ydata(), falling[1:])


def test_a_frame_stands_for_many_relations_on_cycles():
    five = range(5)
    cyclic = [(0, i, j) for i in five for j in five if i != j]
    below = [(0, i, 5) for i in five]
    graphs = QueryGraphs(np.array(sorted(cyclic + below)), tuple("abcdef"))
    with plots.style():
        (axes,) = corpora.plots.priority_figure(graphs).axes
    arrows = [one for one in axes.patches if isinstance(one, FancyArrowPatch)]
    assert len(arrows) == 1  # the five of the frame's tokens, and none within it
    assert "5 tokens, 20 relations on cycles" in [text.get_text() for text in axes.texts]
