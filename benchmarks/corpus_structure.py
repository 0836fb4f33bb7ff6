"""What a corpus hides, against plain Python: ``python -m benchmarks.corpus_structure``.

The other side writes every prefix out and keeps dictionaries and sets; components are found by
NetworkX, query by query. Both sides give the same structure, which is asserted.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache

import numpy as np

from benchmarks.machine import Worker, machine, seconds, spread, versions

SIZES = {
    "whole prefixes, vocabulary of 2,000": (4_000, 2_000, None),
    "last 3 tokens, vocabulary of 2,000": (20_000, 2_000, 3),
    "whole prefixes, vocabulary of 20": (4_000, 20, None),
}
"""Sentences, vocabulary and context length."""
LENGTH = 16
ROUNDS = 7


@cache
def corpus(size: str):
    """Sentences of tokens that are as frequent as words are, and of any length to ``LENGTH``."""
    from attractor.corpora import Corpus

    count, vocabulary, context_length = SIZES[size]
    random = np.random.default_rng(0)
    frequency = 1 / np.arange(1, vocabulary + 1)
    lengths = random.integers(2, LENGTH + 1, count)
    tokens = random.choice(vocabulary, lengths.sum(), p=frequency / frequency.sum())
    # Every token begins a sentence of two, so that all of them have collocations to look for.
    pairs = np.stack([np.arange(vocabulary), random.permutation(vocabulary)], axis=1)
    return Corpus(
        np.concatenate([tokens, pairs.ravel()]),
        np.cumsum(np.r_[0, lengths, np.full(vocabulary, 2)]),
        vocabulary,
        context_length=context_length,
    )


def ours(size: str) -> tuple:
    """Collocation, orders and token-priority graphs as sorted arrays."""
    from attractor.corpora import collocation, partial_orders, token_priority_graphs

    found = collocation(corpus(size))
    return found, partial_orders(corpus(size), found), token_priority_graphs(corpus(size))


@cache
def sentences(size: str) -> list[list[int]]:
    """The sentences as plain lists, made beforehand."""
    whole = corpus(size)
    return [part.tolist() for part in np.split(whole.tokens, whole.starts[1:-1])]


def plain(size: str) -> tuple[dict, dict, dict]:
    """The same by dictionaries and sets."""
    length = SIZES[size][2]
    samples = [
        (sentence[max(0, end - length) if length else 0 : end], sentence[end])
        for sentence in sentences(size)
        for end in range(1, len(sentence))
    ]
    alone = defaultdict(set)
    for context, label in samples:
        if len(context) == 1:
            alone[context[0]].add(label)
    follower = {token: next(iter(labels)) for token, labels in alone.items() if len(labels) == 1}
    explains = defaultdict(list)
    for token, label in follower.items():
        explains[label].append(token)
    orders, priorities = defaultdict(set), defaultdict(set)
    for context, label in samples:
        distinct = set(context)
        priorities[context[-1]].update((label, other) for other in distinct if other != label)
        tokens = explains.get(label, ())
        if len(tokens) == 1 and tokens[0] in distinct:
            first = tokens[0]
            orders[context[-1]].update((first, other) for other in distinct if other != first)
    return follower, orders, priorities


def our_components(size: str, graphs) -> np.ndarray:
    """Components of every query, from the edges."""
    from attractor.corpora import QueryGraphs

    return QueryGraphs(graphs.edges, graphs.vocabulary).components


def their_components(priorities: dict) -> int:
    """Components of every query by NetworkX, from sets of edges; how many there are."""
    import networkx

    return sum(
        sum(1 for _ in networkx.strongly_connected_components(networkx.DiGraph(edges)))
        for edges in map(list, priorities.values())
    )


def serve(size: str) -> None:
    """Prints the seconds of either side, in turn, once both agree."""
    found, orders, graphs = ours(size)
    follower, plain_orders, priorities = plain(size)
    priorities = {query: edges for query, edges in priorities.items() if edges}
    known = {token: label for token, label in enumerate(found.next_token.tolist()) if label >= 0}
    assert known == follower
    for edges, expected in ((orders.edges, plain_orders), (graphs.edges, priorities)):
        triples = {(query, *edge) for query, own in expected.items() for edge in own}
        assert set(map(tuple, edges.tolist())) == triples
    assert their_components(priorities) == our_components(size, graphs).max() + 1
    print(len(corpus(size).positions), len(orders.edges), len(graphs.edges), flush=True)
    for _ in sys.stdin:
        print(
            seconds(lambda: ours(size)),
            seconds(lambda: plain(size)),
            seconds(lambda: our_components(size, graphs)),
            seconds(lambda: their_components(priorities)),
            flush=True,
        )


def section() -> str:
    """Measures and returns a section of RESULTS.md."""
    lines = []
    for size in SIZES:
        worker = Worker("benchmarks.corpus_structure", size, single_thread=True)
        samples, orders, graphs = map(int, worker.ready)
        rounds = np.array([worker.run() for _ in range(ROUNDS)])
        worker.close()
        ours, plain, components, networkx = (spread(column.tolist()) for column in rounds.T)
        ratios = [spread((rounds[:, b] / rounds[:, a]).tolist()) for a, b in ((0, 1), (2, 3))]
        lines.append(
            f"| {size} | {samples:,} | {orders:,} and {graphs:,} | {ours} | {plain} "
            f"| **{ratios[0]}** | {components} | {networkx} | **{ratios[1]}** |"
        )
    return f"""## What a corpus hides

Sentences of 2 to {LENGTH} tokens, as frequent as words are. Structure: the collocation, the orders
and the token-priority graphs, from arrays here and from dictionaries and sets there, every prefix
written out. Components: the strongly connected components of all token-priority graphs, from
sorted edges here and by NetworkX from lists of edges there. Both sides in one process, in turn,
{ROUNDS} times, on one core; they give the same collocations, relations and numbers of components.
Medians with the smallest and the largest.

{machine()}; {versions("numpy", "scipy", "networkx")}

| corpus | samples | relations, orders and graphs | structure, s | plain Python, s | ratio | components, s | NetworkX, s | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""  # noqa: E501 - a table is one line


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        print(section())
