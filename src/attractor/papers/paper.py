"""The papers, and how to cite them."""

from __future__ import annotations

from dataclasses import dataclass

from attractor.errors import InvalidInputError


@dataclass(frozen=True)
class Paper:
    """A paper whose statements and figures are checked.

    Attributes:
        name: What it is called here.
        title: Its title.
        authors: Its authors, as BibTeX wants them.
        year: Of its first version.
        arxiv: Its number on arXiv.
    """

    name: str
    title: str
    authors: str
    year: int
    arxiv: str

    def bibtex(self, statement: str = "") -> str:
        """A BibTeX entry; ``statement`` says what of the paper is meant."""
        note = f",\n  note = {{{statement}}}" if statement else ""
        return (
            f"@misc{{{self.name},\n  title = {{{self.title}}},\n  author = {{{self.authors}}},\n"
            f"  year = {{{self.year}}},\n  eprint = {{{self.arxiv}}},\n"
            f"  archivePrefix = {{arXiv}}{note}\n}}"
        )


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
MECHANICS = Paper(
    "mechanics",
    "Mechanics of Next Token Prediction with Self-Attention",
    "Li, Yingcong and Huang, Yixiao and Ildiz, M. Emrullah and Rawat, Ankit Singh and Oymak, Samet",
    2024,
    "2403.08081",
)
LINEAR_NEXT_TOKEN = Paper(
    "linear-next-token",
    "Implicit Optimization Bias of Next-token Prediction in Linear Models",
    "Thrampoulidis, Christos",
    2024,
    "2402.18551",
)
PAPERS = {
    paper.name: paper
    for paper in (
        MAX_MARGIN,
        TRANSFORMERS_AS_SVMS,
        MIRROR_DESCENT,
        NEXT_TOKEN,
        MECHANICS,
        LINEAR_NEXT_TOKEN,
    )
}


def get_paper(name: str) -> Paper:
    """Finds a paper by its name.

    Raises:
        InvalidInputError: If there is none of that name.
    """
    if name not in PAPERS:
        raise InvalidInputError(
            "paper", f"there is no paper {name!r}", f"Give one of {', '.join(PAPERS)}"
        )
    return PAPERS[name]
