"""``attractor example tokens``: random unit tokens with a head."""

from __future__ import annotations

from attractor.attention import LinearHead
from attractor.cli.example_files import ArrayPath, Folder, destination, quoted
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.cli.texts import layout_lines
from attractor.datasets import unit_tokens
from attractor.files import save_tokens
from attractor.files.token_file import LAYOUT
from attractor.tokens import Tokens


def tokens(
    path: ArrayPath,
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a valid token file: 6 sequences of 8 random unit tokens in R^10, with a head."""
    with session("example tokens", as_json=as_json, quiet=quiet) as current:
        file = destination(path, out)

        drawn, heads = unit_tokens(6, 8, 10, seeds=[seed])
        assert drawn.labels is not None
        one = Tokens(drawn.keys[0], drawn.queries[0], drawn.labels[0])
        save_tokens(file, one, LinearHead(heads.weight[0]))
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {one!r}:")
        held = {name: LAYOUT[name] for name in ("keys", "queries", "labels", "head")}
        current.say_lines(f"  {line}" for line in layout_lines(held))
        current.suggest(f"attractor check {quoted(file)}")
