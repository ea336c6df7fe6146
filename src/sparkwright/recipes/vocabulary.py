"""Names that people write for our keys: the engines' own flags, and which of them a recipe must not give itself."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from importlib.resources import files

from sparkwright.domain.finding import Finding

_LAUNCHER = "is filled in for each rank by the launcher"
_WORDS = tomllib.loads((files("sparkwright.recipes") / "vocabulary.toml").read_text(encoding="utf-8"))
ALIASES: Mapping[str, str] = {alias: key for key, aliases in _WORDS["keys"].items() for alias in aliases}
SPARKRUN_RUNTIMES: Mapping[str, str] = _WORDS["sparkrun"]
PER_RANK_ENV = frozenset(_WORDS["variables"]["per_rank"])


def flag_word(name: str) -> str:
    """`--max-model-len` -> `max_model_len`."""
    return name.strip().lstrip("-").replace("-", "_").lower()


def key_of_flag(engine: str, flag: str) -> str:
    """The reason why a flag may not be under `flags`: the key or program that sets it; '' if it may."""
    word = flag_word(flag)
    engine = "vllm" if engine in ("simulator", "vllm-ray") else engine
    if word in _WORDS["per_rank"].get(engine, ()):
        return _LAUNCHER
    if word not in _WORDS["own"].get(engine, ()):
        return ""
    key = _WORDS["more"].get(word) or ALIASES[word]
    return f"is set by `{key}`"


def in_recipe(finding: Finding, engine: str) -> Finding:
    """A finding about an option, with the recipe's key for it where there is one: under `flags` it is refused."""
    named = [*re.findall(r"--[\w-]+", finding.remedy), finding.subject]
    where = key_of_flag(engine, named[0])
    return replace(finding, remedy=f"{finding.remedy} (it {where})") if where.startswith("is set") else finding


def suggest(key: str, section: str, keys: tuple[str, ...]) -> str:
    """The valid key (full path) nearest to an unknown one in a section; '' when none is near.

    keys: all valid paths. An engine's own name for it comes first, then the same section, then all of them.
    """
    word = flag_word(key)
    if word in ALIASES:
        return ALIASES[word]
    prefix = f"{section}." if section else ""
    siblings = {k.removeprefix(prefix): k for k in keys if k.startswith(prefix) and "." not in k.removeprefix(prefix)}
    leaves = {k.rpartition(".")[2]: k for k in reversed(keys)}
    return _near(word, siblings, 0.6) or _near(word, leaves, 0.75) or _near(word, ALIASES, 0.8)


def _near(word: str, table: Mapping[str, str], cutoff: float) -> str:
    found = get_close_matches(word, list(table), n=1, cutoff=cutoff)
    return table[found[0]] if found else ""
