"""A file of published measurements -> cases that the planner can be asked about: `load(path) -> tuple[Case, ...]`.

Each row becomes a Recipe, as if somebody had written one for that run, and the shape of its model. What the row leaves
open stays 0 or '' in the recipe, as in a recipe that leaves it to the engine. Rules are general: no row has its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import planner_report_quant as quant
import planner_report_words as words
from planner_report_dates import row_dates
from planner_report_models import KnownModel, find_model, formats_of, load_models, size_of
from planner_report_solve import solved

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving
from sparkwright.domain.units import GIB
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import number
from sparkwright.facts.model_config import parse
from sparkwright.planner.parts import settled, table_size

_RELEASE = re.compile(r"v?\d+\.\d+\.\d+")

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
# What CUDA sees of a GB10's 128 GB: 121.6-121.69 GiB in all published logs; the data's own conversions use the latter.
NODE_GIB = 121.69
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannerCase:
    """One row. shape: Unknown with the reason when the model, or too much of it, is not known.

    size: bytes of the whole checkpoint as published, 0 when nobody reports (it is recipe.model.size, too).
    memory: bytes of one node's pool. model: which entry of the models' facts was taken, '' for none; parameters: how
    many numbers that reports it has. assumed: what the row does not report and was filled in.
    """

    row: Row
    recipe: Recipe
    shape: ModelShape | Unknown
    size: int
    memory: int
    model: str = ""
    parameters: float = 0.0
    assumed: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return str(self.row["id"])

    @property
    def loaded(self) -> int:
        """Bytes of the checkpoint that go into memory, 0 if not known."""
        return max(0, self.size - self.recipe.model.on_disk)

    @property
    def result(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.row["result"]
        return found


def load(path: Path, models: Sequence[KnownModel] | None = None) -> tuple[PlannerCase, ...]:
    """All rows of a JSON-lines file. Raises ValueError on a line that is no JSON object with an id and a result."""
    known = models_for(path) if models is None else models
    return of_rows([_row(line) for line in path.read_text().splitlines() if line.strip()], known)


def of_rows(rows: Sequence[Row], known: Sequence[KnownModel]) -> tuple[PlannerCase, ...]:
    """One case a row; what one leaves out, such as its day, other rows of its source may tell."""
    about = [find_model(known, _text(row, "model")) for row in rows]
    named = {_text(row, "model"): found.id for row, found in zip(rows, about, strict=True) if found}
    days = row_dates(rows, lambda row: named.get(_text(row, "model"), ""))
    return tuple(case_of_row(*each) for each in zip(rows, about, days, strict=True))


def models_for(path: Path) -> tuple[KnownModel, ...]:
    """models.jsonl next to the rows, else the shared one; configs likewise."""
    here = path.resolve().parent
    place = here if (here / "models.jsonl").exists() else SHARED
    return load_models(place / "models.jsonl", place / "model-configs")


def case_of_row(row: Row, known: KnownModel | None, day: str = "") -> PlannerCase:
    """known: what is known of the row's model. day: when it was measured, which implies an unwritten version."""
    size = _size(row, known)
    shape = _shape(row, known, size)
    if isinstance(shape, ModelShape):
        size = quant.in_bytes(size, shape)
    recipe, assumed = _recipe(row, day)
    if words.prescribes_fp8_kv(row) and traits(recipe).checks_context and traits(recipe).follows_checkpoint(recipe):
        recipe = replace(recipe, serving=replace(recipe.serving, kv_dtype="fp8"))
    stays = _on_disk(shape, size) if words.stays_on_disk(row) and isinstance(shape, ModelShape) else 0
    size = 0 if words.stays_on_disk(row) and not stays else size
    found = shape if isinstance(shape, ModelShape) else None
    model = Model(id=_text(row, "model"), size=size, on_disk=stays, shape=found)
    recipe = replace(recipe, model=model)
    memory = int((words.node_memory(_text(row, "notes")) or NODE_GIB) * GIB)
    parameters = known.parameters if known else 0.0
    return PlannerCase(row, recipe, shape, size, memory, known.id if known else "", parameters, assumed)


def _row(line: str) -> Row:
    row = json.loads(line)
    if not isinstance(row, dict) or not isinstance(row.get("result"), dict) or not row.get("id"):
        raise ValueError(f"a row needs an id and a result: {line[:80]}")
    return row


def _text(row: Row, name: str) -> str:
    return str(row.get(name) or "")


def _size(row: Row, known: KnownModel | None) -> int:
    """The row's own figure before the published one of a checkpoint with all the words of the facts' entry.

    A packing of a few bits is no checkpoint whose entry names none.
    """
    given, name, said = words.number(row.get("checkpoint_gb")), _text(row, "model"), _text(row, "quant")
    if known and quant.packing(f"{name} {said}"):
        known = replace(known, sizes={k: v for k, v in known.sizes.items() if quant.is_odd_packing(k)})
    published = size_of(known, name, said) if known else 0
    return int(given * 1e9) or published


