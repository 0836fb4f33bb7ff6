"""``attractor example heads``: heads on sentences, with known rules because they were put there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from jaxtyping import Float, Int

from attractor.cli.example_files import Folder, destination, quoted
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.heads.captured.captured import Captured
from attractor.support.checks import check_count
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import generator

PLANTED = (
    ("previous word", "sink", "nothing", "nothing"),
    ("subject of the verb", "nothing", "sink", "nothing"),
    ("nothing", "weakly the subject", "nothing", "next word"),
)
"""What each head of each layer follows."""

_TOPICS = {
    "dog": "barks", "bird": "sings", "fish": "swims", "baker": "kneads", "river": "flows",
    "teacher": "explains", "engine": "roars", "child": "laughs", "doctor": "operates",
    "farmer": "ploughs", "star": "shines", "horse": "gallops", "sailor": "steers",
    "painter": "sketches", "bell": "rings", "frog": "croaks",
}  # fmt: skip
"""Nouns, each with a verb that no other one has."""
_ADJECTIVES = ("old", "small", "quiet", "tall", "grey", "lonely", "new", "young")
_PLACES = ("here", "outside", "nearby", "at home", "in the village", "all day")
_ADVERBS = ("suddenly", "often", "never", "at last", "loudly", "again")
_WIDTH, _VALUES, _TOPIC = 16, 8, 8
"""Entries of a key and of a value, and those of a key that know of topics."""
_SPECIAL = ("[CLS]", "[SEP]", "[PAD]")


def planted_heads(documents: int = 240, *, seed: int = 0) -> Captured:
    """Sentences of three nouns and the verb of one of them, seen by heads with known rules.

    In "the old dog, the bird and a tall farmer wait here until one sings" the query is
    the verb. A head of ``PLANTED`` follows its subject: the key of a noun is the code of its
    topic, and so is the query of its verb; or a word at a fixed place beside it, by codes of
    places; or puts nearly all attention on ``[CLS]`` whatever the query; or nothing: keys and
    queries are independent.

    Args:
        documents: How many sentences.
        seed: Names all that is random.

    Returns:
        Three layers of four heads of width 16, one query a sentence.

    Raises:
        InvalidInputError: If the count is not positive, or the seed is none.
    """
    check_count("documents", documents)
    random = generator(seed, purpose="planted heads")
    sentences = [_sentence(random) for _ in range(documents)]
    longest = max(len(words) for words, _, _ in sentences)
    token = [words + ["[PAD]"] * (longest - len(words)) for words, _, _ in sentences]
    special = np.isin(np.array(token), _SPECIAL)
    mask = np.array(token) != "[PAD]"
    position = np.array([verb for _, verb, _ in sentences])
    topic = np.array([_topics(words) for words in token])
    codes = _Codes(random, longest)
    layers = {}
    for number, rules in enumerate(PLANTED):
        made = [_head(rule, random, codes, topic, position, mask) for rule in rules]
        one = Captured.from_arrays(
            np.stack([keys for keys, _ in made], 1),
            np.stack([queries for _, queries in made], 1),
            mask=mask,
            values=random.normal(size=(documents, len(rules), longest, _VALUES)),
        )
        layers[number] = one.layer(0)
    return Captured(
        layers,
        document=np.arange(documents),
        position=position,
        token=np.array(token, dtype=object),
        special=special,
        origin={"model": "planted heads", "texts": "sentences drawn from a small grammar"},
    )


class _Codes:
    """Random unit vectors: one for each topic, and one for each place in a sentence."""

    def __init__(self, random: np.random.Generator, longest: int) -> None:
        self.topic = _unit(random.normal(size=(len(_TOPICS), _TOPIC)))
        self.place = _unit(random.normal(size=(longest + 2, _WIDTH)))


def _head(
    rule: str,
    random: np.random.Generator,
    codes: _Codes,
    topic: Int[np.ndarray, "queries tokens"],
    position: Int[np.ndarray, "queries"],
    mask: np.ndarray,
) -> tuple[Float[np.ndarray, "queries tokens width"], Float[np.ndarray, "queries width"]]:
    """Keys and queries of a head that follows a rule."""
    count, longest = topic.shape
    keys = random.normal(size=(count, longest, _WIDTH)) * 0.25
    queries = random.normal(size=(count, _WIDTH))
    rows = np.arange(count)
    match rule:
        case "subject of the verb" | "weakly the subject":
            strength = 7.0 if rule == "subject of the verb" else 2.5
            keys[..., :_TOPIC] += np.where((topic >= 0)[..., None], codes.topic[topic], 0)
            queries[:, :_TOPIC] += strength * codes.topic[topic[rows, position]]
            keys[rows, position, :_TOPIC] = 0  # the verb is not its own subject
        case "previous word" | "next word":
            step = -1 if rule == "previous word" else 1
            keys += codes.place[np.arange(longest)]
            queries += 7 * codes.place[position + step]
        case "sink":
            queries += 12 * np.eye(_WIDTH)[0]
            keys[:, 0, 0] += 1.2
    return keys, queries


def _sentence(random: np.random.Generator) -> tuple[list[str], int, str]:
    """The words of a sentence, the place of its verb, and the subject of that."""
    nouns = [str(noun) for noun in random.choice(list(_TOPICS), 3, replace=False)]
    words = ["[CLS]"]
    for number, noun in enumerate(nouns):
        words += [("the", ",", "and")[number], *(["the"] if number else [])]
        words += [str(random.choice(_ADJECTIVES))] * bool(random.random() < 0.5) + [noun]
    words += ["wait", *str(random.choice(_PLACES)).split(), "until", "one"]
    words += str(random.choice(_ADVERBS)).split() * bool(random.random() < 0.6)
    subject = str(random.choice(nouns))
    words.append(_TOPICS[subject])
    verb = len(words) - 1
    if random.random() < 0.5:
        words += ["and", "they", "go"]
    return [*words, ".", "[SEP]"], verb, subject


def _topics(words: list[str]) -> list[int]:
    """The number of the topic of each word, -1 for none."""
    numbers = {word: n for n, pair in enumerate(_TOPICS.items()) for word in pair}
    return [numbers.get(word, -1) for word in words]


def _unit(vectors: Float[np.ndarray, "count width"]) -> Float[np.ndarray, "count width"]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def heads(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .nc file.")],
    documents: Annotated[int, typer.Option(min=2, help="Sentences, with a query each.")] = 240,
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write heads as captured from a model, three layers of four, with known rules."""
    with session("example heads", as_json=as_json, quiet=quiet) as current:
        file = destination(path, out)
        if file.suffix != ".nc":
            raise InvalidInputError("path", f"{file} is no .nc file", "Give a name like heads.nc")

        captured = planted_heads(documents, seed=seed)
        captured.save(file)
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}")
        current.say(f"It holds heads on {documents:,} sentences. What each head follows:")
        current.list_names(
            {
                f"  {layer}.{head}": rule
                for layer, rules in enumerate(PLANTED)
                for head, rule in enumerate(rules)
            }
        )
        current.suggest(f"attractor audit {quoted(file)} --out audit-report")
