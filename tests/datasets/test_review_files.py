import csv
import tracemalloc

import pytest

from attractor.models.datasets.review_files import LONGEST
from attractor.models.datasets.reviews import load_reviews
from attractor.support.errors import FileFormatError, InvalidInputError


def table(folder, content, name="reviews.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def folder_of_reviews(folder, splits=("train", "test")):
    for split in splits:
        for label in ("neg", "pos"):
            place = folder / split / label
            place.mkdir(parents=True)
            for number in range(3):
                (place / f"{number}_8.txt").write_text(f"{split} {label} {number}, naïve")
    return folder


@pytest.mark.parametrize(
    ("content", "how"),
    [
        ("text,label\ngood,1\nbad,0\n", "named"),
        ("Sentiment,Review\npositive,good\nnegative,bad\n", "named"),
        ("good,1\nbad,0\n", "column 1"),
        ("pos,good\nneg,bad\n", "column 0"),
        ('\ufefflabel,id,text\r\n1,7,"good"\r\n\r\n0,8,bad', "named"),
    ],
)
def test_columns_are_found_and_it_is_said_how(tmp_path, content, how):
    reviews = load_reviews(table(tmp_path, content))
    assert reviews.texts == ("good", "bad")
    assert list(reviews.labels) == [1, 0]
    assert reviews.splits is None
    assert how in reviews.settings["columns"]


def test_columns_may_be_chosen_by_number(tmp_path):
    path = table(tmp_path, "what,x,y\n1,7,good\n0,8,bad\n")
    reviews = load_reviews(path, columns=(2, 0))
    assert reviews.texts == ("good", "bad")
    assert reviews.settings["columns"].endswith("taken for names, 'y', 'what'")
    with pytest.raises(InvalidInputError, match=r"^columns: .*0 to 2"):
        load_reviews(path, columns=(3, 0))


def test_rows_of_one_collection_are_taken(tmp_path):
    path = table(tmp_path, "text,label,source\ngood,1,a\nfine,1,b\nbad,0,a\n")
    assert load_reviews(path, collection="a").texts == ("good", "bad")
    assert load_reviews(path).settings["reviews"] == 3
    with pytest.raises(InvalidInputError, match="collection it has"):
        load_reviews(path, collection="c")
    with pytest.raises(InvalidInputError, match=r"^collection: .*no column source"):
        load_reviews(table(tmp_path, "good,1\nbad,0\n"), collection="a")


def test_texts_keep_commas_quotes_and_line_breaks(tmp_path):
    texts = ['a, "b"\nc', "<br /><br />d, é", "  e"]
    with (tmp_path / "reviews.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("text", "label"), *zip(texts, "010", strict=True)])
    assert load_reviews(tmp_path / "reviews.csv").texts == tuple(texts)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"foo,bar\ngood,1\n", "'foo', 'bar'"),
        (b"1,pos\n0,neg\n", "leaves open"),
        (b"a,b,c\n", "leaves open"),
        (b"text,label\n", "no reviews"),
        (b"text,label\ngood,1\nfine,1\n", "only label 1"),
        (b"text,label\ngood,1\nfine,2\n", "line 3: '2' is not a label"),
        (b"text,label\ngood,1\nfine,pos\n", "line 3: 'pos' is not a label as"),
        (b"text,label\ngood,\n", "line 2: '' is not a label"),
        (b"text,label\ngood,1\n \t,0\n", "line 3: the text is empty"),
    ],
)
def test_refuses_tables_without_two_labels(tmp_path, content, says):
    with pytest.raises(InvalidInputError, match=r"^path: ") as caught:
        load_reviews(table(tmp_path, content))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'text,label\ngood,1\n"bad\nworse', "begins on line 3"),
        (b'text,label\n"good"x,1\n', "begins on line 2"),
        (b"text,label\ngood,1\nbad\n", "line 3: the row has 1 entries, the first one 2"),
        (b"text,label\ngood, really,1\n", "line 2: the row has 3"),
        (b"text,label\ngo\xffod,1\n", "line 2: byte 3 is not UTF-8"),
        (b"text,label\ngo\0od,1\n", "line 2: there is a byte 0"),
        ("text,label\ngood,1\n".encode("utf-16"), "line 1: "),
        (b"text,label\ngood,1\nba\rd,0\n", "line 3"),
        (b"\x80\x04\x95\x10\x00\x00", "line 1: "),
    ],
)
def test_refuses_damaged_tables_and_names_the_line(tmp_path, content, says):
    path = table(tmp_path, content)
    with pytest.raises(FileFormatError) as caught:
        load_reviews(path)
    assert says in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize("begin", ["text,label\ngood,1\n", 'text,label\n"good\n'])
def test_refuses_ten_megabytes_in_a_row_without_holding_them(tmp_path, begin):
    path = table(tmp_path, begin + ("x" * 99 + " ") * 100_000 + ",0\n")
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"line 3: the row is longer than 131,072 bytes"):
        load_reviews(path)
    assert tracemalloc.get_traced_memory()[1] < 10 * LONGEST
    tracemalloc.stop()


def test_a_quote_left_open_does_not_swallow_the_file(tmp_path):
    path = table(tmp_path, 'text,label\ngood,1\n"bad,0\n' + "fine,1\n" * 50_000)
    with pytest.raises(FileFormatError, match="a quote before it is not closed"):
        load_reviews(path)


def test_folders_keep_their_split(tmp_path):
    reviews = load_reviews(folder_of_reviews(tmp_path))
    assert reviews.splits == ("train",) * 6 + ("test",) * 6
    assert list(reviews.labels) == [0, 0, 0, 1, 1, 1] * 2
    assert reviews.texts[4] == "train pos 1, naïve"
    half = load_reviews(tmp_path / "train")
    assert half.texts == reviews.texts[:6] and half.splits is None


def test_refuses_folders_with_something_missing_or_damaged(tmp_path):
    folder_of_reviews(tmp_path)
    with pytest.raises(InvalidInputError, match=r"^collection: "):
        load_reviews(tmp_path, collection="imdb")
    file = tmp_path / "train" / "pos" / "1_8.txt"
    for content, says in (
        (b"x" * (LONGEST + 1), "longer than"),
        (b"\xff", "byte 1 is not UTF-8"),
        (b"a\0", "byte 0"),
    ):
        file.write_bytes(content)
        with pytest.raises(FileFormatError, match=f"1_8.txt.*{says}"):
            load_reviews(tmp_path)
    file.write_bytes(b"")
    with pytest.raises(InvalidInputError, match=r"1_8.txt is empty"):
        load_reviews(tmp_path)
    for file in (tmp_path / "train" / "neg").iterdir():
        file.unlink()
    with pytest.raises(InvalidInputError, match=r"no \.txt files in .*neg"):
        load_reviews(tmp_path)
    with pytest.raises(InvalidInputError, match=r"^path: there is no file"):
        load_reviews(tmp_path / "nowhere")
