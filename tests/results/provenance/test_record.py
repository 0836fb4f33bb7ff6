import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

import attractor
from attractor.results.provenance import Provenance, differences
from attractor.support.errors import FileFormatError, InvalidInputError

BIBTEX = '@article{a,\n  title = {A {\\"o} <b> & ü \u2028}\n}'

# What UTF-8 can have, as `st.text` tries letter by letter, which takes seconds the first time.
texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def made(**changes):
    fields = {
        "arguments": {"size": "quick", "seeds": 3},
        "data": "ab" * 32,
        "seeds": (0, 1, 2),
        "settings": {"steps": 100, "optimizer": {"name": "sign", "rate": 0.1}},
        "bibtex": [BIBTEX],
    }
    return Provenance.record("figure", "growth", **(fields | changes))


@given(st.dictionaries(texts, plain, max_size=3))
def test_json_gives_the_same_back(settings):
    before = made(settings=settings)
    text = before.to_json()
    after = Provenance.from_json(text)
    assert after == before
    assert after.to_json() == text
    assert text.isascii() and "\n" not in text
    assert differences(before, after) == []


def test_says_what_is_installed():
    record = made()
    assert record.version == attractor.__version__
    assert record.packages["numpy"] == np.__version__
    assert set(record.packages) == {"jax", "numpy", "optax", "scipy"}
    assert record.platform.endswith(("-cpu", "-gpu", "-tpu"))


def test_values_become_plain():
    p = np.array([1.5, np.inf])
    settings = made(settings={"p": p, "steps": np.int64(3), "pair": (1, -np.inf)}).settings
    assert settings == {"p": [1.5, "inf"], "steps": 3, "pair": [1, "-inf"]}
    p[0] = 2.0
    assert settings["p"][0] == 1.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"a": [1, {"b": object()}]}}, r"^settings\.a\[1\]\.b: a object is no value"),
        ({"arguments": {"head": abs}}, r"^arguments\.head: "),
        ({"bibtex": BIBTEX}, "^bibtex: it is one text"),
    ],
)
def test_refuses_what_json_cannot_hold(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        made(**changes)


def test_refuses_an_unknown_kind():
    with pytest.raises(InvalidInputError, match=r"^kind: 'guess'.*figure, claim, report"):
        Provenance.record("guess", "a", arguments={})


def test_an_entry_is_cited_once():
    assert made(bibtex=["@a", "@b", "@a"]).bibtex == ("@a", "@b")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arguments": {"size": "paper", "seeds": 3}}, ["argument size", "'quick'", "'paper'"]),
        ({"data": "cd" * 32}, ["data", "abababababab", "cdcdcdcdcdcd"]),
        ({"data": None}, ["data", "abababababab", "none"]),
        ({"seeds": (4,)}, ["seeds were 0 to 2 and are 4"]),
        ({"settings": {"steps": 100}}, ["setting optimizer.name", "nothing"]),
        ({"bibtex": []}, ["no longer cited", BIBTEX]),
        ({"bibtex": [BIBTEX, "@b"]}, ["newly cited: @b"]),
    ],
)
def test_differences_say_what_was_and_what_is(changes, words):
    said = differences(made(), made(**changes))
    assert said
    for word in words:
        assert word in said[0]


def test_differences_name_versions_and_platform():
    old = json.loads(made().to_json())
    old |= {"version": "0.0.1", "platform": "plan9-mips-cpu"}
    old["packages"] |= {"jax": "0.1"}
    del old["packages"]["scipy"]
    said = differences(Provenance.from_json(json.dumps(old)), made())
    assert [line.split(" was ")[0] for line in said] == [
        "Attractor", "jax", "scipy", "the platform",
    ]  # fmt: skip
    assert "was 0.0.1 and is" in said[0]
    assert "not recorded" in said[2]


def spoil(**changes):
    contents = json.loads(made().to_json()) | changes
    return json.dumps({name: value for name, value in contents.items() if value != "gone"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[" * 100000, "no JSON"),
        ("[]", "not of the form"),
        (spoil(format="attractor provenance 9"), "not of the form"),
        (spoil(kind="guess"), "guess"),
        (spoil(seeds="gone"), "seeds"),
        (spoil(seeds=[1.5]), "seeds"),
        (spoil(bibtex="@a"), "bibtex"),
        (spoil(packages={"jax": 1}), "packages"),
        (spoil(data=3), "data"),
        (spoil(extra=1), "extra"),
    ],
)
def test_refuses_damaged_text(text, message):
    with pytest.raises(FileFormatError, match=message):
        Provenance.from_json(text)


def test_seeds_far_apart_are_not_listed_one_by_one():
    """As a range they would fill the memory."""
    far = Provenance.record("figure", "x", arguments={}, seeds=[0, 1, 10**15])
    near = Provenance.record("figure", "x", arguments={}, seeds=[0, 1, 2])
    assert "the seeds were 0, 1, 1000000000000000 and are 0 to 2" in differences(far, near)


@pytest.mark.parametrize("text", ["[" * 5000, '{"a": ' * 300 + "1" + "}" * 300, '"\\ud800"'])
def test_a_text_that_no_one_writes(text):
    with pytest.raises(FileFormatError, match="no JSON"):
        Provenance.from_json(text)
