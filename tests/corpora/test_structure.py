import numpy as np
import pytest

from attractor.corpora import Corpus, TokenClass, corpus_structure
from attractor.corpora.structures import orders
from attractor.support.errors import InvalidInputError


def words(structure, query):
    names = structure.corpus.vocabulary
    found = structure.orders.of(names.index(query))
    return {(names[a], names[b]) for a, b in found.tolist()}


def test_worked_example(worked_example):
    found = corpus_structure(worked_example)
    assert found.collocation.words() == {"S": "V", "V": "O", "O": "P", "P": "S"}
    assert words(found, "S") == {("S", "P")}
    assert words(found, "V") == {("V", "S")}
    assert words(found, "O") == {("O", "S"), ("O", "V")}
    assert words(found, "P") == {("O", "P")}
    assert found.realizable
    assert all(check.met for check in found.assumptions)
    assert "The corpus is realizable" in str(found)


def test_classes_are_disjoint(worked_example):
    classes = corpus_structure(worked_example).orders.classes(3)  # the full stop
    assert classes == {
        TokenClass.OPTIMAL: (2,),
        TokenClass.CONFUSED: (),
        TokenClass.NON_OPTIMAL: (3,),
        TokenClass.NON_COMPARABLE: (0, 1),
    }


ALONE = [["a"], ["b"], ["c"], ["d"]]
FOLLOWS = ["b", "c", "d", "a"]


@pytest.mark.parametrize(
    ("contexts", "labels", "broken"),
    [
        ([], [], set()),
        ([["a"]], ["c"], {"collocation", "labels explained"}),
        ([["e"]], ["b"], {"injective collocation", "labels explained"}),
        ([["c", "d"]], ["b"], {"labels explained"}),
        (
            [["a", "b", "d"], ["a", "b", "d"]],
            ["b", "c"],
            {"well-defined orders", "no confused tokens"},
        ),
        (
            [["a", "b", "d"], ["b", "c", "d"]],
            ["b", "c"],
            {"no confused tokens"},
        ),
        ([["a", "b", "b"]], ["b"], {"optimal token as frequent as any"}),
    ],
)
def test_each_assumption_is_found_broken(contexts, labels, broken):
    corpus = Corpus.from_samples(ALONE + contexts, FOLLOWS + labels)
    found = corpus_structure(corpus)
    not_met = {check.name for check in found.assumptions if not check.met}
    assert broken == not_met - {"closed under prefixes"}
    for check in found.assumptions:
        assert check.met == (len(check.offending) == 0)
        assert len(check.examples) == min(len(check.offending), 5)


def test_prefixes_that_are_no_samples_are_found():
    corpus = Corpus.from_samples([*ALONE, ["a", "b"], ["a", "c", "b"]], [*FOLLOWS, "b", "b"])
    check = corpus_structure(corpus).assumption("closed under prefixes")
    assert check.examples == ("a c b -> b",)


def test_offending_sentences_are_shown():
    corpus = Corpus.from_samples([*ALONE, ["a", "b", "d"], ["a", "b", "d"]], [*FOLLOWS, "b", "c"])
    check = corpus_structure(corpus).assumption("well-defined orders")
    assert check.examples == ("a b d -> b", "a b d -> c")
    assert check.share == pytest.approx(2 / 6)


def test_longer_cycles_are_found():
    contexts = [["a", "b", "d"], ["b", "c", "d"], ["c", "a", "d"]]
    found = corpus_structure(Corpus.from_samples(ALONE + contexts, [*FOLLOWS, "b", "c", "d"]))
    assert not found.assumption("well-defined orders").met
    graph = found.orders
    a, b, c, d = (graph.component_of(np.array([3]), np.array([t]))[0] for t in range(4))
    assert a == b == c != d
    assert graph.component_of(np.array([0]), np.array([1]))[0] == -1


def test_token_priority_graphs_need_no_collocation():
    corpus = Corpus.from_samples([["a", "b", "c"], ["a", "b", "c"]], ["a", "b"])
    graphs = corpus_structure(corpus).priorities
    assert graphs.of(2).tolist() == [[0, 1], [0, 2], [1, 0], [1, 2]]
    assert graphs.component_sizes().tolist() in ([2, 1], [1, 2])
    assert not graphs.acyclic


def test_long_sentences_are_not_written_out():
    tokens = np.random.default_rng(0).integers(0, 30, 60_000)
    found = corpus_structure(Corpus(tokens, [0, len(tokens)], 30))
    assert found.corpus.context_tokens > 10**9
    assert not found.realizable


def test_too_many_relations_are_refused(monkeypatch):
    monkeypatch.setattr(orders, "_MOST", 10)
    with pytest.raises(InvalidInputError, match="context_length"):
        _ = corpus_structure(Corpus.from_sentences([range(10)])).priorities


def test_summary_speaks_the_field(worked_example):
    summary = corpus_structure(worked_example).summary(most=2)
    assert summary["realizable"] is True
    assert summary["orders"] == {"S": [["S", "P"]], "V": [["V", "S"]]}
    assert summary["queries"] == 4
    assert summary["classes"]["S"]["optimal"] == ["S"]
