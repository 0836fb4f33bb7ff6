import numpy as np
import pytest

from attractor.corpora import load_corpus
from attractor.corpora.files import corpus_text
from attractor.files import load, load_tokens
from attractor.support.errors import FileFormatError, InvalidInputError


@pytest.fixture
def text(tmp_path):
    def write(content, name="corpus.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def sentences(corpus):
    parts = np.split(corpus.tokens, corpus.starts[1:-1])
    return [[corpus.vocabulary[token] for token in part] for part in parts]


def test_a_sentence_a_line(text):
    loaded = load(text("the dog\tbarks\r\nthe  cat\n"))
    assert sentences(loaded.corpus) == [["the", "dog", "barks"], ["the", "cat"]]
    assert loaded.corpus.vocabulary == ("the", "dog", "barks", "cat")
    assert loaded.corpus.every_prefix and loaded.corpus.context_length is None
    assert loaded.notices == () and loaded.embeddings is None


@pytest.mark.parametrize("content", ["a b\nb a", "a b\nb a\n", "\N{BOM}a b\nb a\n"])
def test_the_last_line_break_and_a_mark_in_front_mean_nothing(text, content):
    assert sentences(load(text(content, "corpus.text")).corpus) == [["a", "b"], ["b", "a"]]


def test_what_is_left_out_is_told(text):
    loaded = load(text("\na b\n\n \nc\n"))
    assert sentences(loaded.corpus) == [["a", "b"]]
    assert loaded.corpus.vocabulary == ("a", "b")
    empty, single = loaded.notices
    assert "3 empty lines" in empty and "1 line of one token" in single


def test_blocks_may_end_anywhere(text, monkeypatch):
    content = "".join(f"naïve wörd{number} x\n" for number in range(40)) + "last line"
    path = text(content)
    whole = load(path).corpus
    for size in (17, 23, 64):
        monkeypatch.setattr(corpus_text, "BLOCK", size)
        again = load(path).corpus
        assert again.vocabulary == whole.vocabulary
        np.testing.assert_array_equal(again.tokens, whole.tokens)
        np.testing.assert_array_equal(again.starts, whole.starts)


def test_rare_tokens_become_one(text):
    loaded = load_corpus(text("a b a c\na d <other>\n"), vocabulary=1, context_length=2)
    assert sentences(loaded.corpus) == [
        ["a", "<other>", "a", "<other>"], ["a", "<other>", "<other>"],
    ]  # fmt: skip
    assert loaded.corpus.context_length == 2
    assert "57.1%" in loaded.notices[0]


def test_the_name_of_the_others_is_not_taken(text):
    corpus = load_corpus(text("<other> <other> a b\n"), vocabulary=1).corpus
    assert corpus.vocabulary == ("<other>", "<<other>>")


def test_a_vocabulary_that_is_large_enough_changes_nothing(text):
    loaded = load_corpus(text("a b c\n"), vocabulary=3)
    assert loaded.corpus.vocabulary == ("a", "b", "c") and not loaded.notices


@pytest.mark.parametrize(
    ("content", "named"),
    [("", "no tokens"), ("\n \n", "no tokens"), ("a\nb\n", "single token")],
)
def test_files_without_samples(text, content, named):
    with pytest.raises(InvalidInputError, match=rf"^file: .*{named}"):
        load(text(content))


@pytest.mark.parametrize(
    ("content", "byte", "line"),
    [
        (b"a b\nna" + "ï".encode("latin-1") + b"ve c\n", 7, 2),
        ("a b\n".encode("utf-16"), 4, 1),
        ("a b\n".encode("utf-16-le"), 2, 1),
        (b"a b\n" * 10 + b"c \xe2\x82", 43, 11),
    ],
)
def test_other_encodings_are_named_with_their_place(text, content, byte, line, monkeypatch):
    monkeypatch.setattr(corpus_text, "BLOCK", 16)
    with pytest.raises(FileFormatError, match=rf"UTF-8: byte {byte}, on line {line}, is"):
        load(text(content))


@pytest.mark.parametrize(
    ("limit", "value", "named"),
    [("MOST_TOKENS", 5, "more than 5 tokens"), ("MOST_WORDS", 3, "more than 3 different")],
)
def test_too_much_is_refused_while_reading(text, monkeypatch, limit, value, named):
    monkeypatch.setattr(corpus_text, limit, value)
    with pytest.raises(InvalidInputError, match=named):
        load(text("a b c d\na b c d\n"))


def test_a_line_without_spaces_is_refused(text, monkeypatch):
    monkeypatch.setattr(corpus_text, "BLOCK", 64)
    with pytest.raises(
        InvalidInputError, match=r"^file: .*a token of more than 64 bytes on line 2"
    ):
        load(text("a b\n" + "x" * 300))


def test_text_is_no_file_of_token_sequences(text):
    with pytest.raises(InvalidInputError, match=r"^file: .*attractor corpus"):
        load_tokens(text("a b\n"))


def test_as_many_tokens_as_are_taken_are_read(text, monkeypatch):
    file = text("a b c\nd e\n")
    monkeypatch.setattr(
        corpus_text, "MOST_TOKENS", 8
    )  # ends of lines and of the text are held, too
    assert len(load_corpus(file).corpus.tokens) == 5
    monkeypatch.setattr(corpus_text, "MOST_TOKENS", 7)
    with pytest.raises(InvalidInputError, match="more than 7 tokens"):
        load_corpus(file)
