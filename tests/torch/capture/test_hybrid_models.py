"""Models of which some layers have no heads: numbers of layers, and whether positions rotate."""

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import FAMILIES, Letters, letters, small  # noqa: E402 - after the skip

from attractor.heads import CaptureStatus, load_captured, watched_heads  # noqa: E402
from attractor.heads.capture import capture_heads  # noqa: E402
from attractor.heads.capture.calls import _is_pair, calls_of  # noqa: E402
from attractor.heads.capture.parts import layer_numbers, rotates  # noqa: E402
from attractor.support.errors import InvalidInputError  # noqa: E402

TEXTS = letters()
HYBRID = {"Jamba": "none", "Lfm2": "query", "Qwen3Next": "query"}


@pytest.mark.parametrize("family", HYBRID)
def test_layers_have_the_numbers_of_the_model(family, tmp_path):
    model = small(family)
    captured = capture_heads(model, Letters(), TEXTS, path=tmp_path / "a.nc")
    assert captured.layers == [2, 5] == load_captured(tmp_path / "a.nc").layers
    assert json.loads(captured.origin["layers"]) == [2, 5]
    assert json.loads(captured.origin["frame"]) == [HYBRID[family]] * 2
    for _, layer in captured:
        assert set(layer.status) == {CaptureStatus.BILINEAR} and layer.self_check.max() < 1e-6
        assert (layer.projections is not None and layer.projections.key is not None) == (
            family == "Jamba"
        )
    last = capture_heads(model, Letters(), TEXTS, layers=[5])
    assert last.layers == [5]
    assert (last.layer(5).keys == captured.layer(5).keys).all()
    model.layers[5].self_attn.q_proj.weight.data.mul_(2)  # layer 5 is that of the model
    changed = capture_heads(model, Letters(), TEXTS)
    assert (changed.layer(2).attention == captured.layer(2).attention).all()
    assert not (changed.layer(5).attention == captured.layer(5).attention).all()


@pytest.mark.parametrize(
    "layers, words",
    [
        ([0], "layers: layer 0 has no attention heads. Give some of 2, 5"),
        ([2, 4], "layers: layer 4 has no attention heads. Give some of 2, 5"),
        ([2, 6], "layers: there is no layer 6. Give some of 2, 5"),
    ],
)
def test_layers_without_heads_are_named(layers, words):
    with pytest.raises(InvalidInputError, match=words):
        capture_heads(small("Lfm2"), Letters(), TEXTS, layers=layers)


def test_watched_heads_are_called_by_these_numbers():
    watched = watched_heads(small("Lfm2"), Letters(), texts=TEXTS, heads=[(5, 1)])
    assert [one.name for one in watched] == ["5.1"]


def called(family):
    model, calls = small(family), []
    with calls_of(model, calls.append):
        model(torch.tensor([[1, 5, 6, 7, 8, 9]]))
    return model, calls


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_numbers_of_other_models_are_those_of_calls(family):
    model, calls = called(family)
    assert layer_numbers(model, [call.module for call in calls]) == (0, 1)


@pytest.mark.parametrize("family", sorted({*FAMILIES, *HYBRID}))
def test_what_rotates_is_known_by_its_code(family):
    _, calls = called(family)
    none = {"Bert", "Roberta", "Electra", "Albert", "DistilBert", "GPT2", "OPT", "Jamba"}
    assert {rotates(call) or call.rotary is not None for call in calls} == {family not in none}


class Rotating(torch.nn.Module):
    """An attention module that rotates by a method of its own."""

    def forward(self, x):
        return self._turned(x)

    def _turned(self, x):
        return rotate_half(x)


def rotate_half(x):
    return x


class Inside(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = type("SomeRotaryEmbedding", (torch.nn.Module,), {})()

    def forward(self, x):
        return self.turn(x)


class Optional(torch.nn.Module):
    def forward(self, x, position_embeddings=None):
        return x if position_embeddings is None else rotate_half(x)


@pytest.mark.parametrize(
    "module, positioned, expected",
    [
        (Rotating(), False, True),
        (Inside(), False, True),
        (Optional(), False, False),
        (Optional(), True, True),
        (torch.nn.Linear(1, 1), False, False),
    ],
)
def test_rotations_by_methods_modules_and_arguments(module, positioned, expected):
    call = type("Call", (), {"module": module, "positioned": positioned})
    assert rotates(call) == expected


def test_a_pair_of_positions_or_of_nothing_is_no_pair_of_cosines_and_sines():
    cosines, positions = torch.ones(1, 2, 4), torch.arange(3)
    assert _is_pair((cosines, cosines))
    assert not _is_pair((positions, positions))
    assert not _is_pair((cosines, None))
