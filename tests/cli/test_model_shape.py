import json

import pytest

from attractor.heads.inputs import ModelShape
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize(
    ("found", "shape"),
    [
        ({"num_hidden_layers": 6, "num_attention_heads": 12}, (6, 12)),
        ({"n_layer": 3, "n_head": 6}, (3, 6)),
        ({"n_layers": 2, "n_heads": 4, "vocab_size": 9}, (2, 4)),
        ({"num_layers": 2, "num_heads": [1, 2]}, (2, None)),
        ({"num_hidden_layers": "6", "num_attention_heads": True}, (None, None)),
        ({"num_hidden_layers": 6, "is_encoder_decoder": True}, (None, None)),
        ({"num_hidden_layers": 6, "decoder_num_hidden_layers": 8}, (None, None)),
        ({"num_hidden_layers": 6, "text_config": {"num_hidden_layers": 2}}, (None, None)),
        ([6], (None, None)),
    ],
)
def test_layers_and_heads_are_those_of_a_single_stack(tmp_path, found, shape):
    (tmp_path / "config.json").write_text(json.dumps(found))
    known = ModelShape.of(tmp_path)
    assert (known.layers, known.heads) == shape


def test_heads_asked_for_are_counted():
    known = ModelShape(6, 12)
    assert [known.count(None, None), known.count([1, 2], None), known.count(None, [(1, 3)])] == [
        72, 24, 1,
    ]  # fmt: skip
    assert ModelShape(None, 12).count(None, None) is None
    ModelShape(None, None).check([99], None)  # nothing is refused that is not known


def test_layers_without_heads_are_neither_counted_nor_taken():
    known = ModelShape(5, 4, without_heads=(0, 1, 3))
    assert known.count(None, None) == 8 and known.count([2], None) == 4
    known.check([2, 4], None)
    with pytest.raises(InvalidInputError, match="layer 3 has no attention heads"):
        known.check([2, 3], None)
    with pytest.raises(InvalidInputError, match=r"there is no layer 5\. Give some of 2, 4"):
        known.check([5], None)
