"""Recipes as text: the list, and one recipe with all that is known of it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table

from sparkwright.domain.deployment import PHASE_ORDER
from sparkwright.domain.recipe import Figure, Recipe, Runtime
from sparkwright.domain.units import duration, gib

_HEADS = ("NAME", "ENGINE", "NODES", "PROFILES", "STATE", "TITLE")
Line = tuple[str, str]


def listing(rows: Sequence[dict[str, Any]], color: bool) -> str:
    """The table of `recipes list`: drawn for a terminal, plain columns (nothing cut off) for everything else."""
    cells = [_cells(row) for row in rows]
    return _drawn(cells) if color else columns((_HEADS, *cells))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    default = row["default_profile"]
    profiles = " ".join(f"{p}*" if p == default else p for p in row["profiles"])
    state = f"{row['state']}, simulated" if row["simulated"] else row["state"]
    engine = f"{row['engine']} {row['version']}"
    return row["name"], engine, str(row["nodes"]), profiles or "-", state, row["title"]


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, two spaces apart."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _drawn(rows: Iterable[Sequence[str]]) -> str:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in _HEADS:
        table.add_column(head, overflow="fold", no_wrap=head != "TITLE")
    for row in rows:
        table.add_row(*row)
    out = StringIO()
    Console(file=out, force_terminal=True, highlight=False).print(table)
    return out.getvalue().rstrip("\n")


def describe(recipe: Recipe) -> str:
    """All of a resolved recipe, section by section."""
    sections = (
        ("", _head(recipe)),
        ("Model", _model(recipe)),
        ("Engine", _engine(recipe)),
        ("Serving", _serving(recipe)),
        ("Environment", ((k, v) for k, v in recipe.env.items())),
        ("Flags", ((k, v if isinstance(v, str) else json.dumps(v)) for k, v in recipe.flags.items())),
        ("Expected times", _phases(recipe)),
        ("Published figures", _figures(recipe.published)),
        ("Conditions", (("-", text) for text in recipe.conditions)),
        ("Notes", (("-", text) for text in recipe.notes)),
        ("References", (("-", text) for text in recipe.references)),
    )
    return "\n".join(text for title, lines in sections if (text := _section(title, list(lines))))


def _section(title: str, lines: Sequence[Line]) -> str:
    given = [(name, value) for name, value in lines if value]
    if not given:
        return ""
    width = max(len(name) for name, _ in given)
    indent = "  " if title else ""
    body = "".join(f"{indent}{name.ljust(width)}  {value}\n" for name, value in given)
    return f"{title}\n{body}" if title else body


def _head(recipe: Recipe) -> Iterator[Line]:
    yield "recipe", f"{recipe.name}{f'@{recipe.profile}' if recipe.profile else ''}"
    yield "title", recipe.title
    yield "state", f"{recipe.state.value}: {recipe.state_reason}" if recipe.state_reason else recipe.state.value
    yield "simulated", "yes: no model runs, every figure is made up" if recipe.model.simulated else ""
    yield "profiles", ", ".join(recipe.profiles)
    yield "license", recipe.license_note
    yield "hash", recipe.hash
    yield "source", recipe.source


def _model(recipe: Recipe) -> Iterator[Line]:
    model = recipe.model
    yield "id", model.id
    yield "revision", model.revision
    yield "path", model.path
    yield "served as", model.served_name
    yield "size", f"{model.size / 1e9:.1f} GB ({gib(model.size)})" if model.size else ""


def _engine(recipe: Recipe) -> Iterator[Line]:
    engine, p = recipe.engine, recipe.parallelism
    yield "engine", f"{engine.name} {engine.version}, runtime {engine.runtime.value}"
    yield "image", engine.image
    yield "image note", engine.image_note
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
    yield "context", f"{s.context:,} tokens" if s.context else "the model's own"
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
        time = recipe.phases.get(phase.value)
        if time:
            stuck = f", stuck after {duration(time.stuck_after)} without progress" if time.stuck_after else ""
            yield phase.value, f"usually {duration(time.usual)}{stuck}"


def _figures(figures: Iterable[Figure]) -> Iterator[Line]:
    for f in figures:
        conditions = f" ({f.conditions})" if f.conditions else ""
        value = f"{f.value:,.0f}" if f.value == int(f.value) else f"{f.value:,}"
        yield f.what, f"{value} {f.unit}{conditions} [{f.source}]"
