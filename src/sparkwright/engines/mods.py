"""A recipe's mods: files that are written inside the container and scripts that run there before the engine."""

import base64
import re
from collections.abc import Iterator, Sequence
from shlex import quote

from sparkwright.domain.plan import RankFile, RankSpec
from sparkwright.domain.recipe import Mod, Recipe, Runtime
from sparkwright.domain.values import replace
from sparkwright.remote.docker import FILES_AT

SCRIPT = "mods.sh"
BINARY = "base64:"
MODS_AT = "/workspace/mods"  # where sparkrun puts them, and what their scripts expect
_COLUMNS = 76
_TOUCHES = (
    ("installs packages", re.compile(r"\b(?:pip3?|uv pip|apt(?:-get)?|conda) install\b")),
    ("fetches from the network", re.compile(r"\b(?:curl|wget)\b|\bgit (?:clone|fetch|pull)\b|https?://")),
    ("patches files", re.compile(r"\bpatch\b|\bsed -i|\bgit apply\b")),
    ("runs Python", re.compile(r"\bpython3?\b")),
)
_PLACE = re.compile(r"(?<![\w/.])/(?:usr|opt|app|workspace|root|etc|home|sgl-workspace)[\w./-]*")
_MOST_PLACES = 4


def with_mods(recipe: Recipe, specs: Sequence[RankSpec]) -> tuple[RankSpec, ...]:
    """The ranks with a script before their program that applies the mods and then becomes the program."""
    applied = tuple(mod for mod in recipe.mods if mod.files)
    if not applied:
        return tuple(specs)
    text = shell_text(applied)
    return tuple(_before(spec, text) if spec.runtime is Runtime.DOCKER else spec for spec in specs)


def _before(spec: RankSpec, text: str) -> RankSpec:
    entry = ("bash", f"{FILES_AT}/{SCRIPT}", *(spec.entrypoint or ()))
    return replace(spec, entrypoint=entry, engine_argv=spec.engine_words, files=(*spec.files, RankFile(SCRIPT, text)))


def shell_text(mods: Sequence[Mod], folder: str = MODS_AT) -> str:
    """A script that ends with `exec "$@"`; the first mod that fails ends the rank, with its name in the log."""
    lines = [
        "set -e",
        'WORKSPACE_DIR="$PWD"',
        "export WORKSPACE_DIR",
        *(line for mod in mods for line in _one(mod, folder)),
    ]
    return "\n".join((*lines, 'cd "$WORKSPACE_DIR"', 'exec "$@"', ""))


def _one(mod: Mod, folder: str) -> Iterator[str]:
    place = f"{folder}/{mod.name}"
    yield f"echo 'sparkwright: mod {mod.name} ({mod.digest})'"
    for name, text in sorted(mod.files.items()):
        path = quote(f"{place}/{name}")
        content = base64.b64decode(text[len(BINARY) :]) if text.startswith(BINARY) else text.encode()
        coded = base64.b64encode(content).decode()
        yield f'mkdir -p "$(dirname {path})"'
        yield f"base64 -d > {path} <<'SPARKWRIGHT'"
        yield from (coded[at : at + _COLUMNS] for at in range(0, len(coded), _COLUMNS))
        yield "SPARKWRIGHT"
    if not mod.script:
        return
    yield f"cd {quote(place)}"
    yield f"bash {quote(f'./{mod.script}')} || {{ echo 'sparkwright: mod {mod.name} failed' >&2; exit 1; }}"
    yield 'cd "$WORKSPACE_DIR"'


def touches(mod: Mod) -> str:
    """The effects of a mod's files as far as their text shows them: `patches files, runs Python;
    /usr/local/lib/...`."""
    text = "\n".join(text for text in mod.files.values() if not text.startswith(BINARY))
    does = [what for what, form in _TOUCHES if form.search(text)]
    places = list(dict.fromkeys(match[0].rstrip("/.") for match in _PLACE.finditer(text)))
    more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    found = "; ".join(part for part in (", ".join(does), ", ".join(places[:_MOST_PLACES]) + more) if part)
    return found or "only its own folder, as far as its text shows"
