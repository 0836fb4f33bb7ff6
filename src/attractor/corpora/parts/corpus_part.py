"""Some samples of a corpus as a corpus, in sentences that they share."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.vocabulary import frequent_tokens


class CorpusPart(Corpus):
    """Some samples of a corpus, over the tokens that they use; no context is written out."""

    def __init__(self, whole: Corpus, samples: Int[np.ndarray, "n"]) -> None:
        """Takes some samples, in increasing order."""
        first, last = whole.first[samples], whole.positions[samples]
        edges = np.zeros(len(whole.tokens) + 1, dtype=np.int64)
        np.add.at(edges, first, 1)
        np.add.at(edges, last + 2, -1)  # behind the label
        used = np.cumsum(edges[:-1]) > 0
        begins = used & ~np.append(False, used[:-1])
        begins[whole.starts[:-1]] = used[whole.starts[:-1]]
        place = np.cumsum(used) - 1
        tokens, names, _ = frequent_tokens(whole.tokens[used], whole.vocabulary, None)
        super().__init__(
            tokens,
            np.append(place[begins], len(tokens)),
            names,
            context_length=whole.context_length,
            every_prefix=False,
            counts=whole.counts[whole.sentence_of[begins]],
        )
        vars(self)["positions"] = place[last]
