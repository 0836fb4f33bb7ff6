"""What the words of an audit mean: the glossary of its report."""

from __future__ import annotations

from attractor.heads.audit.summary import glossary


def audit_words_page() -> str:
    """The page: a table for each group of words."""
    text = "# The words of an audit\n\n"
    text += "What stands in findings, tables and pictures of [an audit of heads](../heads.md); "
    text += "its report ends with the same list.\n\n"
    for title, entries in glossary().items():
        text += f"## {title}\n\n| word | meaning |\n| --- | --- |\n"
        text += "".join(f"| {word} | {meaning} |\n" for word, meaning in entries) + "\n"
    return text
