"""A recipe in sparkrun's own form (version 2), written from the command that served a benchmark.

Keys as RECIPES.md of https://github.com/spark-arena/sparkrun describes them.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

import yaml

from sparkwright.domain.errors import UsageError
from sparkwright.recipes.values import looks_secret
from sparkwright.recipes.vocabulary import SPARKRUN_RUNTIMES

# Options that the launcher fills in for each rank, and places that are nobody else's business.
_OURS = "host port nnodes node-rank master-addr master-port headless dist-init-addr rpc uds api-key ssl-keyfile "
_OURS += "ssl-certfile ssl-ca-certs root-path chat-template tool-parser-plugin download-dir"
_LEFT_OUT = frozenset(_OURS.split())
_MODEL = ("model", "model-path", "m")


def runtime_of(engine: str) -> str:
    """Raises UsageError for an engine that sparkrun does not run."""
    if engine not in SPARKRUN_RUNTIMES:
        raise UsageError(
            f"sparkrun has no runtime for {engine or 'an unknown engine'}", f"it has: {', '.join(SPARKRUN_RUNTIMES)}"
        )
    return SPARKRUN_RUNTIMES[engine]


def recipe_text(model: str, image: str, engine: str, argv: Sequence[str], nodes: int) -> str:
    """argv: of rank 0, without secrets. Raises UsageError."""
    tree = {
        "recipe_version": "2",
        "model": model,
        "runtime": runtime_of(engine),
        "container": image,
        "min_nodes": nodes,
        "max_nodes": nodes,
        "command": " \\\n  ".join(_lines(argv)),
    }
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=10_000)


def _lines(argv: Sequence[str]) -> Iterator[str]:
    """The program and its model, then one option with its values a line."""
    start, options = list(argv), list[list[str]]()
    for place, word in enumerate(argv):
        if re.match(r"--?[A-Za-z]", word):
            start, options = list(argv[:place]), list(_options(argv[place:]))
            break
    yield shlex.join("{model}" if word.startswith("/") and place else word for place, word in enumerate(start)).replace(
        "'{model}'", "{model}"
    )
    for words in options:
        name = words[0].partition("=")[0].lstrip("-").replace("_", "-")
        if name in _MODEL:
            yield f"{words[0].partition('=')[0]} {{model}}"
        elif name not in _LEFT_OUT and not any(map(looks_secret, words[1:])):
            yield shlex.join(words)


def _options(argv: Sequence[str]) -> Iterator[list[str]]:
    words: list[str] = []
    for word in argv:
        if re.match(r"--?[A-Za-z]", word) and words:
            yield words
            words = []
        words.append(word)
    if words:
        yield words
