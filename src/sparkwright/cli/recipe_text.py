"""Recipes as text: the list, and one recipe with all that is known of it."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from sparkwright.cli.columns import in_columns
from sparkwright.domain.deployment import PHASE_ORDER
from sparkwright.domain.recipe import Figure, Recipe, RecipeState, Runtime
from sparkwright.domain.units import duration, exact_number, gib
from sparkwright.engines.options import fits_context, option_words

_HEADS = ("NAME", "ENGINE", "NODES", "PROFILES", "STATE", "TITLE")
_PROSE = {"state_reason", "profile", "profiles", "published", "notes", "hash", "source", "title"}
_LEGEND = (
    "ready: served on GB10 by somebody who published how; documented: from sources, some values are yours to set "
    "(`sparkwright recipes show NAME` lists them); *: the profile that NAME alone takes."
)
_UNBROKEN = 10_000
Line = tuple[str, str]


def listing(rows: Sequence[dict[str, Any]]) -> str:
    """The table of `recipes list`, a line each where that fits; below it its words, and why the refused ones are."""
    width = _width()
    table = "\n".join(in_columns((_HEADS, *map(_cells, rows))))
    fits = max(map(len, table.splitlines())) <= width
    refused = [row for row in rows if row["state"] == RecipeState.REFUSED]
    legend = "\n".join(_wrapped(_LEGEND, width, "", ""))
    return (table if fits else _two_lines(rows, width)) + f"\n\n{legend}" + _refusals(refused, width)


def _two_lines(rows: Sequence[dict[str, Any]], width: int) -> str:
    """The list for narrow terminals: short values in columns, the title with its profiles on a line of its own."""
    narrow = [("NAME", "ENGINE", "NODES", "STATE")]
    for row in rows:
        release = row["version"].partition("+")[0]  # without the commit that it was built from
        state = "simulated" if row["simulated"] else row["state"]
        narrow.append((row["name"], f"{row['engine']} {release}", str(row["nodes"]), state))
    head, *lines = in_columns(narrow)
    text = [head]
    for row, line in zip(rows, lines, strict=True):
        profiles = f"; profiles {_profiles(row)}" if row["profiles"] else ""
        text += [line, *_wrapped(f"{row['title']}{profiles}", width, "    ", "    ")]
    return "\n".join(text)


def _profiles(row: dict[str, Any]) -> str:
    return " ".join(f"{p}*" if p == row["default_profile"] else p for p in row["profiles"])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    state = f"{row['state']}, simulated" if row["simulated"] else row["state"]
    engine = f"{row['engine']} {row['version']}"
    return row["name"], engine, str(row["nodes"]), _profiles(row) or "-", state, row["title"]


def _refusals(rows: Sequence[dict[str, Any]], width: int) -> str:
    """The reason of each refused recipe in a sentence, and its alternative."""
    lines = ["\n\nrefused:"]
    for row in rows:
        instead = f" Instead: {row['instead']}" if row["instead"] else ""
        lines += _wrapped(f"{row['name']}: {row['reason']}{instead}", width, "  ", "    ")
    return "\n".join(lines) if rows else ""


def first_sentence(text: str) -> str:
    """The first sentence, for lists."""
    head, stop, _ = text.partition(". ")
    return head + "." if stop else text


def describe(recipe: Recipe, others: Sequence[Recipe] = (), known: Iterable[Line] = ()) -> str:
    """All of a resolved recipe, section by section.

    others: the same file's other profiles, for what they change. known: what the compatibility table has of it.
    """
    width = _width()
    sections = (
        ("", _head(recipe)),
        ("Model", _model(recipe)),
        ("Engine", _engine(recipe)),
        ("Image built from (`sparkwright build` makes it)", _build(recipe)),
        ("Serving", _serving(recipe)),
        ("Expected times", _phases(recipe)),
        ("Other profiles, and what they change", ((other.profile, changes(recipe, other)) for other in others)),
        ("Conditions", (("-", text) for text in recipe.conditions)),
        ("Known of this engine, model and chip (others tried it)", known),
    )
    parts = [_section(title, list(lines), width) for title, lines in sections]
    # What is copied into commands is never broken.
    more = "More flags (`sparkwright plan` has the whole command)"
    parts += [
        _section("Environment of every rank", list(recipe.env.items()), _UNBROKEN),
        _section(more, [("", flag) for flag in flag_words(recipe.flags)], _UNBROKEN),
        figures_text(recipe.published, width),
        _section("Notes", [("-", text) for text in recipe.notes], width),
        _section("References", [("-", text) for text in recipe.references], width),
    ]
    return "\n".join(filter(None, parts))


def _build(recipe: Recipe) -> Iterator[Line]:
    build = recipe.build
    if build is None:
        return
    yield "base", build.base
    yield "platform", f"{build.platform}, CUDA code for {build.cuda_arch}" if build.cuda_arch else build.platform
    yield "packages", " ".join(build.packages)
    for group in build.python:
        yield "python", " ".join(group.packages) + (f" ({group.index})" if group.index else "")
    for source in build.sources:
        request = f", pull request {source.pull_request}" if source.pull_request else ""
        yield source.name, f"{source.repository} {source.commit}{request}"
    yield "not pinned", build.unpinned


def _width() -> int:
    """The terminal's; where there is none, lines are left whole for grep."""
    return shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else _UNBROKEN


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    room = max(width, len(rest) + 30)
    lines = textwrap.wrap(
        text, room, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return lines or [first.rstrip()]


def _section(title: str, lines: Sequence[Line], width: int) -> str:
    given = [(name, value) for name, value in lines if value]
    if not given:
        return ""
    indent = "  " if title else ""
    column = max(len(name) for name, _ in given)
    rows = []
    for name, value in given:
        head = f"{indent}{name.ljust(column)}  " if column else indent
        rows += _wrapped(value, width, head, " " * len(head))
    return "\n".join([title, *rows, ""] if title else [*rows, ""])


def flag_words(given: Mapping[str, Any]) -> Iterator[str]:
    """Each flag of a recipe as words of the command line."""
    return (" ".join(option_words({name: value})) for name, value in given.items())


def changes(recipe: Recipe, other: Recipe) -> str:
    """The differences of another profile: dotted keys with its values, and the keys that it omits."""
    mine, its = (_leaves({k: v for k, v in asdict(one).items() if k not in _PROSE}) for one in (recipe, other))
    found = [f"{key} {_shown(value)}" for key, value in its.items() if value and mine.get(key) != value]
    found += [f"no {key}" for key, value in mine.items() if value and not its.get(key)]
    return ", ".join(found) or "nothing but the figures"


def _leaves(tree: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= _leaves(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{value}"


def figures_text(figures: Sequence[Figure], width: int) -> str:
    """The figures that share conditions below these, and the sources numbered at the end."""
    if not figures:
        return ""
    sources = list(dict.fromkeys(figure.source for figure in figures))
    rows = ["Published figures (others measured them)"]
    for (conditions, source), group in groupby(figures, lambda f: (f.conditions, f.source)):
        mark = f"[{sources.index(source) + 1}]"
        rows += _wrapped(f"{conditions} {mark}".strip(), width, "  ", "    ")
        values = [(f.what, exact_number(f.value), f.unit) for f in group]
        names, digits = (max(len(row[column]) for row in values) for column in (0, 1))
        rows += [f"    {what.ljust(names)}  {number.rjust(digits)} {unit}" for what, number, unit in values]
    rows += [f"  [{number}] {source}" for number, source in enumerate(sources, 1)]
    return "\n".join([*rows, ""])


def _head(recipe: Recipe) -> Iterator[Line]:
    yield "recipe", f"{recipe.name}{f'@{recipe.profile}' if recipe.profile else ''}"
    yield "title", recipe.title
    yield "state", f"{recipe.state.value}: {recipe.state_reason}" if recipe.state_reason else recipe.state.value
    yield "instead", recipe.instead
    yield "simulated", "yes: no model runs, every figure is made up" if recipe.model.simulated else ""
    yield "profiles", ", ".join(recipe.profiles)
    yield "license", recipe.license_note
    yield "hash", recipe.hash
    yield "source", recipe.source


def _model(recipe: Recipe) -> Iterator[Line]:
    model, shape = recipe.model, recipe.model.shape
    yield "id", model.id
    yield "revision", model.revision
    yield "path", model.path
    yield "served as", model.served_name
    yield "size", f"{model.size / 1e9:.1f} GB ({gib(model.size)})" if model.size else ""
    yield "of it on disk", f"{model.on_disk / 1e9:.1f} GB, never in memory" if model.on_disk else ""
    if shape:
        experts = f", {shape.experts} experts, {shape.experts_per_token} a token" if shape.experts else ""
        yield "shape", f"{shape.layers} layers, {shape.heads} heads, {shape.kv_heads} of keys and values{experts}"


def _engine(recipe: Recipe) -> Iterator[Line]:
    engine, p = recipe.engine, recipe.parallelism
    yield "engine", f"{engine.label}, runtime {engine.runtime.value}"
    yield "image", engine.image
    yield "image note", engine.image_note
    yield "build's own", ", ".join((*engine.extra_env, *(f"--{flag}" for flag in engine.extra_flags)))
    yield "variant", engine.variant
    yield "venv", engine.venv
    yield "entrypoint", " ".join(engine.entrypoint or ())
    yield "nodes", f"{recipe.nodes} (tp {p.tp}, pp {p.pp}, dp {p.dp}{', ep' if p.ep else ''})"
    yield "shared memory", gib(recipe.shm_bytes) if recipe.shm_bytes and engine.runtime is Runtime.DOCKER else ""
    yield "mounts", ", ".join(recipe.mounts)


def _serving(recipe: Recipe) -> Iterator[Line]:
    s, spec, parsers = recipe.serving, recipe.speculation, recipe.parsers
    key = f", key from ${s.api_key_env}" if s.api_key_env else ", no key"
    yield "endpoint", f"port {s.port} on the head, {s.expose.value}{key}"
    yield "rendezvous", f"port {s.master_port}" if recipe.nodes > 1 else ""
    most = "the longest that fits, up to the model's" if fits_context(recipe) else "the model's own"
    yield "context", f"{s.context:,} tokens" if s.context else most
    yield "sequences", f"{s.sequences}" if s.sequences else "the engine's own"
    yield "batched tokens", f"{s.batched_tokens:,}" if s.batched_tokens else "the engine's own"
    yield "KV cache", " ".join(filter(None, (s.kv_dtype, gib(s.kv_cache_bytes) if s.kv_cache_bytes else "")))
    yield "memory fraction", f"{s.memory_fraction:g}" if s.memory_fraction else ""
    options = f" {json.dumps(dict(spec.options))}" if spec.options else ""
    yield "speculation", f"{spec.method}, {spec.tokens} tokens{options}" if spec.method else ""
    named = {"tool": parsers.tool, "reasoning": parsers.reasoning, "tokenizer": parsers.tokenizer_mode}
    yield "parsers", ", ".join(f"{k} {v}" for k, v in named.items() if v)
    yield "chat template", parsers.chat_template


def _phases(recipe: Recipe) -> Iterator[Line]:
    for phase in PHASE_ORDER:
        if time := recipe.phases.get(phase.value):
            stuck = f", stuck after {duration(time.stuck_after)} without progress" if time.stuck_after else ""
            yield phase.value, f"usually {duration(time.usual)}{stuck}"
