"""Words of measurement rows -> values of a recipe: versions, speculation, cache types, options in notes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from sparkwright.domain.recipe import Speculation

ENGINES = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llama-cpp", "tensorrt-llm": "trtllm"}
_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?(?:(?:rc|a|b)\d+)?(?:\.?(?:dev|post)\d+)?)")
# A version right behind the name of something else is that one's.
_OTHERS = re.compile(r"(flashinfer|ray|torch|cuda|nccl|python|triton)\s*$", re.IGNORECASE)
# What numbers each project has had so far; others in the same text are tags of images.
_PLAUSIBLE = {"vllm": r"0\.([6-9]|[1-9]\d)\.\d", "sglang": r"0\.[4-9]\.\d", "trtllm": r"[01]\.\d+\.\d"}
# Day of release of versions that recipes may be assumed to use, from the time stamps inside their published wheels.
_RELEASED = {
    "vllm": (("2026-04-03", "0.19.0"), ("2026-05-08", "0.20.2"), ("2026-05-15", "0.21.0"), ("2026-06-29", "0.24.0"),
             ("2026-08-11", "0.27.1"), ("2026-08-26", "0.28.0"), ("2026-09-22", "0.30.0"), ("2026-11-01", "0.33.0")),
    "sglang": (("2026-04-05", "0.5.10"), ("2026-05-16", "0.5.12"), ("2026-07-25", "0.5.16"), ("2026-09-18", "0.5.20"),
               ("2026-10-30", "0.5.23")),
}  # fmt: skip
UNTAGGED = "0.1.dev1"  # what a source build without tags calls itself: of any day
_BUILD = re.compile(r"\bb(\d{4,6})\b")
_NUMBER = re.compile(r"\d+")
_ASIDE = re.compile(r"\([^)]*\)")
_MOST_DRAFTED = 64  # tokens; larger numbers in the text count something else
_TEXTS = {
    "prose": re.compile(r"\b(prose|essay|narrative|story|summar\w+|reading)\b", re.IGNORECASE),
    "code": re.compile(r"\b(code|coding|json|math|tables?)\b", re.IGNORECASE),
    "counting": re.compile(r"\bcount|\bstructured\b", re.IGNORECASE),
}
_EXTRA = re.compile(r"extra args: ([^|]*)")
_AMOUNT = r"(\d+(?:\.\d+)?(?:e9)?) ?(GiB|GB|MiB|MB|G|M|B)?(?![\w/.])"
_PINNED = (
    re.compile(rf"kv[-_ ]?cache[-_ ]memory(?:[-_ ]bytes)?[ =:]+{_AMOUNT}", re.IGNORECASE),
    re.compile(rf"\bkv (?:pool |cache )?(?:pin|pinned|fixed)(?: (?:to|at|of))?[ =:]+{_AMOUNT}", re.IGNORECASE),
    re.compile(rf"{_AMOUNT} (?:of )?(?:KV (?:pool |cache )?)?(?:pin|pinned|fixed)\b", re.IGNORECASE),
)
_UNITS = {"": 1.0, "b": 1.0, "mib": 1 << 20, "m": 1 << 20, "gib": 1 << 30, "g": 1 << 30, "mb": 1e6, "gb": 1e9}
_LEAST_PIN = 1 << 27  # a number that makes fewer bytes counts something else
_LIMITS = {
    "max-num-seqs": re.compile(r"\bmax[-_ ](?:num[-_ ]seqs|running[-_ ]requests)[ =:]+(\d+)", re.IGNORECASE),
    "max-num-batched-tokens": re.compile(
        r"\b(?:max[-_ ]num[-_ ]batched[-_ ]tokens|chunked[-_ ]prefill[-_ ]size)[ =:]+(\d+)", re.IGNORECASE
    ),
    "max-model-len": re.compile(r"\b(?:max[-_ ]model[-_ ]len|context[-_ ]length)[ =:]+(\d+)", re.IGNORECASE),
}
_NO_DRAFT = re.compile(r"\b(no|none|off|without|disabled|not)\b", re.IGNORECASE)
_METHODS = re.compile(r"\b(dspark|dflash2?|eagle3?|nextn|mtp|medusa|ngram|n-gram|suffix|draft_model)\b", re.IGNORECASE)
_BLOCK = re.compile(r"\bblock[ -]size (\d+)")
_DCP = re.compile(r"\bdcp ?(\d+)\b", re.IGNORECASE)
_SWITCH = re.compile(r"\b(VLLM_\w+)=(\w+)")
_LOADER = re.compile(r"\bLOAD_FORMAT=(\w+)")
_CAPTURE = re.compile(r"max capture (\d+)")
_MEMORY = re.compile(r"(?:GPU total ([\d.]+) GiB|([\d.]+) GiB (?:unified|usable))")


def version(engine: str, said: str, date: str) -> tuple[str, bool]:
    """The engine's version in a text about its image, else the newest of the row's day; and whether it was reported."""
    if engine == "llama-cpp":
        build = _BUILD.search(said)
        return (build[0], True) if build else ("", False)
    for match in _VERSION.finditer(said):
        whole = match[1] if match[1].count(".") > 1 else f"{match[1]}.0"
        mine = re.match(_PLAUSIBLE.get(engine, r"$"), whole)
        if mine and not _OTHERS.search(said[: match.start()]):
            return whole, True
    known = _RELEASED.get(engine, ())
    before = [name for day, name in known if not date or day <= date.ljust(10, "~")]
    return (before or [name for _, name in known[:1]] or [""])[-1], False


def releases(engine: str) -> tuple[str, ...]:
    """Versions that a row may be assumed to be about."""
    return tuple(name for _, name in _RELEASED.get(engine.removesuffix("-ray"), ()))


def speculation(said: str) -> Speculation:
    """`mtp, 2 tokens`, `dspark 5 greedy`, `{'method': 'dflash', ...}`; tokens 0 when nobody reports how many."""
    if not said:
        return Speculation()
    if options := _mapping(said):
        tokens = number(options.pop("num_speculative_tokens", 0))
        return Speculation(str(options.pop("method", "")), int(tokens), options)
    named = _METHODS.search(said)
    if _NO_DRAFT.search(said[: named.start()] if named else said):
        return Speculation()
    method = named[1].lower().replace("n-gram", "ngram") if named else re.split(r"[ ,/(]", said.lower())[0]
    numbers = (int(one) for one in _NUMBER.findall(_ASIDE.sub("", said[named.end() if named else len(method) :])))
    return Speculation(method, next((one for one in numbers if one <= _MOST_DRAFTED), 0))


def _mapping(said: str) -> dict[str, Any]:
    """Options as JSON or as Python prints them: YAML reads both; {} for what is none."""
    try:
        found = yaml.safe_load(said) if said.startswith("{") else None
    except yaml.YAMLError:
        found = None
    return found if isinstance(found, dict) else {}


def cache_type(said: str) -> str:
    """The cache type in the form of the engines' flag; '' if the engine chooses."""
    word = said.split(" ")[0]
    return {"auto": "", "bf16": "bfloat16"}.get(word, word)


