"""Realizable corpora that are closed under taking prefixes."""

from __future__ import annotations

from attractor.checks import check_count, check_flags
from attractor.next_token.corpus import Corpus
from attractor.next_token.generators.derangement import MOST_TOKENS, derangement
from attractor.next_token.generators.order_first import Drawn
from attractor.randomness import generator as generator_of


def rolled_out_corpus(
    vocabulary: int = 20, *, length: int = 4, outnumbered: bool = False, seed: int = 0
) -> Drawn:
    """A realizable corpus of one sentence for each first token, each prefix of which is a sample.

    The collocation is a random permutation without fixed points. A sentence goes on with what
    follows one of its tokens, drawn among those that contradict no relation so far: the token may
    not be non-optimal under the query, and no other token of the sentence may be optimal. A
    sentence that cannot go on ends early, and is counted.

    Args:
        vocabulary: Number V of tokens, and of sentences.
        length: Number of tokens of a sentence, the last label included.
        outnumbered: Whether an optimal token may occur less often than another of its context.
        seed: Names what is random.

    Raises:
        InvalidInputError: If the vocabulary has fewer than two tokens, or sentences fewer.
    """
    check_flags(outnumbered=outnumbered)
    vocabulary = check_count("vocabulary", vocabulary, 2, MOST_TOKENS)
    length = check_count("length", length, 2, MOST_TOKENS)
    generator = generator_of(seed, purpose="rolled-out corpus")
    follows, redrawn = derangement(vocabulary, generator)
    optimal: list[set[int]] = [set() for _ in range(vocabulary)]
    other: list[set[int]] = [set() for _ in range(vocabulary)]
    sentences, stuck = [], 0
    for start in generator.permutation(vocabulary).tolist():
        words = [start]
        while len(words) < length:
            query, seen = words[-1], sorted(set(words))
            most = max(words.count(token) for token in seen)
            allowed = [
                token
                for token in seen
                if len(seen) == 1  # which states no relation
                or (
                    token not in other[query]
                    and not (optimal[query] & set(seen)) - {token}
                    and (outnumbered or words.count(token) == most)
                )
            ]
            if not allowed:
                stuck += 1
                break
            winner = int(generator.choice(allowed))
            if len(seen) > 1:
                optimal[query].add(winner)
                other[query] |= set(seen) - {winner}
            words.append(int(follows[winner]))
        sentences.append(words)
    corpus = Corpus.from_sentences(sentences, range(vocabulary))
    return Drawn(corpus, redrawn, stuck)
