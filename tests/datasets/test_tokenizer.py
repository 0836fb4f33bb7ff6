import json
import sys

import numpy as np
import pytest

from attractor.models.datasets.tokenizer import TextTokenizer, load_tokenizer, train_tokenizer
from attractor.support.errors import FileFormatError, InvalidInputError

tokenizers = pytest.importorskip("tokenizers")

TEXTS = ["The film was good, really good!<br /><br />A naïve FILM.", "the film wasn't bad"] * 5


@pytest.fixture(scope="module")
def trained():
    return train_tokenizer(TEXTS, vocabulary=150)


def pieces(tokenizer, ids):
    return [tokenizer.piece(int(number)) for number in ids]


def test_special_pieces_have_their_numbers(trained):
    assert pieces(trained, range(4)) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    assert (trained.padding, trained.first) == (0, 2)
    assert trained.settings["texts"] == 10 and trained.vocabulary <= 150


def test_texts_are_padded_and_cut_hard(trained):
    encoded = trained.encode(["film", "the film was really good", ""], 5)
    assert encoded.ids.dtype == np.int32
    assert pieces(trained, encoded.ids[0]) == ["[CLS]", "▁film", "[SEP]", "[PAD]", "[PAD]"]
    assert pieces(trained, encoded.ids[1]) == ["[CLS]", "▁the", "▁film", "▁was", "▁really"]
    assert list(encoded.lengths) == [3, 5, 2]
    np.testing.assert_array_equal(encoded.mask, encoded.ids != 0)
    assert encoded.settings["texts_cut"] == 1
    assert trained.encode(["film"], 1).ids.tolist() == [[2]]
    assert trained.encode([], 4).ids.shape == (0, 4)


def test_chunks_do_not_show(trained):
    texts = [f"the film {'good ' * (i % 7)}" for i in range(1100)]
    whole = trained.encode(texts, 6)
    np.testing.assert_array_equal(whole.ids[1030], trained.encode([texts[1030]], 6).ids[0])


def test_case_accents_and_line_breaks_of_html_do_not_matter(trained):
    one, other = trained.encode(["Naïve<br /><br/>FILM", "naive film"], 12).ids
    np.testing.assert_array_equal(one, other)


def test_unseen_characters_are_unknown(trained):
    assert 1 in trained.encode(["☃"], 8).ids


def test_every_position_belongs_to_its_word(trained):
    text = "The wasteful  naïve FILM, really<br />good"
    found = trained.words(text)
    assert found.words == ("The", "wasteful", "naïve", "FILM", ",", "really", "good")
    assert found.word_of_position[0] == found.word_of_position[-1] == -1
    assert len(found.pieces) == len(found.word_of_position) == (trained.encode([text], 99).lengths)
    joined = [""] * len(found.words)
    for piece, word in zip(found.pieces[1:-1], found.word_of_position[1:-1], strict=True):
        joined[word] += piece.lstrip("▁").replace("[UNK]", "?")
    assert [word for word in joined if "?" not in word] == [
        "the", *(word for word in joined[1:3] if "?" not in word), "film", ",", "really", "good",
    ]  # fmt: skip
    cut = trained.words(text, 4)
    np.testing.assert_array_equal(cut.word_of_position, found.word_of_position[:4])
    assert cut.words == found.words[: len(cut.words)]


def test_attention_is_summed_over_the_pieces_of_a_word(trained):
    found = trained.words("wasteful film")
    attention = np.random.default_rng(0).random((3, len(found.pieces)))
    sums = found.sums(attention)
    assert sums.shape == (3, 2) and found.pieces[-2] == "▁film"
    np.testing.assert_allclose(sums[:, 1], attention[:, -2])
    np.testing.assert_allclose(sums[:, 0], attention[:, 1:-2].sum(axis=1))


