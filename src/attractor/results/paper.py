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
MULTICLASS_DESCENT = Paper(
    "multiclass-descent",
    "Implicit Bias of Spectral Descent and Muon on Multiclass Separable Data",
    "Fan, Chen and Schmidt, Mark and Thrampoulidis, Christos",
    2025,
    "2502.04664",
)
ASSOCIATIVE_MEMORY = Paper(
    "associative-memory",
    "Muon in Associative Memory Learning: Training Dynamics and Scaling Laws",
    "Wang, Kaifei and Li, Binghui and Zhong, Han and Lu, Pinyan and Wang, Liwei",
    2026,
    "2602.05725",
)
LARGE_PROMPT = Paper(
    "large-prompt",
    "Softmax as Linear Attention in the Large-Prompt Regime: a Measure-based Perspective",
    "Boursier, Etienne and Boyer, Claire",
    2025,
    "2512.11784",
)
GAUSSIAN_MIXTURES = Paper(
    "gaussian-mixtures",
    "Softmax attention on Gaussian mixtures: linear when it can, selective when it must",
    "Gabet and Boursier, Etienne and Boyer, Claire",
    2026,
    "",
)
TOKEN_SAMPLE_COMPLEXITY = Paper(
    "token-sample-complexity",
    "Token Sample Complexity of Attention",
    "Bohbot, L{\\'e}a and Letrouit, Cyril and Peyr{\\'e}, Gabriel and "
    "Vialard, Fran{\\c c}ois-Xavier",
    2025,
    "2512.10656",
)
CRITICAL_TEMPERATURE = Paper(
    "critical-temperature",
    "A Unified Framework for Critical Scaling of Inverse Temperature in Self-Attention",
    "Hayase, Tomohiro and Karakida, Ryo",
    2026,
    "2605.12697",
)
IN_CONTEXT_CONVERGENCE = Paper(
    "in-context-convergence",
    "In-Context Convergence of Transformers",
    "Huang, Yu and Cheng, Yuan and Liang, Yingbin",
    2023,
    "2310.05249",
)
TRAINED_LINEAR_MODELS = Paper(
    "trained-linear-models",
    "Trained Transformers Learn Linear Models In-Context",
    "Zhang, Ruiqi and Frei, Spencer and Bartlett, Peter L.",
    2023,
    "2306.09927",
)
PRECONDITIONED_DESCENT = Paper(
    "preconditioned-descent",
    "Transformers Learn to Implement Preconditioned Gradient Descent for In-Context Learning",
    "Ahn, Kwangjun and Cheng, Xiang and Daneshmand, Hadi and Sra, Suvrit",
    2023,
    "2306.00297",
)
FOLKLORE = Paper("folklore", "Folklore: what is believed of optimizers of attention")
PAPERS = {each.name: each for each in tuple(vars().values()) if isinstance(each, Paper)}
"""The papers above by name, in that order; folklore, which has no paper, comes last."""


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
