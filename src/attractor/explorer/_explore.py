"""``explore`` and ``explorer_page``: tokens and a head in, something to drag out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attractor.explorer.page import page_of

if TYPE_CHECKING:
    from attractor.attention import LinearHead, Parameterization
    from attractor.explorer.explorer import Explorer
    from attractor.geometry import Geometry
    from attractor.tokens import Tokens
    from attractor.training import Optimizer


def explore(
    tokens: Tokens,
    head: LinearHead,
    optimizer: Optimizer | str | Sequence[Optimizer | str] | None = None,
    *,
    parameterization: str | Parameterization | None = None,
    start: Any = None,
    steps: int = 2000,
    loss: str = "logistic",
    norm: Geometry | str | None = None,
    selection: Any = None,
    kernel: str | Sequence[str] = "exact",
    projection: Any = "solutions",
    title: str | None = None,
    theme: str = "auto",
) -> Explorer:
    """Shows tokens in a notebook, to be dragged: the solution, basins and training follow at once.

    The browser computes what is seen. When something is let go, Python solves and trains the same,
    and what it found stands beside it. Jupyter and marimo show it by the package anywidget.

    Tokens of more than two numbers are seen in a plane, with what Python works out for them: the
    solutions of every locally optimal selection where these are few, else of the best one, in
    several norms, and the paths of training. The page says which part of the distances between
    tokens the plane hides.

    Args:
        tokens: One data set with labels -1 and +1, one query a sequence; at most 24 sequences of
            240 tokens together. What is masked is left out.
        head: A linear head: fixed, or where its training starts.
        optimizer: How to train; two are shown side by side. By name, its learning rate is 0.1.
            Default: normalized gradient descent. There are "gradient descent", "normalized
            gradient descent", "mirror descent", "sign descent", "greedy coordinate descent" and
            "spectral descent".
        parameterization: What is trained: ``"p"``, ``"W"``, its factors ``"KQ"``, or ``"(v, p)"``;
            default: ``"p"`` where queries are the number one, else ``"W"``.
        start: Where training starts, as ``initial`` of ``train``; default: zero, for factors a
            tenth of the identity.
        steps: Number of steps, at most 100,000; where the page trains, at most 1,000,000 of all
            tokens and trainings together.
        loss: ``"logistic"``, ``"exponential"`` or ``"linear"``.
        norm: The norm that the margin problem minimizes, or its name; default: the one that the
            first training descends.
        selection: The tokens to keep, one number a sequence; default: those of the highest score.
        kernel: ``"exact"``, or ``"plain"`` for gradients of ordinary floating point; two of them
            are shown side by side.
        projection: Where tokens have more than two numbers, what they are seen in: ``"solutions"``,
            the plane of the solution of the first training and the next one that spans a plane
            with it; ``"principal"``, the two directions in which tokens vary most; or two
            solutions, or their matrices.
        title: What it shows, in words.
        theme: ``"auto"``, which follows the page around it, ``"light"`` or ``"dark"``.

    Raises:
        InvalidInputError: If anywidget is not installed, an argument cannot be used, or a page
            cannot show it.

    Example:
        >>> import attractor as at
        >>> keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
        >>> tokens = at.Tokens.prompt_vector(keys, labels=[1])
        >>> explorer = at.explore(tokens, at.LinearHead([0.5, 1.0]))  # doctest: +SKIP
        >>> explorer.solution().W.ravel().round(6)  # doctest: +SKIP
        array([-0.09901 ,  0.990099])
    """
    given = locals()

    from attractor.explorer.building import state_of
    from attractor.explorer.widget import widget_class

    own = widget_class()
    return own(state_of(**given))


def explorer_page(
    tokens: Tokens,
    head: LinearHead,
    optimizer: Optimizer | str | Sequence[Optimizer | str] | None = None,
    *,
    parameterization: str | Parameterization | None = None,
    start: Any = None,
    steps: int = 2000,
    loss: str = "logistic",
    norm: Geometry | str | None = None,
    selection: Any = None,
    kernel: str | Sequence[str] = "exact",
    projection: Any = "solutions",
    title: str | None = None,
    theme: str = "auto",
) -> str:
    """The same as one HTML file, which needs nothing but a browser.

    It holds its own script and data, may run nothing else, and makes no request.

    Args:
        tokens: As for ``explore``.
        head: Likewise.
        optimizer: Likewise.
        parameterization: Likewise.
        start: Likewise.
        steps: Likewise.
        loss: Likewise.
        norm: Likewise.
        selection: Likewise.
        kernel: Likewise.
        projection: Likewise.
        title: The title of the page.
        theme: As for ``explore``.

    Raises:
        InvalidInputError: If an argument cannot be used, or a page cannot show it.

    Example:
        >>> import attractor as at
        >>> keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
        >>> tokens = at.Tokens.prompt_vector(keys, labels=[1])
        >>> page = at.explorer_page(tokens, at.LinearHead([0.5, 1.0]), title="Three tokens")
        >>> "<title>Three tokens</title>" in page
        True
    """
    given = locals()

    from attractor.explorer.building import state_of

    return page_of(state_of(**given))
