"""Command-line options as an ordered mapping, and how they become words."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.recipe import Recipe

Options = dict[str, Any]


def option_words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """`--name value` words in the mapping's order.

    True is `--name`, False `--no-name`, None leaves the option out, a mapping is JSON, a list of plain values is
    `--name a b c`, any other list is JSON.
    """
    return tuple(word for name, value in options.items() for word in _option(name, value))


def merge_options(options: Mapping[str, Any], extra: Mapping[str, Any]) -> Options:
    """The recipe's own flags over ours: the same option keeps our place but takes the recipe's value."""
    return {**options, **{option_name(name): value for name, value in extra.items()}}


def option_name(name: str) -> str:
    """`max_model_len`, `--max-model-len` and `max-model-len` are one option; what follows a dot is left alone."""
    head, dot, rest = name.lstrip("-").partition(".")
    return head.replace("_", "-") + dot + rest


def flag_value(recipe: Recipe, name: str) -> Any:
    """The recipe's own value of an option, however it spells its name; None when it gives none."""
    for written, value in recipe.flags.items():
        if written == name or (
            (written[:1] == "-" or "_" in written) and written.lstrip("-").replace("_", "-") == name
        ):
            return value
    return None


def fits_context(recipe: Recipe) -> bool:
    """True if vLLM chooses the longest context that fits: `max-model-len` is `auto` or -1 under `flags`.

    Since vllm-project/vllm#29431, so in every version whose options were read. The other engines have no such value.
    """
    return not recipe.serving.context and is_fitting(flag_value(recipe, "max-model-len"))


def is_fitting(value: Any) -> bool:
    """True for the values of vLLM's --max-model-len that mean: as long as fits."""
    return not isinstance(value, bool) and str(value).lower() in ("auto", "-1")


def number(value: Any) -> int:
    """A whole number above 0 as written in a recipe; 0 for anything else."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def lmcache(recipe: Recipe) -> float:
    """Bytes that a rank's LMCache takes of host memory, by its variables (docs.lmcache.ai, api_reference)."""
    off = str(recipe.env.get("LMCACHE_LOCAL_CPU", "true")).lower() in ("0", "false")
    given = str(recipe.env.get("LMCACHE_MAX_LOCAL_CPU_SIZE", ""))
    return 0.0 if off else (float(given) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", given) else 5.0) * 2**30


def lmcache_disk(recipe: Recipe) -> tuple[str, int]:
    """Folder as LMCache sees it and the bytes that each rank may write there; ('', 0) without a disk.

    By its variables: `LMCACHE_LOCAL_DISK=file:///folder/` and the size in GiB (docs.lmcache.ai, api_reference).
    """
    folder = re.fullmatch(r"file://(/.*)/", str(recipe.env.get("LMCACHE_LOCAL_DISK", "")))
    size = amount(recipe.env.get("LMCACHE_MAX_LOCAL_DISK_SIZE"))
    return (folder[1], int(size * 2**30)) if folder and size else ("", 0)


def amount(value: Any) -> float:
    """A number above 0 as written in a recipe; 0 for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,12}(\.\d{1,12})?", value):
        value = float(value)
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12
    return float(value) if good else 0.0


def mapping(value: Any) -> Mapping[str, Any]:
    """An option that a recipe may write as a mapping or as JSON; empty for anything else."""
    with suppress(ValueError):
        value = read_json(value) if isinstance(value, str) else value
    return value if isinstance(value, Mapping) else {}


def _option(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, bool):
        return (f"--{name}" if value else f"--no-{name}",)
    if isinstance(value, Mapping):
        return (f"--{name}", compact_json(value))
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(v, (str, int, float)) and not isinstance(v, bool) for v in value):
            return (f"--{name}", *(option_text(v) for v in value))
        return (f"--{name}", compact_json(list(value)))
    return (f"--{name}", option_text(value))


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def option_text(value: Any) -> str:
    """A number without a needless exponent or `.0`: 20000000000.0 is `20000000000`, 0.8 stays `0.8`."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
