"""All checkpoints of a node: the listing, entry by entry."""

from collections.abc import Sequence
from typing import Any

from sparkwright.domain.checkpoint import Checkpoint, Stored
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts import checkpoint, gguf
from sparkwright.facts.model_values import known_values
from sparkwright.remote.host import script, script_texts
from sparkwright.remote.staging import LISTING

ENTRY = "@@ entry"
_sh = script_texts(__name__, ENTRY=ENTRY)
_TEXT = LISTING + _sh("quick", "entries", "hub", "folders", "all")
_MARK = f"\n{ENTRY}\t"


def inventory(hub: str, models: str, others: Sequence[str]) -> Command:
    """hub, models: the node's folders; others: more folders in which models may lie (of recipes' model.path).

    For each checkpoint a line `@@ entry`, its hub id ('' outside of the hub cache) and its place (a file inside that,
    '' for a whole snapshot, or a path), then what remote.staging lists of it. Read by facts.inventory.
    """
    return script(_TEXT, hub, models, *others, timeout=120)


def parse(done: Completed, node: str) -> tuple[Stored, ...] | Unknown:
    """The checkpoints in the order of the listing. Never raises; an unreadable entry is left out."""
    if not done.ok:
        return Unknown(done.stderr.strip()[:200], f"exit {done.exit_code}")
    stored = []
    for entry in done.stdout.split(_MARK)[1:]:
        head, _, rows = entry.partition("\n")
        name, _, place = head.partition("\t")
        found = checkpoint.parse(Completed(0, rows, ""))
        if isinstance(found, Checkpoint):
            stored.append(Stored(node, name, place, _format(found, rows), found, _missing(found)))
    return tuple(stored)


def _missing(found: Checkpoint) -> tuple[str, ...]:
    if not found.files:
        return found.missing or ("no file of it is there",)
    return found.missing if found.weights or found.missing else ("no weights",)


def _format(found: Checkpoint, rows: str) -> str:
    """`nvfp4 experts, bf16`, `int4 (gptq)`, `gguf Q4_K_M`; '?' where it is unknown."""
    packed = next((row.partition("\t")[2] for row in rows.splitlines() if row.startswith("gguf\t")), "")
    if packed:
        return f"gguf {_file_type(packed)}"
    shape = found.shape
    return _written(shape) if isinstance(shape, ModelShape) else "?"


def _file_type(packed: str) -> str:
    header = gguf.unpack(packed)
    kind: Any = header.metadata.get("general.file_type") if header else None
    return known_values("gguf")["file_types"].get(str(kind), "?") if isinstance(kind, int) else "?"


def _written(shape: ModelShape) -> str:
    rest, experts = shape.format or "?", shape.expert_format
    method = f" ({shape.quantization})" if rest.startswith("int") and shape.quantization else ""
    return f"{experts} experts, {rest}" if experts and experts != rest else f"{rest}{method}"
