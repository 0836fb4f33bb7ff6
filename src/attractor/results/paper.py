"""The papers, and how to cite them."""

from __future__ import annotations

from dataclasses import dataclass

from attractor.support.checks import check_kinds, suggest
from attractor.support.errors import InvalidInputError


@dataclass(frozen=True)
class Paper:
    """A paper whose statements and figures are checked.

    Attributes:
        name: Its name in this library.
        title: Its title.
        authors: Its authors, as BibTeX wants them; empty for folklore, which has none.
        year: Of its first version; None for folklore.
        arxiv: Its number on arXiv; empty if it is not there.
    """

    name: str
    title: str
    authors: str = ""
    year: int | None = None
    arxiv: str = ""

    @property
    def citation(self) -> str:
        """Its title, and where it is found."""
        return f"{self.title} (arXiv {self.arxiv})" if self.arxiv else self.title

    def bibtex(self, statement: str = "") -> str:
        """A BibTeX entry; ``statement`` names the part of the paper that is cited."""
        check_kinds(statement=(statement, str))
        fields = {
            "title": self.title,
            "author": self.authors,
            "year": self.year,
            "eprint": self.arxiv,
            "archivePrefix": self.arxiv and "arXiv",
            "note": statement,
        }
        lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
        return f"@misc{{{self.name},\n" + ",\n".join(lines) + "\n}"


MAX_MARGIN = Paper(
    "max-margin",
    "Max-Margin Token Selection in Attention Mechanism",
    "Ataee Tarzanagh, Davoud and Li, Yingcong and Zhang, Xuechen and Oymak, Samet",
    2023,
    "2306.13596",
)
TRANSFORMERS_AS_SVMS = Paper(
    "transformers-as-svms",
    "Transformers as Support Vector Machines",
    "Ataee Tarzanagh, Davoud and Li, Yingcong and Thrampoulidis, Christos and Oymak, Samet",
    2023,
    "2308.16898",
)
MIRROR_DESCENT = Paper(
    "mirror-descent",
    "Optimizing Attention with Mirror Descent: Generalized Max-Margin Token Selection",
    "Julistiono, Addison Kristanto and Ataee Tarzanagh, Davoud and Azizan, Navid",
    2024,
    "2410.14581",
)
NEXT_TOKEN = Paper(
    "next-token",
    "Non-asymptotic Convergence of Training Transformers for Next-token Prediction",
    "Huang, Ruiquan and Liang, Yingbin and Yang, Jing",
    2024,
    "2409.17335",
)
LARGE_PROMPT = Paper(
    "large-prompt",
    "Softmax as Linear Attention in the Large-Prompt Regime: a Measure-based Perspective",
    "Boursier, Etienne and Boyer, Claire",
    2025,
    "2512.11784",
)
MECHANICS = Paper(
    "mechanics",
    "Mechanics of Next Token Prediction with Self-Attention",
    "Li, Yingcong and Huang, Yixiao and Ildiz, M. Emrullah and Rawat, Ankit Singh and Oymak, Samet",
    2024,
    "2403.08081",
)
"""What the command ``corpus`` says of labels that conflict is from it."""
PAPERS = {
    paper.name: paper
    for paper in (MAX_MARGIN, TRANSFORMERS_AS_SVMS, MIRROR_DESCENT, NEXT_TOKEN, LARGE_PROMPT)
}
"""The papers whose claims and figures are part of this library, by name."""


def get_paper(name: str) -> Paper:
    """Finds a paper by its name.

    Raises:
        InvalidInputError: If there is none of that name.
    """
    if name not in PAPERS:
        raise InvalidInputError(
            "paper",
            f"there is no paper {name!r}",
            f"{suggest(name, PAPERS)}Give one of {', '.join(PAPERS)}",
        )
    return PAPERS[name]