def prescribes_fp8_kv(row: Mapping[str, Any]) -> bool:
    """ModelOpt's quantized checkpoints report vLLM to cache in FP8 where nobody chooses a type."""
    said = f"{row.get('model')} {row.get('quant')}".lower()
    made = "modelopt" in said or said.startswith("nvidia/")
    return not row.get("kv_cache_dtype") and made and bool(re.search(r"nvfp4|\bfp8", said))


def stays_on_disk(row: Mapping[str, Any]) -> bool:
    """True if a part of the checkpoint stays on disk, so that not all of its size is loaded."""
    said = f"{row.get('model')} {row.get('quant')} {row.get('notes')}".lower()
    what, where = (
        r"\b(engram|n-?grams?|tables?|ple|embeddings?)\b",
        r"\b(nvme|ssds?|disk|swap|mmap\w*|memory[- ]mapped)\b",
    )
    inside = r"(?:[^.;]|\.\d)"  # of one sentence
    return bool(re.search(rf"{what}{inside}{{0,40}}{where}|{where}{inside}{{0,20}}{what}", said))


def switches(notes: str) -> dict[str, str]:
    """Variables of the engine that the notes quote: `VLLM_SOMETHING=0`."""
    return dict(_SWITCH.findall(notes))


def image_address(said: str) -> str:
    """The address of an image in a text about it, NVIDIA's by its month, too; else the text."""
    found = re.search(r"\S+/\S+:\S+", said)
    month = re.search(r"\bNVIDIA (\d\d\.\d\d)\b", said)
    return found[0] if found else f"nvcr.io/nvidia/vllm:{month[1]}-py3" if month else said


