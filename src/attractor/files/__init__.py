"""The files that users keep data in: tokens, corpora, heads, in-context tasks, results."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.files.case import Case as Case
    from attractor.files.contents import (
        ArrayFile as ArrayFile,
        DataSet as DataSet,
        FileContents as FileContents,
        data_hash as data_hash,
    )
    from attractor.files.reading import (
        load as load,
        load_tokens as load_tokens,
        register_file as register_file,
    )
    from attractor.files.token_file import (
        LAYOUT as LAYOUT,
        LoadedTokens as LoadedTokens,
        save_tokens as save_tokens,
    )

import_on_first_use(__name__)
