import pytest

from attractor.corpora import load_corpus
from attractor.corpora.files import corpus_text
from attractor.heads.inputs import read_documents
from attractor.support.containers import read_text_blocks
from attractor.support.errors import FileFormatError, InvalidInputError

ENDS = {"line feed": "\n", "carriage return": "\r", "both": "\r\n"}


def corpus_lines(file):
    corpus = load_corpus(file).corpus
    words = [corpus.vocabulary[token] for token in corpus.tokens]
    return [
        " ".join(words[first:last])
        for first, last in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)
    ]


READERS = (corpus_lines, lambda file: read_documents(file, 100))


@pytest.fixture(params=[2**20, 3, 1])
def small_blocks(request, monkeypatch):
    """Blocks that end anywhere, in the middle of letters and of line ends."""
    monkeypatch.setattr(corpus_text, "BLOCK", max(request.param, 6))
    size = request.param
    whole = read_text_blocks
    monkeypatch.setattr("attractor.heads.inputs.read_text_blocks", lambda file: whole(file, size))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_what_ends_a_line(tmp_path, reader, end, small_blocks):
    file = tmp_path / "text.txt"
    file.write_bytes(end.join(["S V\x85O\u2028P", "V\fO\vP", "", "é ü"]).encode())
    assert reader(file) == ["S V O P", "V O P", "é ü"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_files_with_byte_order_marks_put_one_behind_another(tmp_path, reader, end, small_blocks):
    file = tmp_path / "text.txt"
    file.write_bytes(f"\ufeffS V O{end}\ufeffS V P{end}".encode())
    assert reader(file) == ["S V O", "S V P"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("content", "byte", "line"),
    [
        (b"a b\rna\xefve c\n", 7, 2),
        (b"a b\r\nc d\r\n\xffe f\n", 11, 3),
        ("a b\n".encode("utf-16"), 4, 1),
        (b"a b\n" * 10 + b"c \xe2\x82", 43, 11),
        (b"a b\r\n" * 10 + b"c \0 d", 53, 11),
    ],
)
def test_what_is_no_utf_8_is_named_with_line_and_byte(tmp_path, reader, content, byte, line):
    file = tmp_path / "text.txt"
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"text\.txt .*: byte {byte}, on line {line}, is"):
        reader(file)
    for size in (1, 2, 5):  # wherever blocks end
        with pytest.raises(FileFormatError, match=rf"on line {line}, is"):
            list(read_text_blocks(file, size))


def test_a_long_document_is_one_document(tmp_path, monkeypatch):
    monkeypatch.setattr("attractor.heads.inputs.LONGEST", 8)
    file = tmp_path / "texts.txt"
    file.write_text("one two three four\nfive\n")
    assert read_documents(file, 10) == ["one two", "five"]
    assert read_documents(tmp_path, 10) == ["one two"]
    file.write_bytes(b"\xefnaive" + b"x" * 10 + b"\n")
    with pytest.raises(FileFormatError, match="byte 1"):
        read_documents(file, 10)


def test_words_between_spaces_of_any_kind(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_text, "BLOCK", 12)
    file = tmp_path / "text.txt"
    file.write_text("\u3000".join("abcdefgh"), encoding="utf-8")
    assert corpus_lines(file) == ["a b c d e f g h"]
    file.write_text("a b\nc " + "x" * 13)
    with pytest.raises(InvalidInputError, match="line 2"):
        corpus_lines(file)
