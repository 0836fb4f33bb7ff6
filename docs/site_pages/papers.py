"""Every claim and every figure of the papers, from their registries."""

from __future__ import annotations

from collections.abc import Mapping

from attractor.papers import Claim, Paper, PaperFigure, all_claims, all_figures
from attractor.papers.ledger.index import listed, papers
from attractor.papers.ledger.places import places
from attractor.papers.statement import all_statements, by_paper

_PREAMBLE = """\
An outcome is computed from data each time it is asked for and never stored. The tests have every
claim come out as *holds* on data that are made for it, and want its control, a wrong conclusion
measured the same way, to fail there. Where a remark begins with *fails* the statement as it reads
does not hold on other data; the smallest counterexample found is then saved.
[Statuses](../statuses.md) says what each outcome means.
"""


def paper_pages(found: Mapping[str, str] | None = None) -> dict[str, str]:
    """The pages by path: a list of papers, and one page for each with its claims and figures.

    Args:
        found: What was found wrong, as links, by name of the claim or figure that measures it.
    """
    found = found or {}
    folders = [*places()]
    rows = ""
    for name in folders:
        claims, figures = len(all_claims(name)), len(all_figures(name))
        rows += f"| [{papers()[name].title}]({name}.md) | {claims} | {figures} |\n"
    index = (
        "# Papers\n\nStatements and experiments of each paper that one command checks: first those "
        "of the library, then those of packs, folklore among them: what is believed and in no "
        "paper.\n\n"
        f"| paper | claims | figures |\n| --- | --- | --- |\n{rows}\n"
        "`attractor claims --all` checks every claim, `attractor figures --all` draws every "
        "figure ([how](../../claims.md)); [Against the published figures]"
        "(../../published_figures.md) says what agrees, and [What we found wrong]"
        "(../found_wrong.md) what does not hold. [Theory](../../theory/index.md) puts the "
        "statements together.\n\n"
        "```{toctree}\n:hidden:\n\n"
        + "\n".join([*folders, "../../claims", "../../published_figures"])
        + "\n```\n"
    )
    return {
        "papers/index.md": index,
        **{f"papers/{name}.md": _page(name, found) for name in folders},
    }


def _page(folder: str, found: Mapping[str, str]) -> str:
    paper = papers()[folder]
    text = f"# {paper.title}\n\n{_authorship(paper)}.\n\n"
    text += f"{_PREAMBLE}\n```\nattractor claims --of {folder} --out claims/\n```\n\n"
    text += "## Statements\n\n"
    for each, statements in by_paper(all_statements(folder)).items():
        if each is not paper:
            text += f"Of *{each.citation}*:\n\n"
        missing = any(one.missing for one in statements)
        text += "| statement, figure or table | checked by |" + " not checked |" * missing
        text += "\n| --- | --- |" + " --- |" * missing + "\n"
        for one in statements:
            claims = [_link(name) for name in one.claims]
            figures = [_link(name, figure=True) for name in one.figures]
            checked = ", ".join(claims + figures)
            text += f"| {_cell(one.title)} | {checked} |"
            text += f" {_cell(one.missing)} |" * missing + "\n"
        text += "\n"
    text += "## Claims\n\n"
    text += "".join(_claim(one, found.get(one.name)) for one in all_claims(folder).values())
    figures = all_figures(folder).values()
    text += "## Figures\n\n" * bool(figures)
    only = {name: link for name, link in found.items() if name not in listed("claims")}
    text += "".join(_figure(one, only.get(one.name)) for one in figures)
    return text


def _authorship(paper: Paper) -> str:
    """Who wrote it, when, and where it is found."""
    if not paper.authors:
        return "Said by many and, of attention, proved by nobody that we know of"
    names = [" ".join(reversed(one.split(", "))) for one in paper.authors.split(" and ")]
    place = f", [arXiv {paper.arxiv}](https://arxiv.org/abs/{paper.arxiv})" if paper.arxiv else ""
    return f"{', '.join(names)} ({paper.year}){place}"


def link_to(name: str, folder: str = "papers/") -> str:
    """A link to the section of a claim, or of a figure where no claim has the name.

    Args:
        name: ``paper/name``.
        folder: Where the pages of the papers lie, seen from the page that has the link.
    """
    return _link(name, folder, figure=name not in listed("claims"))


def _link(name: str, folder: str = "", *, figure: bool = False) -> str:
    """A link to the section of a claim or figure, which may be on the page of another paper."""
    # Of two sections of one name the second, the figure's, has a number in its address.
    number = "-1" * (figure and name in listed("claims"))
    return f"[`{name}`]({folder}{name.split('/')[0]}.md#{name.replace('/', '')}{number})"


def _claim(claim: Claim, wrong: str | None) -> str:
    assumed = "; ".join(_plain(one.statement).rstrip(".") for one in claim.given)
    lines = [
        f"### {claim.name}\n",
        f"{_sentence(claim.summary)}\n",
        f"- **Statement:** {_plain(claim.statement)}",
        f"- **Assumes:** {assumed or 'nothing'}",
        f"- **Holds where:** {_plain(claim.quantity)} {_sense(claim.sense)} {claim.bound:.6g} "
        f"({_plain(claim.because)})",
        f"- **Has to fail:** {_plain(claim.wrong_quantity)} {_sense(claim.sense)} "
        f"{claim.bound:.6g}",
    ]
    if claim.note:
        lines.append(f"- **Remark:** {_plain(claim.note)}")
    if wrong:
        lines.append(f"- **See:** {wrong}")
    return "\n".join([*lines, f"\n```\nattractor claims {claim.name}\n```\n\n"])


def _figure(figure: PaperFigure, wrong: str | None) -> str:
    lines = [
        f"### {figure.name}\n",
        f"{_sentence(figure.summary)}\n",
        f"- **Of:** {_plain(figure.statement)}",
        f"- **Published:** {_plain(figure.published)}",
    ]
    if figure.artifact:
        lines.append(
            f"- **Artifact that `--as-published` draws beside it:** {_plain(figure.artifact)}"
        )
    if figure.takes:
        lines.append(f"- **Can be drawn from your data:** {_plain(figure.takes)}")
    if wrong:
        lines.append(f"- **See:** {wrong}")
    return "\n".join([*lines, f"\n```\nattractor figures {figure.name} --out figures/\n```\n\n"])


def _sense(sense: str) -> str:
    return {"<=": "≤", ">=": "≥"}[sense]


def _sentence(text: str) -> str:
    return _plain(text[0].upper() + text[1:]) + "."


def _plain(text: str) -> str:
    """Words in which Markdown sees no emphasis, links, mathematics or tags."""
    for mark in "\\*_<>[]$":
        text = text.replace(mark, "\\" + mark)
    return text


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")
