"""Data that claims of several papers are checked on, and the generator that such data draw from."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.papers.large_prompt.data import line as line, random_head as random_head
    from attractor.papers.large_prompt.regression import (
        correlated as correlated,
        random_task as random_task,
        unequal as unequal,
    )
    from attractor.papers.max_margin.data import (
        random_prompt_data as random_prompt_data,
        three_sequences as three_sequences,
        two_scores as two_scores,
    )
    from attractor.papers.next_token.data import grammar as grammar
    from attractor.papers.transformers_as_svms.data import (
        random_unit_tokens as random_unit_tokens,
    )
    from attractor.support.randomness import generator as generator

import_on_first_use(__name__)