def test_json_text_keeps_everything(trained, tmp_path):
    trained.save(tmp_path / "tokenizer.json")
    read = load_tokenizer(tmp_path / "tokenizer.json")
    assert read.to_json() == trained.to_json() == TextTokenizer(trained.to_json()).to_json()
    np.testing.assert_array_equal(read.encode(TEXTS, 20).ids, trained.encode(TEXTS, 20).ids)
    assert read.settings["source"].endswith("tokenizer.json")


def test_the_same_each_time():
    # The library's maps are ordered differently each time; ties must not be broken by that.
    texts = [f"{a}{b}{c} {c}{a}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
    made = {train_tokenizer(texts, vocabulary=60).to_json() for _ in range(5)}
    assert len(made) == 1


def test_rare_characters_do_not_crowd_the_vocabulary():
    texts = ["".join(chr(0x4E00 + i) for i in range(500)), "film " * 50, "good film " * 50]
    tokenizer = train_tokenizer(texts, vocabulary=100)
    assert tokenizer.vocabulary <= 100
    assert tokenizer.number("▁film") is not None


def test_a_tokenizer_of_another_kind_is_taken(tmp_path):
    other = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            {"<pad>": 3, "<s>": 5, "fi": 0, "##lm": 1, "?": 2}, unk_token="?"
        )
    )
    other.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    other.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", None, [("<s>", 5)])
    other.enable_truncation(2)
    other.enable_padding(length=9)
    (tmp_path / "own.json").write_text(other.to_str())
    read = load_tokenizer(tmp_path / "own.json")
    assert (read.padding, read.first) == (3, 5)
    assert read.encode(["film film"], 7).ids.tolist() == [[5, 0, 1, 0, 1, 3, 3]]
    assert list(read.words("film film").word_of_position) == [-1, 0, 0, 1, 1]


def test_a_tokenizer_without_a_piece_for_the_unknown_says_so(trained):
    lacking = json.loads(trained.to_json().replace("[UNK]", "[XXX]"))
    lacking["model"] = {"type": "WordLevel", "vocab": {"a": 9}, "unk_token": "?"}
    with pytest.raises(InvalidInputError, match=r"^tokenizer: it cannot encode"):
        TextTokenizer(json.dumps(lacking)).encode(["zebra"], 4)


def test_refuses_tokenizers_without_class_token_or_padding(trained):
    bare = json.loads(trained.to_json())
    bare["post_processor"] = None
    with pytest.raises(InvalidInputError, match=r"^tokenizer: .*\[CLS\]"):
        TextTokenizer(json.dumps(bare))
    whole = trained.to_json().replace("[PAD]", "[XXX]")
    with pytest.raises(InvalidInputError, match=r"^tokenizer: .*<pad>"):
        TextTokenizer(whole)


def test_a_panic_of_the_library_is_an_error_like_others(trained, capfd):
    broken = json.loads(trained.to_json())
    broken["post_processor"]["special_tokens"] = {}
    with pytest.raises((FileFormatError, InvalidInputError), match="tokenizer"):
        TextTokenizer(json.dumps(broken)).encode(["the film"], 4)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"\xff", b"\x80\x04K\x01.", b'{"model": {}, "added_tokens": 1}']
)
def test_refuses_files_that_are_no_tokenizer(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"tokenizer"):
        load_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    ("use", "named"),
    [
        (lambda trained: trained.encode("one text", 4), "texts"),
        (lambda trained: trained.encode(["a", 3], 4), "texts"),
        (lambda trained: trained.encode(["a"], 0), "length"),
        (lambda trained: train_tokenizer([" ", "\n"]), "texts"),
        (lambda trained: train_tokenizer(TEXTS, vocabulary=3), "vocabulary"),
        (lambda trained: train_tokenizer(TEXTS, minimum_count=0), "minimum_count"),
        (lambda trained: load_tokenizer("nowhere.json"), "path"),
    ],
)
def test_refuses_bad_arguments(trained, use, named):
    with pytest.raises(InvalidInputError, match=f"^{named}:"):
        use(trained)


def test_missing_library_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'attractor\[text\]'"):
        train_tokenizer(TEXTS)