def _shape(row: Row, known: KnownModel | None, size: int) -> ModelShape | Unknown:
    name, said = _text(row, "model"), _text(row, "quant")
    if known is None:
        return Unknown(name, "no facts about this model")
    if re.search(r"\bclass\b", name):
        return Unknown(name, "the source names a class of models, not the one that it measured")
    shape = parse(json.dumps(known.config))
    if isinstance(shape, Unknown):
        return shape
    shape = solved(shape, known.parameters)
    text = said if quant.formats(said) or quant.is_odd_packing(said) else name
    if quant.is_odd_packing(text):
        packing = "gguf" if "gguf" in f"{name} {said}".lower() else ""
        return replace(shape, quantization=packing, format=quant.packing(f"{name} {said}"), expert_format="", group=0)
    found = quant.written(shape, quant.formats(text), size, quant.everything(f"{name} {said}"))
    found = quant.in_groups(replace(found, **formats_of(known, name, said)), f"{name} {said} {_text(row, 'notes')}")
    return replace(found, quantization="gguf") if "gguf" in f"{name} {said}".lower() else found


def _on_disk(shape: ModelShape, size: int) -> int:
    """Bytes of the tables, in the format that explains the checkpoint's size."""
    written = settled(shape, size)
    return int(written.tables * table_size(written))


def _recipe(row: Row, day: str) -> tuple[Recipe, tuple[str, ...]]:
    notes, split = _text(row, "notes"), _parallelism(row)
    engine, assumed = _engine(row, day)
    flags = words.options(notes)
    serving = _serving(row, flags, notes)
    graphs, backend = _text(row, "cuda_graphs"), _text(row, "attention_backend")
    recipe = Recipe(
        name="row",
        title=str(row["id"]),
        model=Model(),
        engine=engine,
        # Each GB10 has one GPU; two ranks on one host are two nodes as far as memory goes.
        nodes=max(words.integer(row, "nodes"), split.world_size),
        parallelism=split,
        serving=serving,
        speculation=words.speculation(_text(row, "spec_decode")),
        env={**words.switches(f"{graphs} {notes}"), **(words.network(notes) or {})},
        flags=flags | words.implied_flags(engine.name, notes, graphs, backend) | words.eager_flags(engine.name, graphs),
    )
    return recipe, assumed


def _engine(row: Row, day: str) -> tuple[EngineChoice, tuple[str, ...]]:
    """The engine, and what of it nobody reported."""
    said, asked = _text(row, "engine_version_or_image"), _text(row, "engine")
    name = words.ENGINES.get(asked, asked) or "vllm"
    version, told = words.version(name, said, day)
    if name == "vllm" and words.ranks_on_ray(said, _text(row, "notes")):
        name = "vllm-ray"
    assumed = (*(() if told else (f"engine version {version}",)), *(() if asked else ("engine vllm",)))
    # Who gives the number of a release and no image ran that release.
    image = f"vllm/vllm-openai:v{said.removeprefix('v')}" if name == "vllm" and _RELEASE.fullmatch(said) else ""
    image = image or words.image_address(said)
    return EngineChoice(name, version, image=image), assumed


def _parallelism(row: Row) -> Parallelism:
    """The split of the row, else one over all nodes: of tensors, or of layers where the engine knows no other."""
    tp, pp, nodes = (words.integer(row, name) or 0 for name in ("tp", "pp", "nodes"))
    layers = nodes if row.get("engine") == "llama.cpp" and not tp and not pp else 0
    return Parallelism(tp or (1 if layers else nodes) or 1, pp or layers or 1, ep=bool(row.get("ep")))


def _serving(row: Row, flags: dict[str, Any], notes: str) -> Serving:
    """Fields of the row, else what the quoted options report; those that have a key of the recipe leave the flags."""
    limits = ("max-num-seqs", "max-num-batched-tokens", "max-model-len")
    said = words.limits(notes)
    quoted = {name: number(flags.pop(name, 0)) or said.get(name, 0) for name in limits}
    return Serving(
        context=words.integer(row, "max_model_len") or quoted["max-model-len"],
        sequences=words.integer(row, "max_num_seqs") or quoted["max-num-seqs"],
        batched_tokens=words.integer(row, "max_num_batched_tokens") or quoted["max-num-batched-tokens"],
        kv_dtype=words.cache_type(_text(row, "kv_cache_dtype")),
        memory_fraction=words.number(row.get("gpu_memory_utilization")),
        kv_cache_bytes=words.pinned(notes),
    )
