"""The structure of random corpora against dictionaries and sets, with every prefix written out."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.corpora import Corpus, TokenClass, corpus_structure
from attractor.support.errors import InvalidInputError

SIZE = 6


def corpora():
    """Few tokens and few sentences, so that repetition, conflicts and cycles are common."""
    return (
        st.integers(1, SIZE)
        .flatmap(
            lambda size: st.tuples(
                st.lists(
                    st.lists(st.integers(0, size - 1), min_size=1, max_size=7),
                    min_size=1,
                    max_size=8,
                ),
                st.sampled_from([None, None, 1, 2, 3]),
                st.booleans(),
                st.booleans(),
            )
        )
        .filter(lambda drawn: any(len(sentence) > 1 for sentence in drawn[0]))
    )


class Oracle:
    """The definitions, followed word by word."""

    def __init__(self, sentences, length, every_prefix, counts):
        self.samples = []
        for sentence, count in zip(sentences, counts, strict=True):
            ends = range(1, len(sentence)) if every_prefix else [len(sentence) - 1]
            for end in ends:
                if end:
                    context = tuple(sentence[:end] if length is None else sentence[:end][-length:])
                    self.samples.append((context, sentence[end], count))
        alone = defaultdict(set)
        for context, label, _ in self.samples:
            if len(context) == 1:
                alone[context[0]].add(label)
        self.followers = {token: min(found) for token, found in alone.items() if len(found) == 1}
        self.conflicts = {token for token, found in alone.items() if len(found) > 1}
        times = Counter(self.followers.values())
        self.shared = {label for label, number in times.items() if number > 1}
        self.explains = {
            label: token for token, label in self.followers.items() if label not in self.shared
        }
        self.orders = self.graph(self.preferred)
        self.priorities = self.graph(lambda context, label: label)

    def preferred(self, context, label):
        token = self.explains.get(label)
        return token if token in context else None

    def graph(self, preferred):
        edges = defaultdict(set)
        for context, label, _ in self.samples:
            first = preferred(context, label)
            if first is not None:
                edges[context[-1]] |= {(first, other) for other in context if other != first}
        return {query: found for query, found in edges.items() if found}

    def classes(self, query):
        edges = self.orders.get(query, set())
        before, after = {a for a, _ in edges}, {b for _, b in edges}
        return {
            TokenClass.OPTIMAL: before - after,
            TokenClass.CONFUSED: before & after,
            TokenClass.NON_OPTIMAL: after - before,
        }

    def breaking(self):
        """The samples in the way of each assumption."""
        contexts = {context for context, *_ in self.samples}
        found = defaultdict(list)
        for number, (context, label, _) in enumerate(self.samples):
            query, first = context[-1], self.preferred(context, label)
            others = [] if first is None else [token for token in context if token != first]
            cyclic = [t for t in others if reaches(self.orders.get(query, ()), t, first)]
            confused = self.classes(query)[TokenClass.CONFUSED]
            often = Counter(context)
            for name, breaks in {
                "collocation": any(token not in self.followers for token in context),
                "injective collocation": label in self.shared,
                "labels explained": first is None,
                "well-defined orders": bool(cyclic),
                "no confused tokens": first is not None and bool(confused & set(context)),
                "optimal token as frequent as any": first is not None
                and often[first] < max(often.values()),
                "closed under prefixes": any(
                    context[:end] not in contexts for end in range(1, len(context))
                ),
            }.items():
                if breaks:
                    found[name].append(number)
        return found


def reaches(edges, start, goal):
    seen, stack = {start}, [start]
    while stack:
        node = stack.pop()
        for a, b in edges:
            if a == node and b not in seen:
                seen.add(b)
                stack.append(b)
    return goal in seen


def components(edges):
    nodes = {node for edge in edges for node in edge}
    return {
        frozenset(b for b in nodes if reaches(edges, a, b) and reaches(edges, b, a)) for a in nodes
    }


def as_sets(graphs):
    found = defaultdict(set)
    for query, before, after in graphs.edges.tolist():
        found[query].add((before, after))
    return dict(found)


@given(corpora())
def test_as_the_definitions_say(drawn):
    sentences, length, every_prefix, weighted = drawn
    counts = [1 + number % 3 if weighted else 1 for number in range(len(sentences))]
    corpus = Corpus(
        np.concatenate(sentences),
        np.cumsum([0, *map(len, sentences)]),
        SIZE,
        context_length=length,
        every_prefix=every_prefix,
        counts=counts,
    )
    oracle = Oracle(sentences, length, every_prefix, counts)
    structure = corpus_structure(corpus)

    samples = [
        (tuple(corpus.context(number).tolist()), int(corpus.labels[number]))
        for number in range(len(corpus.positions))
    ]
    assert samples == [(context, label) for context, label, _ in oracle.samples]
    assert corpus.weights.tolist() == [weight for *_, weight in oracle.samples]

    found = structure.collocation
    known = {token: int(next) for token, next in enumerate(found.next_token) if next >= 0}
    assert known == oracle.followers
    assert set(found.conflicts.tolist()) == oracle.conflicts
    assert set(found.shared.tolist()) == oracle.shared
    assert found.explaining(corpus).tolist() == [
        -1 if first is None else first
        for first in (oracle.preferred(context, label) for context, label, _ in oracle.samples)
    ]

    assert as_sets(structure.orders) == oracle.orders
    assert as_sets(structure.priorities) == oracle.priorities
    for graphs, plain in (
        (structure.orders, oracle.orders),
        (structure.priorities, oracle.priorities),
    ):
        together = defaultdict(set)
        for (query, token), number in zip(
            graphs.nodes.tolist(), graphs.components.tolist(), strict=True
        ):
            together[query, number].add(token)
        expected = {(query, one) for query in plain for one in components(plain[query])}
        assert {(query, frozenset(one)) for (query, _), one in together.items()} == expected
    for query in range(SIZE):
        classes = structure.orders.classes(query)
        for kind, tokens in oracle.classes(query).items():
            assert set(classes[kind]) == tokens

    breaking, total = oracle.breaking(), sum(weight for *_, weight in oracle.samples)
    for check in structure.assumptions:
        assert check.offending.tolist() == breaking[check.name], check.name
        share = sum(oracle.samples[number][2] for number in breaking[check.name]) / total
        assert check.share == pytest.approx(share)
        if check.name != "collocation":  # a token may be missing from every context
            assert check.met == (not breaking[check.name]), check.name


def test_tokens_one_after_another_make_one_collocation_and_no_order():
    structure = corpus_structure(Corpus.from_sentences([[0, 1, 2, 0]], context_length=1))
    assert structure.collocation.next_token.tolist() == [1, 2, 0]
    assert structure.realizable and not len(structure.orders.edges)


def test_a_sentence_of_one_token_over_and_over():
    structure = corpus_structure(Corpus.from_sentences([["a"] * 5, ["a"] * 5]))
    assert structure.realizable and structure.collocation.words() == {"a": "a"}
    assert not len(structure.orders.edges) and not len(structure.priorities.edges)


def test_sentences_of_single_tokens_are_no_corpus():
    with pytest.raises(InvalidInputError, match="nothing follows"):
        Corpus.from_sentences([["a"], ["b"]])
