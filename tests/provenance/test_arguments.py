import pytest

from attractor.errors import FileFormatError
from attractor.provenance import Provenance
from attractor.provenance.arguments import (
    SEED,
    check_arguments,
    number,
    optional,
    several,
    text,
    truth,
    whole,
    word,
)

LETTERS = "abcdefghij"

KINDS = [
    (whole(1, 5), [1, 5], [0, 6, 1.0, True, "1", None], "an integer from 1 to 5"),
    (number(), [0, -1.5], [float("nan"), float("inf"), True, "1"], "a finite number"),
    (truth(), [True, False], [0, 1, None], "True or False"),
    (truth(False), [False], [True, 0], "False"),
    (word(*LETTERS[:9]), ["a", "i"], ["j", "", 1, None], "a, b, c, d, e, f, g, h, i"),
    (word(*LETTERS), ["j"], ["k", ["a"]], "one of those known"),
    (text("[ab]+", "some letters", 3), ["a", "bab"], ["", "aaaa", "c", "a\n", 1], "some letters"),
    (several(whole(0, 9), 2), [[0], [1, 9]], [[], [1, 2, 3], [10], 1],
     "a list of at most 2, each an integer from 0 to 9"),
    (optional(word("a")), [None, "a"], ["b", []], "null or a"),
    (SEED, [0, 2**63 - 1], [-1, 2**63],
     "an integer from 0 to 9,223,372,036,854,775,807"),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "right", "wrong", "words"), KINDS)
def test_values_that_an_argument_may_have(argument, right, wrong, words):
    assert argument.words == words
    assert all(argument.accepts(value) for value in right)
    assert not any(argument.accepts(value) for value in wrong)


def test_arguments_are_those_declared_and_all_that_are_wrong_are_named():
    declared = {"steps": whole(1, 5), "seed": SEED, "name": word("a")}
    given = {"steps": 3, "seed": 0}
    made = Provenance.record("report", "made-up", arguments=given)
    assert check_arguments(made, declared, may_lack=["name"]) == given
    bad = Provenance.record("report", "made-up", arguments={"steps": 9, "out": "/etc"})
    with pytest.raises(FileFormatError) as raised:
        check_arguments(bad, declared, may_lack=["name"])
    for words in (
        "'out' is none that a file can set",
        "steps is 9 and must be an integer from 1 to 5",
        "seed is missing",
        "Nothing was run.",
    ):
        assert words in str(raised.value)
    assert "name" not in str(raised.value).partition("with arguments")[2]
