"""The findings on a corpus in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from attractor.corpora import CorpusStructure
from attractor.corpora.linear_view import LinearView
from attractor.corpora.parts import ConflictingPart, RealizablePart
from attractor.corpora.structures.structure import REALIZABILITY
from attractor.corpora.two_stages.corpus_training import CONFLICTING, TWO_STAGES, TrainedCorpus
from attractor.report.page import Table
from attractor.report.words import NEAR_RATIO, REACHED_RATIO, near_one
from attractor.support.errors import Status

GLOSSARY = Table(
    ("word", "meaning"),
    (
        (
            "sample",
            "A context with the token that follows it, its label. The last token of the context "
            "is the query: attention compares the others by it.",
        ),
        ("collocation", "Which token follows a token that is the whole context."),
        (
            "explained label",
            "A label that the collocation gives to some token of the context. Attention has to "
            "find that token, and the feed-forward layer says what follows it.",
        ),
        (
            "order under a query",
            "The token that explains the label comes before all other tokens of the context. A "
            "token is optimal if it comes before some and after none, non-optimal if it comes "
            "after some and before none, confused if both, and non-comparable if neither.",
        ),
        (
            "realizable",
            "Every token of a context has a collocation, no two the same; every label is "
            "explained; and the orders have neither cycles nor confused tokens. Then both layers "
            "are predicted to turn to the solutions of two margin problems.",
        ),
        (
            "strongly connected component",
            "Tokens that come before one another, directly or through others. No matrix can order "
            "them, and training is predicted to find a finite mixture of them.",
        ),
    ),
    words=True,
)


def realizable_row(structure: CorpusStructure) -> str:
    """Whether a corpus is realizable, and which assumptions are not met, in as few words."""
    broken = [check for check in structure.assumptions if not check.met]
    of_both = [check for check in broken if check.name in REALIZABILITY]
    those = of_both or broken
    met = ", ".join(f"{one.name} ({percent(one.share)} of the samples in its way)" for one in those)
    if of_both:
        return f"no; not met: {met}"
    return f"yes; of the other assumptions not met: {met}" if those else "yes"


def orders_row(structure: CorpusStructure) -> str:
    """How much is ordered, in as few words."""
    orders = structure.orders
    queries, cyclic = len(np.unique(orders.edges[:, 0])), int(orders.cyclic.sum())
    return f"{len(orders.edges):,} under {queries:,} queries, {cyclic:,} of them on cycles"


def conflicting_row(part: ConflictingPart) -> str:
    """What the theory of conflicting labels has to say, in as few words."""
    words = f"{percent(part.share)} of the samples, {len(part.graphs.edges):,} relations"
    if not len(part.graphs.edges):
        return words
    return (
        f"{words}, {percent(part.cyclic_share)} of them on cycles, in {len(part.components):,} "
        "components"
    )


def linear_row(view: LinearView) -> str:
    """What a linear decoder on vectors of whole contexts can do, in as few words."""
    separable = {True: "separable", False: "not separable", None: "perhaps separable"}
    return (
        f"{view.contexts:,} contexts, entropy of the next token {view.entropy:.4g}; in "
        f"{view.dimension:,} dimensions {view.taken:,} of them are {separable[view.separable]}, "
        f"log-odds {'' if view.compatible else 'not '}compatible"
    )


def contexts_sentence(structure: CorpusStructure) -> str:
    """Says what a sample is."""
    corpus = structure.corpus
    length = corpus.context_length
    what = (
        "every token of a sentence but the first, as a label"
        if corpus.every_prefix
        else "every label given"
    )
    before = "all" if length is None else "the last one" if length == 1 else f"the last {length}"
    return f"A sample is {what}, with {before} of the tokens before it as its context."


def realizability_sentences(structure: CorpusStructure) -> list[str]:
    """Says whether a corpus is realizable, and if not, what is in the way."""
    if structure.realizable:
        others = [
            check.name
            for check in structure.assumptions
            if not check.met and check.name not in REALIZABILITY
        ]
        if not others:
            return ["The corpus is realizable, and meets every other assumption of the theory."]
        return [f"The corpus is realizable. Not met of the other assumptions: {', '.join(others)}."]
    sentences = ["The corpus is not realizable: what theory says of both layers does not cover it."]
    for check in structure.assumptions:
        if check.met or check.name not in REALIZABILITY:
            continue
        example = f" For example: {check.examples[0]}." if check.examples else ""
        sentences.append(
            f"Not met: {check.name}. {check.found[:1].upper()}{check.found[1:]}; "
            f"{percent(check.share)} of the samples are in its way.{example}"
        )
    return sentences


def conflicting_sentences(part: ConflictingPart) -> list[str]:
    """Says what the theory of conflicting labels has to say, where the other has nothing."""
    which = (
        "those whose context holds the token that explains the label"
        if part.explained
        else "those whose label is a token of their own context"
    )
    sentences = [
        "What covers it is the theory of graphs with cycles (Mechanics of Next Token Prediction "
        f"with Self-Attention, arXiv 2403.08081), for {percent(part.share)} of the samples: "
        f"{which}, which is the token they prefer."
    ]
    if not len(part.graphs.edges):
        return [*sentences, "They state no relations, so that attention has nothing to choose."]
    cyclic = int(part.graphs.cyclic.sum())
    if not cyclic:
        return [
            *sentences,
            f"Of their {len(part.graphs.edges):,} relations none lies on a cycle: training is "
            "predicted to turn to a direction, with no finite part.",
        ]
    sentences.append(
        f"{percent(part.cyclic_share)} of their {len(part.graphs.edges):,} relations lie on "
        f"cycles: {len(part.components):,} strongly connected components of 2 to "
        f"{int(part.components.max()):,} tokens, and a cyclic subspace of dimension "
        f"{part.dimension:,} if embeddings are linearly independent. Training is predicted to turn "
        "to a direction that prefers components to one another, and to stay finite within them."
    )
    return sentences


def collocation_sentence(structure: CorpusStructure) -> str:
    """Says which tokens have a collocation."""
    found = structure.collocation
    parts = [
        f"{int((found.next_token >= 0).sum()):,} of {len(found.next_token):,} tokens have one",
        f"{len(found.conflicts):,} stand alone with several labels",
        f"{len(found.missing):,} never stand alone",
        f"{len(found.shared):,} follow more than one token",
    ]
    return f"{'; '.join(parts)}."


def orders_sentence(structure: CorpusStructure) -> str:
    """Says how much is ordered, and counts tokens of every class over all queries."""
    orders = structure.orders
    queries = len(np.unique(orders.edges[:, 0]))
    return (
        f"{len(orders.edges):,} relations under {queries:,} queries, {int(orders.cyclic.sum()):,} "
        f"of them on cycles; over all queries {len(orders.optimal):,} optimal, "
        f"{len(orders.confused):,} confused and {len(orders.non_optimal):,} non-optimal tokens."
    )


def linear_sentences(view: LinearView) -> list[str]:
    """Says what a linear decoder on vectors of whole contexts can do."""
    kind = "unit" if view.contexts <= view.dimension else "random"
    separable = {True: "separable", False: "not separable", None: "perhaps separable, or not"}
    return [
        f"Of {view.contexts:,} different contexts those with {percent(view.certain)} of the "
        f"samples are always followed by the same token. On average over samples the number of "
        f"different tokens that follow is {view.followers:.4g}. The entropy of the next token is "
        f"{view.entropy:.4g}; no cross-entropy can go below it.",
        f"For a linear decoder on {kind} vectors of {view.dimension:,} dimensions, one for each "
        f"context, the {view.taken:,} most frequent contexts ({percent(view.share)} of the "
        f"samples) are {separable[view.separable]}, and their log-odds are "
        f"{'' if view.compatible else 'not '}compatible (Implicit Optimization Bias of Next-token "
        "Prediction in Linear Models, arXiv 2402.18551).",
    ]


def part_row(part: RealizablePart) -> str:
    """How much of a corpus a realizable part is, in as few words."""
    return f"{percent(part.share)} of the samples, {part.shared.vocabulary_size:,} tokens"


def part_sentence(part: RealizablePart) -> str:
    """Says how much of a corpus a realizable part is, and what was removed."""
    removed = ", ".join(
        f"{percent(share)} for {name}" for name, share in part.removed.items() if share
    )
    return f"The largest realizable part found has {part_row(part)}" + (
        f"; removed one after another: {removed}." if removed else "."
    )


def training_sentences(trained: TrainedCorpus) -> list[str]:
    """Says where training went."""
    found = trained.summary
    every = (
        "all of them"
        if found["share"] > 1 - 1e-12
        else f"the most frequent, {percent(found['share'])} by weight"
    )
    amount = f"{found['samples']:,} different samples ({every})"
    if trained.kind == TWO_STAGES:
        return [
            f"Trained in two stages of {found['steps']:,} steps on {amount}.",
            *(_direction(name, found[name]) for name in ("feed_forward", "attention")),
            "In every sample the tokens that explain the label end with an attention of "
            f"{near_one(found['least_optimal_attention'])} or more.",
        ]
    assert trained.kind == CONFLICTING
    outside = {"status": found["status"], "correlation": found["correlation_outside"]}
    sentences = [
        f"Trained on conflicting labels, {found['steps']:,} steps of length "
        f"{found['step_length']:g} on {amount}.",
        f"{_direction('attention', outside)} The part in the cyclic subspace is left out there.",
    ]
    if found["status"] != str(Status.OPTIMAL):
        return [*sentences, "Without a direction no finite part is predicted either."]
    return [
        *sentences,
        f"In the cyclic subspace, of dimension {found['cyclic_dimension']:,}, the matrix is "
        f"{_short(found['finite_distance'])} away from the finite part predicted, whose norm is "
        f"{_short(found['finite_norm'])}; steps of constant length keep it off by about half of "
        f"one. The loss cannot go below {_short(found['loss_floor'])}. "
        f"Attention gives {percent(found['mass'])} to the components of the preferred tokens.",
    ]


def has_arrived(trained: TrainedCorpus) -> bool:
    """Whether all that has a direction points there."""
    found = trained.summary
    if trained.kind == CONFLICTING:
        layers = [(found["status"], found["correlation_outside"])]
    else:
        both = (found["feed_forward"], found["attention"])
        layers = [(layer["status"], layer["correlation"]) for layer in both]
    return all(
        correlation is None or correlation >= REACHED_RATIO
        for status, correlation in layers
        if status == str(Status.OPTIMAL)
    )


def percent(share: float | None) -> str:
    """A share in percent, with three digits; one that is not quite all of it says so."""
    if share is not None and 0.9995 <= share < 1 - 1e-12:
        return "over 99.9 %"
    return "-" if share is None else f"{100 * share:.3g} %"


def _direction(layer: str, found: dict[str, Any]) -> str:
    name = layer.replace("_", "-")
    name = "Attention" if name == "attention" else f"The {name} layer"
    correlation = found["correlation"]
    if found["status"] != str(Status.OPTIMAL):
        return (
            f"{name} has no direction to turn to: with these embeddings the margin problem is "
            f"{found['status']}."
        )
    if correlation is None:
        return f"{name} has not moved, or has no direction to turn to."
    got = (
        "points where it is predicted to"
        if correlation >= REACHED_RATIO
        else "is on its way to where it is predicted to point"
        if correlation >= NEAR_RATIO
        else "does not point where it is predicted to yet"
    )
    return f"{name} {got}: its correlation with the solution is {near_one(correlation)}."


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
