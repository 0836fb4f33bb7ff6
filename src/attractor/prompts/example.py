"""``attractor example head``: random heads, with the laws of their tokens or samples of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from attractor import prompts
from attractor.cli.example_files import ArrayPath, Folder, destination, quoted
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.cli.texts import layout_lines
from attractor.prompts import measures
from attractor.prompts.files.head import HEAD_LAYOUT
from attractor.support.checks import check_choice, check_count
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import generator

if TYPE_CHECKING:
    from attractor.prompts.measures.contract import Measure


LAWS = ("gaussian", "mixture", "product", "empirical")
"""The laws of tokens to choose from."""

_HEAD, _VALUE = 4, 4
_COMPONENTS, _KINDS, _NOISE = 3, 12, 0.25
_SPREAD = 1.2
"""Root-mean-square standard deviation of the scores, over queries."""


def random_head(
    dimension: int = 8,
    *,
    samples: int | None = None,
    law: str = "gaussian",
    queries: int = 300,
    seed: int,
) -> tuple[prompts.AttentionHead, Measure, Measure]:
    """Draws key, query and value matrices of a head, and the laws of its tokens and queries.

    Key and query matrices have 4 rows of normal entries, and are scaled so that scores over tokens
    have the variance 1.44 on average over queries.

    Args:
        dimension: Of tokens and queries.
        samples: None for tokens of a law, with standard normal queries; else how many tokens to
            draw from the sphere of radius ``sqrt(dimension)``, where a layer that normalizes leaves
            them.
        law: Without samples: ``"gaussian"`` tokens with variances from 0.25 to 2; a ``"mixture"``
            of three Gaussian components; a ``"product"`` of normal, uniform and sign coordinates in
            turn; or ``"empirical"``: twelve points of random weights, with noise of variance 0.25.
        queries: Number of standard normal queries to draw beside sampled tokens.
        seed: Same seed, same head.

    Returns:
        The head, the law of the tokens and the law of the queries.

    Raises:
        InvalidInputError: If a count is too small, or the law is none of these.
    """
    check_choice("law", law, LAWS)
    if samples is not None and law != "gaussian":
        raise InvalidInputError(
            "law", "it stands beside samples, which are of a sphere", "Keep one"
        )
    dimension = check_count("dimension", dimension, 1, 2**12)
    samples = None if samples is None else check_count("samples", samples, 2, 10**7)
    queries = check_count("queries", queries, 2, 10**7)
    random = generator(seed, purpose="random attention head")
    keys, own_queries = random.normal(size=(2, _HEAD, dimension))
    values = random.normal(size=(_VALUE, dimension)) / np.sqrt(dimension)
    standard = measures.Gaussian.isotropic(dimension)
    if samples is None:
        tokens, query_law = _law(law, dimension, random), standard
    else:
        sphere = measures.Sphere(dimension, np.sqrt(dimension))
        tokens = measures.Empirical(sphere.sample(samples, seed=seed))
        query_law = measures.Empirical(standard.sample(queries, seed=seed))
    scores = keys.T @ own_queries
    scale = _SPREAD / np.sqrt(np.trace(scores.T @ np.asarray(tokens.covariance) @ scores))
    return prompts.AttentionHead(scale * scores, values), tokens, query_law


def _law(name: str, d: int, random: np.random.Generator) -> Measure:

    if name == "gaussian":
        return measures.Gaussian(*_moments(d, 2.0, random))
    if name == "mixture":
        parts = [measures.Gaussian(*_moments(d, 0.5, random)) for _ in range(_COMPONENTS)]
        return measures.Mixture(random.dirichlet(np.full(_COMPONENTS, 5.0)), parts)
    if name == "empirical":
        weights = random.dirichlet(np.ones(_KINDS))
        return measures.Empirical(random.normal(size=(_KINDS, d)), weights).with_noise(_NOISE)
    kinds = (
        lambda: measures.Gaussian.isotropic(1),
        lambda: measures.Uniform(np.sqrt(3), 1),
        lambda: measures.Rademacher(1),
    )
    coordinates = measures.Product([kinds[place % len(kinds)]() for place in range(d)])
    return coordinates.pushforward(np.eye(d), random.normal(size=d))


def _moments(d: int, largest: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A mean, and a covariance of given eigenvalues."""
    basis = np.linalg.qr(random.normal(size=(d, d)))[0]
    covariance = basis * np.geomspace(0.25, largest, d) @ basis.T
    return random.normal(size=d), covariance


SAMPLED_TOKENS = 10_000
"""The number of tokens in a head file of samples."""


def head(
    path: ArrayPath,
    samples: Annotated[
        bool,
        typer.Option("--samples", help="Tokens sampled from a sphere, in place of Gaussian ones."),
    ] = False,
    law: Annotated[str, typer.Option(help=f"The law of the tokens: {', '.join(LAWS)}.")] = LAWS[0],
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a valid head file: a random attention head in R^8, with its tokens and queries."""
    with session("example head", as_json=as_json, quiet=quiet) as current:
        file = destination(path, out)

        count = SAMPLED_TOKENS if samples else None
        prompts.save_head(file, *random_head(samples=count, law=law, seed=seed))
        loaded = prompts.load_head(file)
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {loaded.size_in_words}:")
        entries = loaded.to_arrays()[0]
        shown = {name: what for name, what in HEAD_LAYOUT.items() if name in entries}
        current.say_lines(f"  {line}" for line in layout_lines(shown))
        current.suggest(
            f"attractor prompt-length {quoted(file)} --error 0.1 --out prompt-length-report"
        )
