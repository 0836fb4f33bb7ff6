import json
import time

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from PIL import Image

from attractor import plots
from attractor.report.page import FigureFile, Section, render_page
from attractor.results.provenance import SUFFIXES, Provenance, embed, read_provenance
from attractor.support.errors import FileFormatError, InvalidInputError

TRICKY = "</svg></script></head> & <!-- ]]> --> \\ \" ' ü \u2028 \0"
RECORD = Provenance.record(
    "figure", "growth", arguments={"size": "quick"}, seeds=[0], bibtex=["@a{b, title={" + TRICKY]
)
OTHER = Provenance.record("claim", "rate", arguments={"note": "x" * 200_000, "numbers": [1e-300]})


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A file of each kind as the project writes it."""
    folder = tmp_path_factory.mktemp("originals")
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([0, 1])
    with plots.style():
        plots.save_figure(figure, folder, "file")
    numbers = {"a": [1, 0.1, float("nan")], "name": "ü"}
    (folder / "file.json").write_text(json.dumps(numbers) + "\n")
    xr.Dataset({"x": ("n", np.arange(3.0))}, attrs={"format": "some"}).to_netcdf(
        folder / "file.nc", engine="h5netcdf"
    )
    page = render_page(
        "Title é",
        "",
        [],
        [Section("A", figure=FigureFile("file", "c"))],
        figures=folder,
        command="demo",
        footer="",
    )
    (folder / "file.html").write_text(page, "utf-8")
    return folder


@pytest.fixture(params=SUFFIXES)
def file(request, originals, tmp_path):
    path = tmp_path / f"file{request.param}"
    path.write_bytes((originals / path.name).read_bytes())
    return path


def test_embed_and_read_give_the_same_back(file):
    embed(file, RECORD)
    assert read_provenance(file) == RECORD
    once = file.read_bytes()
    embed(file, RECORD)
    assert read_provenance(file) == RECORD
    if file.suffix != ".nc":
        assert file.read_bytes() == once
    assert list(file.parent.iterdir()) == [file]


def test_the_newest_counts_however_long(file):
    for record in (RECORD, OTHER):
        embed(file, record)
    assert read_provenance(file) == OTHER


def test_the_same_file_gives_the_same_bytes(originals, tmp_path):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        for suffix in SUFFIXES:
            path = tmp_path / folder / f"file{suffix}"
            path.write_bytes((originals / path.name).read_bytes())
            embed(path, RECORD)
        time.sleep(1.1)  # times in files are whole seconds
    for suffix in SUFFIXES:
        first, second = (tmp_path / name / f"file{suffix}" for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


def test_what_was_in_the_file_stays(originals, tmp_path):
    for suffix in SUFFIXES:
        path = tmp_path / f"file{suffix}"
        path.write_bytes((originals / path.name).read_bytes())
        embed(path, RECORD)
    with Image.open(tmp_path / "file.png") as new, Image.open(originals / "file.png") as old:
        np.testing.assert_array_equal(np.asarray(new), np.asarray(old))
        assert new.text["provenance"] == RECORD.to_json()
        assert new.info["dpi"] == old.info["dpi"]
    for name in ("file.svg", "file.html"):
        new, old = (folder.joinpath(name).read_text("utf-8") for folder in (tmp_path, originals))
        kept = [line for line in new.splitlines() if "provenance" not in line]
        assert "".join(kept).replace("</head>", "") == old.replace("\n", "").replace("</head>", "")
    kept = json.loads((tmp_path / "file.json").read_text())
    assert Provenance.from_json(json.dumps(kept.pop("provenance"))) == RECORD
    assert str(kept) == str({"a": [1, 0.1, float("nan")], "name": "ü"})
    with xr.open_dataset(tmp_path / "file.nc", engine="h5netcdf") as data:
        np.testing.assert_array_equal(data.x, np.arange(3.0))
        assert data.attrs == {"format": "some", "provenance": RECORD.to_json()}


def test_an_html_page_runs_nothing_of_it(originals, tmp_path):
    path = tmp_path / "file.html"
    path.write_bytes((originals / path.name).read_bytes())
    embed(path, RECORD)
    page = path.read_text("utf-8")
    assert page.count("<script") == page.count("</script") == 1
    assert '<script type="application/json" id="provenance">' in page


def test_a_file_without_one(file):
    with pytest.raises(InvalidInputError, match=r"^file: file\.\S+ does not say where it comes"):
        read_provenance(file)


def test_a_cut_file(file):
    embed(file, RECORD)
    half = file.read_bytes()[: len(file.read_bytes()) // 2]
    file.write_bytes(half)
    if file.suffix == ".html":  # half a page is still a page, and its head is whole
        assert read_provenance(file) == RECORD
        return
    with pytest.raises(FileFormatError, match=r"file\.\S+ is damaged"):
        read_provenance(file)
    with pytest.raises(FileFormatError, match=r"file\.\S+ is damaged"):
        embed(file, RECORD)
    assert file.read_bytes() == half


def test_something_else_under_the_name(file):
    file.write_bytes(b"\xff\xfe something else entirely")
    for act in (read_provenance, lambda path: embed(path, RECORD)):
        if file.suffix == ".html" and act is read_provenance:
            file.write_text("no page")
            with pytest.raises(InvalidInputError, match="does not say"):
                act(file)
            continue
        with pytest.raises(FileFormatError, match=r"file\.\S+ is damaged or is no"):
            act(file)


def test_a_changed_byte_in_an_image(originals, tmp_path):
    path = tmp_path / "file.png"
    path.write_bytes((originals / path.name).read_bytes())
    embed(path, RECORD)
    path.write_bytes(path.read_bytes().replace(b'"quick"', b'"slow!"'))
    with pytest.raises(FileFormatError, match="checksum"):
        read_provenance(path)


def test_entities_are_never_expanded(tmp_path):
    path = tmp_path / "a.svg"
    bomb = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    path.write_text(
        f'<!DOCTYPE svg [<!ENTITY e0 "lol">{bomb}]>'
        '<svg><metadata id="provenance">&e9;</metadata></svg>'
    )
    with pytest.raises(FileFormatError, match="declares entities"):
        read_provenance(path)


def test_a_damaged_provenance_names_the_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"provenance": {"format": "attractor provenance 1"}}')
    with pytest.raises(FileFormatError, match=r"a\.json: The provenance is damaged: kind"):
        read_provenance(path)


@pytest.mark.parametrize(("name", "message"), [("a.txt", "ends in .nc"), ("b.png", "no file")])
def test_refuses_other_names(tmp_path, name, message):
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(InvalidInputError, match=f"^file: .*{message}"):
        read_provenance(tmp_path / name)


def test_save_figure_puts_it_into_both_files(tmp_path):
    for name in ("first", "second"):
        with plots.style():
            figure = Figure(figsize=(1, 1))
            figure.subplots().plot([0, 1])
            plots.save_figure(figure, tmp_path, name, provenance=RECORD)
    for suffix in (".png", ".svg"):
        first, second = (tmp_path / f"{name}{suffix}" for name in ("first", "second"))
        assert read_provenance(first) == RECORD
        assert first.read_bytes() == second.read_bytes()


HOSTILE = {
    "an encoding that is none.svg": b'<?xml version="1.0" encoding="foo-999"?><svg/>',
    "an encoding of several bytes.svg": b'<?xml version="1.0" encoding="shift_jis"?><svg/>',
    "half a code point.json": b'{"provenance": {"format": "\\ud800"}}',
    "brackets.json": b"[" * 10**6,
    "a long number.json": b'{"provenance": ' + b"9" * 5000 + b"}",
    "bytes.html": b"<head>\xff</head>",
    "no end.html": b'<head><script type="application/json" id="provenance">{}',
    "a chunk of 4 GB.png": b"\x89PNG\r\n\x1a\n\xff\xff\xff\xfftEXtprovenance\0",
    "nothing.nc": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_way_of_being_damaged_is_one_error_that_names_the_file(name, tmp_path):
    file = tmp_path / name
    file.write_bytes(HOSTILE[name])
    with pytest.raises(FileFormatError, match=r"\.\w+ is damaged or is no"):
        read_provenance(file)


@pytest.mark.parametrize("text", ["<![foo[ x ]]>", "<!" * 300_000, "<!--" * 100_000, "<a " * 10**5])
def test_a_page_is_searched_and_not_parsed(text, originals, tmp_path):
    """Parsers of HTML fail on the first and take a minute for the second."""
    file = tmp_path / "file.html"
    file.write_bytes((originals / "file.html").read_bytes())
    embed(file, RECORD)
    file.write_text(file.read_text("utf-8").replace("<head>", f"<head>{text}", 1), "utf-8")
    assert read_provenance(file) == RECORD
    file.write_text(text)
    with pytest.raises(InvalidInputError, match="does not say"):
        read_provenance(file)


def test_what_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("attractor.support.containers.damage.LARGEST", 1000)
    for suffix in SUFFIXES:
        if suffix != ".nc":
            file = tmp_path / f"file{suffix}"
            file.write_bytes(b" " * 1001)
            with pytest.raises(FileFormatError, match="more than 1,000 bytes"):
                read_provenance(file)
