"""Long sentences: the answers of written-out contexts, without writing any out."""

from collections import defaultdict

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from attractor.corpora import Corpus, corpus_structure, realizable_part
from attractor.corpora.linear_view import context_ranks, linear_view
from attractor.corpora.parts import conflicting_part
from attractor.corpora.samples import frequent_samples
from attractor.corpora.structures import occurrences
from attractor.support.errors import InvalidInputError


def drawn(seed):
    """A corpus of short sentences and long ones, with tokens that repeat or follow a map."""
    random = np.random.default_rng(seed)
    size = int(random.choice([1, 2, 3, 6, 12]))
    lengths = random.integers(1, random.choice([4, 12, 40]), random.choice([2, 5, 30]))
    lengths[0] = random.integers(2, 150)
    follower = random.permutation(size)
    sentences = []
    for length in lengths:
        sentence = [int(random.integers(size))]
        while len(sentence) < length:
            behind = sentence[-1] if random.random() < 0.7 else random.choice(sentence)
            token = follower[behind] if random.random() < 0.9 else random.integers(size)
            sentence.append(int(token))
        sentences.append(sentence)
    if seed % 2:  # every token stands alone, so that most labels are explained
        sentences += [[token, int(follower[token])] for token in range(size)]
    context_length = [None, None, None, 1, 2, 5][seed % 6]
    counts = random.choice([0.5, 1, 2], len(sentences))
    every_prefix = bool(seed % 5)
    corpus = Corpus(
        np.concatenate(sentences),
        np.cumsum([0, *map(len, sentences)]),
        size,
        context_length=context_length,
        every_prefix=every_prefix,
        counts=counts,
    )
    written = []
    for sentence, count in zip(sentences, counts, strict=True):
        for end in range(1, len(sentence)):
            if every_prefix or end == len(sentence) - 1:
                context = sentence[:end][-(context_length or end) :]
                written.append((tuple(context), sentence[end], count))
    return corpus, written


def kept_by_definition(written, size):
    """The samples of the realizable part, from contexts that are written out."""
    pairs = sorted({(context[0], label) for context, label, _ in written if len(context) == 1})
    tokens, labels = sorted({x for x, _ in pairs}), sorted({y for _, y in pairs})
    gain = np.zeros((len(tokens), len(labels)))
    for token, label in pairs:
        gain[tokens.index(token), labels.index(label)] = sum(
            weight for context, own, weight in written if own == label and token in context
        )
    chosen = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
    follower = {tokens[i]: labels[j] for i, j in chosen if gain[i, j] > 0}
    explains = {label: token for token, label in follower.items()}
    of_query = defaultdict(list)
    for number, (context, label, weight) in enumerate(written):
        known = all(token in follower for token in context)
        if known and explains.get(label) in context:
            if len(context) > 1 or follower[context[0]] == label:
                of_query[context[-1]].append((number, set(context), explains[label], weight))
    kept = []
    for own in of_query.values():
        worth = defaultdict(float)
        for _, context, first, weight in own:
            if len(context) > 1:
                worth[first] += weight
        optimal = set()
        for token in sorted(worth, key=lambda token: (-worth[token], token)):
            gained = 0
            for _, context, first, weight in own:
                if len(context) > 1 and token in context:
                    if first == token and not context & optimal:
                        gained += weight
                    elif first != token and context & optimal == {first}:
                        gained -= weight
            if gained > 0:
                optimal.add(token)
        for number, context, first, _ in own:
            if len(context) == 1 or context & optimal == {first}:
                kept.append(number)
    return sorted(kept)


@pytest.fixture(params=[2**22, 7])
def portion(request, monkeypatch):
    """All at once, and in the smallest portions."""
    monkeypatch.setattr(occurrences, "PORTION", request.param)


