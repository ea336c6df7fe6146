"""The published model of a row, and its known facts: a row calls it as its author liked.

Sources, later ones fill up or correct earlier ones: models.jsonl, planner_report_models.yaml next to this file (keys of
configs that models.jsonl lacks), `*.config.json` of models that somebody really ran.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from planner_report_config import as_config, expanded

T = TypeVar("T")
OWN = Path(__file__).with_name("planner_report_models.yaml")
CONFIG = ".config.json"
# Words of a name that tell how it was tuned, packed or dated, not which model it is.
_IDLE = re.compile(
    r"instruct|it|base|chat|preview|thinking|reasoning|model|variant|build|class|text|nvidia|moe|\d{4}|"
    r"[bf]p?(f|16|8|4)+|bf16|gguf|awq|gptq|int[48]|nvfp4|mxfp[48]|exl3|autoround|4bit|8bit|w\d+a\d+"
)
_UNITS = {"bytes": 1.0, "gb": 1e9, "gib": float(1 << 30)}
# Readings of a running engine are answers, not inputs; tables that stay on disk are no weights.
_NO_SIZE = re.compile(r"weights|per_|tp\d|load|vram|ple|engram|mtp|read|resident|tensors")
_NO_PACKING = ("official", "card", "release", "preview", "safetensors", "hf")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """words: of its name, without tuning and packing. config: as its config.json states it. parameters: of the whole.

    sizes: bytes of published checkpoints by the words of their name. written: likewise their formats, where they
    differ from what most tools write.
    """

    id: str
    words: tuple[str, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    parameters: float = 0.0
    written: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def load_models(facts: Path, configs: Path) -> tuple[KnownModel, ...]:
    lines = [json.loads(line) for line in facts.read_text().splitlines() if line.strip()] if facts.exists() else []
    found = {model_key(line["id"]): _of_line(line) for line in lines}
    for name, more in _own().items():
        made = _with(name, found.get(model_key(str(more.get("like", name)))), more)
        if "num_hidden_layers" in made.config:
            found[model_key(name)] = made
    ran = tuple(_ran(path, tuple(found.values())) for path in sorted(configs.glob(f"*{CONFIG}")))
    return (*found.values(), *ran)


@cache
def _own() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = yaml.safe_load(OWN.read_text())
    return found


def find_model(models: Sequence[KnownModel], name: str) -> KnownModel | None:
    """The model whose words the name has, in order and at most one word apart; of several the one with most words."""
    spoken = name_parts(name, idle=True)
    fitting = [known for known in models if known.words and _within(known.words, spoken)]
    # Of equals the later source: a config that was really run.
    return max(reversed(fitting), key=lambda known: len(known.words), default=None)


def model_key(name: str) -> tuple[str, ...]:
    return name_parts(name)


def name_parts(name: str, idle: bool = False) -> tuple[str, ...]:
    """`nvidia/Qwen3.6-35B-A3B-NVFP4` -> qwen3.6 35b a3b (and nvfp4, with idle)."""
    bare = re.sub(r"^[\w.-]+/(?=\S)", "", name.strip().lower())
    return tuple(word for word in _split(bare) if idle or not _IDLE.fullmatch(word))


def _split(text: str) -> list[str]:
    return [word for word in re.split(r"[\s/_()+,;-]+", text.lower()) if word]


def size_of(known: KnownModel, *texts: str) -> int:
    """Bytes of the published checkpoint that a row means: the one whose words its texts all have; 0 without one.

    Of several the one with most words; the first text, the model's name, counts double.
    """
    return _best(known.sizes, texts) or 0


def formats_of(known: KnownModel, *texts: str) -> Mapping[str, Any]:
    """Fields of the shape as the checkpoint that a row means has them, chosen like its size; none where it is usual."""
    return _best(known.written, texts) or {}


def _best(named: Mapping[str, T], texts: Sequence[str]) -> T | None:
    said = [set(_split(text)) for text in texts]
    everything = set().union(*said)
    words = ((frozenset(name.split()), value) for name, value in named.items())
    fitting = [(len(name) + len(name & said[0]), value) for name, value in words if name and name <= everything]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


def _within(wanted: Sequence[str], spoken: Sequence[str]) -> bool:
    starts = (n for n, word in enumerate(spoken) if word == wanted[0])
    return any(_follows(wanted, spoken, start) for start in starts)


def _follows(wanted: Sequence[str], spoken: Sequence[str], at: int) -> bool:
    for word in wanted[1:]:
        step = next((step for step in (1, 2) if spoken[at + step : at + step + 1] == (word,)), 0)
        if not step:
            return False
        at += step
    return True


def _ran(path: Path, others: Sequence[KnownModel]) -> KnownModel:
    """A config that was really run reports all but what checkpoints weigh."""
    name = path.name.removesuffix(CONFIG)
    base = find_model(others, name)
    said = replace(base, config={}) if base else KnownModel(name, ())
    return replace(said, id=path.name, words=name_parts(name, idle=True), config=json.loads(path.read_text()))


def _of_line(line: Mapping[str, Any]) -> KnownModel:
    total, active = float(line.get("total_params_b") or 0) * 1e9, float(line.get("active_params_b") or 0) * 1e9
    # Experts that nobody counted would pass for one wide FFN.
    parameters = total if line.get("experts") or active == total else 0.0
    return KnownModel(
        line["id"], name_parts(line["id"]), as_config(line), _sizes(line.get("checkpoints") or {}), parameters
    )


def _sizes(checkpoints: Mapping[str, Any]) -> dict[str, int]:
    """`unsloth_nvfp4_gb: 23.4` -> `unsloth nvfp4`: 23.4e9."""
    found = {}
    for name, value in checkpoints.items():
        *rest, unit = name.lower().split("_")
        if isinstance(value, int | float) and unit in _UNITS and not _NO_SIZE.search(name):
            said = " ".join(word for word in rest if word not in _NO_PACKING)
            found[said] = int(value * _UNITS[unit])
    return found


def _with(name: str, base: KnownModel | None, more: Mapping[str, Any]) -> KnownModel:
    config = expanded({**(base.config if base else {}), **more.get("config", {})})
    parameters = float(more.get("parameters_b", 0)) * 1e9 or (base.parameters if base else 0.0)
    sizes = dict(base.sizes) if base and "like" not in more else {}
    sizes |= {said: int(float(size)) for said, size in more.get("sizes", {}).items()}
    return KnownModel(name, name_parts(name), config, sizes, parameters, more.get("written", {}))
