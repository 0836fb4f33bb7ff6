"""The files that users keep data in: tokens, corpora, heads, in-context tasks, results."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.files.case import Case as Case
    from attractor.files.classifiers import (
        CLASSIFIERS_LAYOUT as CLASSIFIERS_LAYOUT,
        ClassifierCase as ClassifierCase,
        save_classifiers as save_classifiers,
    )
    from attractor.files.contents import (
        ArrayFile as ArrayFile,
        DataSet as DataSet,
        FileContents as FileContents,
    )
    from attractor.files.corpus import (
        CORPUS_LAYOUT as CORPUS_LAYOUT,
        CorpusCase as CorpusCase,
        save_corpus as save_corpus,
    )
    from attractor.files.head import (
        HEAD_LAYOUT as HEAD_LAYOUT,
        HeadCase as HeadCase,
        save_head as save_head,
    )
    from attractor.files.in_context import (
        IN_CONTEXT_LAYOUT as IN_CONTEXT_LAYOUT,
        InContextCase as InContextCase,
        save_in_context as save_in_context,
    )
    from attractor.files.reading import (
        load as load,
        load_corpus as load_corpus,
        load_head as load_head,
        load_tokens as load_tokens,
        register_file as register_file,
    )
    from attractor.files.regression import (
        REGRESSION_LAYOUT as REGRESSION_LAYOUT,
        RegressionCase as RegressionCase,
        save_regression as save_regression,
    )
    from attractor.files.token_file import (
        LAYOUT as LAYOUT,
        LoadedTokens as LoadedTokens,
        save_tokens as save_tokens,
    )

import_on_first_use(__name__)