@pytest.mark.parametrize("seeds", [range(18), range(18, 36)])
def test_the_realizable_part_is_that_of_written_out_contexts(portion, seeds):
    parts = 0
    for seed in seeds:
        corpus, written = drawn(seed)
        if not any(len(context) == 1 for context, *_ in written):
            continue
        part = realizable_part(corpus)
        assert part.samples.tolist() == kept_by_definition(written, corpus.vocabulary_size), seed
        of_part = [written[sample] for sample in part.samples]
        total = sum(weight for *_, weight in written)
        assert part.share == pytest.approx(sum(weight for *_, weight in of_part) / total)
        for one in (part.shared, part.corpus):  # sentences shared, and contexts of their own
            words = [
                (tuple(one.vocabulary[token] for token in one.context(sample)), weight)
                for sample, weight in enumerate(one.weights)
            ]
            assert words == [(tuple(map(str, context)), weight) for context, _, weight in of_part]
            used = {str(token) for context, label, _ in of_part for token in (*context, label)}
            assert set(one.vocabulary) == used
            assert corpus_structure(one).realizable
        shared, alone = corpus_structure(part.shared), corpus_structure(part.corpus)
        assert shared.orders.edges.tolist() == alone.orders.edges.tolist()
        for one, other in zip(shared.assumptions, alone.assumptions, strict=True):
            assert one.offending.tolist() == other.offending.tolist(), (seed, one.name)
        parts += len(of_part) > corpus.vocabulary_size
    assert parts > 5


@pytest.mark.parametrize("seeds", [range(30), range(30, 60)])
def test_contexts_are_in_the_order_of_written_out_ones(seeds):
    for seed in seeds:
        corpus, written = drawn(seed)
        contexts = [context for context, *_ in written]
        ordered = sorted(set(contexts))
        ranks, count = context_ranks(corpus, np.arange(len(contexts)))
        assert count == len(ordered)
        assert [ordered[rank] for rank in ranks] == contexts, seed


@pytest.mark.parametrize("seed", range(12))
def test_training_takes_the_most_frequent_of_written_out_samples(seed):
    corpus, written = drawn(seed)
    part = conflicting_part(corpus, corpus_structure(corpus).collocation)
    preferred = part.preferred.tolist()
    for chosen, share, labels in (
        (*frequent_samples(corpus, 10**9), [label for _, label, _ in written]),
        (*part.for_training(10**9), preferred),
    ):
        weights = defaultdict(float)
        for (context, _, weight), label in zip(written, labels, strict=True):
            if label >= 0:
                weights[context, label] += weight
        found = {
            (tuple(chosen.context(number).tolist()), int(chosen.labels[number])): weight
            for number, weight in enumerate(chosen.weights)
        }
        total = sum(weights.values())
        assert share == pytest.approx(1) and list(found) == list(weights)
        assert found == pytest.approx({key: each / total for key, each in weights.items()})


def test_what_is_written_out_grows_with_the_length_alone(monkeypatch):
    written = []
    whole = occurrences.ranges

    def counted(first, lengths):
        written.append(int(lengths.sum()))
        return whole(first, lengths)

    places = ("structures.occurrences", "parts", "samples")
    for module in places:
        monkeypatch.setattr(f"attractor.corpora.{module}.ranges", counted)
    follower = np.random.default_rng(0).permutation(6)
    short = [[token, follower[token]] for token in range(6)]
    long = np.random.default_rng(1).integers(0, 6, 20_000)
    corpus = Corpus(np.concatenate([*short, long]), [*range(0, 13, 2), 20_012], 6)
    structure = corpus_structure(corpus)
    part = realizable_part(corpus)
    corpus_structure(part.shared)
    conflicting_part(corpus, structure.collocation).for_training(10_000)
    linear_view(corpus, 16)
    assert len(part.samples) > 3000  # most with a context of thousands of tokens
    assert sum(written) < 20 * len(corpus.tokens)
    with pytest.raises(InvalidInputError, match="contexts of the part have"):
        monkeypatch.setattr("attractor.corpora.parts.MOST_ENTRIES", 10**6)
        _ = part.corpus


def test_more_relations_than_can_be_used_are_refused_before_they_are_found(monkeypatch):
    from attractor.corpora.structures import orders

    monkeypatch.setattr(orders, "_MOST", 1000)
    monkeypatch.setattr(orders, "_Merged", None)
    sentence = np.random.default_rng(0).integers(0, 30, 400)
    with pytest.raises(InvalidInputError, match="more than 1,000 relations"):
        orders.relations(corpus := Corpus(sentence, [0, 400]), corpus.labels)
