"""A kind of file from outside of the library: one class, and ``load`` knows it."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

import attractor as at
from attractor.files import ArrayFile, DataSet, FileContents, data_hash, reading, register_file
from attractor.files.contents import Trial, check_known
from attractor.support.errors import InvalidInputError


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    monkeypatch.setattr(reading, "_REGISTERED", list(reading._REGISTERED))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GraphCase(ArrayFile, DataSet):
    words, held, marks = "graph file", "a graph", ("edges",)
    layout: ClassVar = {
        "edges": ("(n, 2)", "pairs of numbered tokens"),
        "names": ("(V,)", "optional"),
    }
    edges: np.ndarray
    names: tuple[str, ...] = ()
    about: str = "graph"

    @classmethod
    def from_arrays(cls, arrays, texts, name):
        check_known(arrays, cls.layout, name, "in a graph")
        if arrays["edges"].shape[1:] != (2,):
            raise InvalidInputError("edges", "they are no pairs", "Give (n, 2)")
        return cls(arrays["edges"], about=name)

    def to_arrays(self):
        return self.arrays(), {}

    def arrays(self):
        return {"edges": self.edges}

    @property
    def size(self):
        return len(self.edges)

    @property
    def size_in_words(self):
        return f"{self.size} edges"


EDGES = np.array([[0, 1], [1, 2]])


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_a_kind_of_ones_own_is_read_and_written(tmp_path, suffix):
    assert register_file(GraphCase) is GraphCase
    GraphCase(EDGES.T[::-1].T).save(tmp_path / f"a{suffix}")  # not in the order of memory
    loaded = at.load(tmp_path / f"a{suffix}")
    assert isinstance(loaded, GraphCase) and loaded.about == f"a{suffix}"
    np.testing.assert_array_equal(loaded.edges, EDGES[:, ::-1])
    assert repr(loaded) == "GraphCase(2 edges)"
    assert loaded.data_sets() == [loaded] and loaded.kind is GraphCase
    assert loaded.hash == data_hash(edges=EDGES[:, ::-1])
    assert loaded.smaller(Trial(lambda _: True, 9, {})) is loaded


def test_what_cannot_be_read_again_is_not_written(tmp_path):
    register_file(GraphCase)
    for name, data in (("a.npz", EDGES[:, :1]), ("a.txt", EDGES)):
        with pytest.raises(InvalidInputError):
            GraphCase(data).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_unknown_array_is_refused(tmp_path):
    register_file(GraphCase)
    np.savez(tmp_path / "a.npz", edges=EDGES, weight=1.0)
    with pytest.raises(InvalidInputError, match=r"^weight: a.npz has an array .* in a graph"):
        at.load(tmp_path / "a.npz")


def test_other_readers_say_what_it_is(tmp_path):
    register_file(GraphCase)
    GraphCase(EDGES).save(tmp_path / "a.npz")
    with pytest.raises(InvalidInputError, match=r"a.npz is a graph"):
        at.files.load_tokens(tmp_path / "a.npz")


def test_a_kind_by_its_ending(tmp_path):
    @register_file
    class Lines(FileContents):
        words, held, suffix, layout = "list", "a list", ".lines", {}

        def __init__(self, lines):
            self.lines = lines

        @classmethod
        def read(cls, file):
            return cls(file.read_text().splitlines())

        def save(self, path):
            raise NotImplementedError

    (tmp_path / "a.lines").write_text("a\nb\n")
    loaded = at.load(tmp_path / "a.lines")
    assert loaded.lines == ["a", "b"]
    with pytest.raises(InvalidInputError, match=r"^data: no claim speaks of a list"):
        loaded.data_sets()
    with pytest.raises(InvalidInputError, match="it holds a list"):
        at.corpora.load_corpus(tmp_path / "a.lines")


def test_a_kind_that_nothing_tells_from_others_is_refused():
    class Nameless(GraphCase):
        marks = ()

    with pytest.raises(InvalidInputError, match=r"^kind: Nameless names no arrays"):
        register_file(Nameless)