def ranks_on_ray(said: str, notes: str) -> bool:
    """True if vLLM's ranks were Ray's."""
    return "ray" in said.lower().replace(",", " ").split() or bool(re.search(r"(?<!no )\bRay\b", notes))


def network(said: str) -> dict[str, str] | None:
    """The variables of a recipe for that network: collectives without RDMA are an order slower; None: not stated."""
    if re.search(r"\b1 ?gbe\b|\btcp\b|\bsockets\b", said.lower()):
        return {"NCCL_NET": "Socket"}
    return {} if re.search(r"\brdma\b|\broce\b", said.lower()) else None


def drafts(said: str) -> bool:
    """True if a remark about one figure reports that it was measured with speculation."""
    return bool(re.search(r"\bspec\b|speculat|ngram|\bmtp\b|draft|dflash|dspark|eagle", said.lower()))


def text_kind(said: str) -> str:
    """prose, code or counting, where the remark on a figure names one of them and no other; '' else."""
    found = [kind for kind, pattern in _TEXTS.items() if pattern.search(said)]
    return found[0] if len(found) == 1 else ""


def lengths(notes: str) -> tuple[int, int]:
    """Tokens of prompt and answer as benchmarks note them: `pp1024, tg128`; 0, 0 otherwise."""
    found = re.search(r"\bpp ?(\d+)[ ,]+tg ?(\d+)", notes)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def whole_context(notes: str) -> bool:
    """True if rates at a depth are of the whole context, not of the prompt behind it."""
    return "over the whole context" in notes


def options(notes: str) -> dict[str, Any]:
    """Flags that the notes quote from the command: `extra args: --moe-backend marlin | ...`."""
    found: dict[str, Any] = {}
    quoted = _EXTRA.search(notes)
    name = ""
    for word in quoted[1].split() if quoted else ():
        if word.startswith("--"):
            name, _, value = word.removeprefix("--").replace("_", "-").partition("=")
            found[name] = value or True
        elif name:
            found[name] = word
    return found


def limits(notes: str) -> dict[str, int]:
    """Limits that the notes give by the option's name, in whatever spelling; the last one counts."""
    found = ((name, pattern.findall(notes)) for name, pattern in _LIMITS.items())
    return {name: int(numbers[-1]) for name, numbers in found if numbers}


def implied_flags(engine: str, notes: str, graphs: str, backend: str) -> dict[str, Any]:
    """Flags that other fields and sentences mean. vLLM writes the names of backends in capitals."""
    found: dict[str, Any] = {}
    for name, pattern in (("block-size", _BLOCK), ("decode-context-parallel-size", _DCP)):
        match = pattern.search(notes)
        found |= {name: int(match[1])} if match else {}
    loader, capture = _LOADER.search(notes), _CAPTURE.search(graphs)
    found |= {"load-format": loader[1]} if loader else {}
    found |= {"max-cudagraph-capture-size": int(capture[1])} if capture else {}
    name = backend.split(" ")[0].lower() if engine == "sglang" else backend.split(" ")[0].upper()
    return found | ({"attention-backend": name} if name else {})


def eager_flags(engine: str, graphs: str) -> dict[str, Any]:
    off = graphs.startswith("off") or graphs.endswith(":none")
    return {("disable-cuda-graph" if engine == "sglang" else "enforce-eager"): True} if off else {}


def pinned(notes: str) -> int:
    """Bytes of KV that the command fixed; 0 when it did not."""
    found = (match for pattern in _PINNED if (match := pattern.search(notes)))
    sizes = (int(float(match[1]) * _UNITS[(match[2] or "").lower()]) for match in found)
    return next((size for size in sizes if size >= _LEAST_PIN), 0)


def node_memory(notes: str) -> float:
    """GiB of the node's memory, where the notes report them; 0 otherwise."""
    match = _MEMORY.search(notes)
    return float(match[1] or match[2]) if match else 0.0


def integer(row: Mapping[str, Any], name: str) -> int:
    """A count of the row; 0 for null and what is none. `ep: true` counts as one."""
    return int(number(row.get(name)))


def number(value: Any) -> float:
    """0 for what is no number above 0."""
    return float(value) if isinstance(value, int | float) and 0 < value < math.inf else 0.0
