"""The author's statements about the model, with their source: parameters, formats, layers, memory."""

import re
from collections.abc import Mapping
from typing import Any

from sparkwright.recipes.importers.draft import Draft

_COUNT = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMBT]?)(?:-A(\d{1,6}(?:\.\d{1,6})?)([MB]))?", re.IGNORECASE)
_SCALE = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_WHOLE = {
    "layers": ("num_layers", "num_hidden_layers"),
    "heads": ("num_attention_heads", "num_heads"),
    "kv_heads": ("num_kv_heads", "num_key_value_heads"),
    "head_dim": ("head_dim",),
}
_WORDS = {"dtype": ("model_dtype", "quantization", "precision"), "kv_dtype": ("kv_dtype",)}
_GB = {"weights": ("model_vram",), "memory": ("vram_minimum_gb",)}


def put_stated(draft: Draft, said: Mapping[str, Any], by: str) -> None:
    """Keys of sparkrun's `metadata` and of vLLM's `model` and variants; what cannot be read is noted."""
    found: dict[str, Any] = {}
    for key, names in (("parameters", ("model_params", "parameter_count")), ("active", ("active_parameters",))):
        for name in names:
            if said.get(name):
                found |= _parameters(draft, name, key, str(said[name]))
    found |= {key: value for key, names in _WHOLE.items() if (value := _number(said, names)) and value < 10_000_000}
    for key, places in _WORDS.items():
        word = next((str(said[name]) for name in places if said.get(name)), "")
        if re.fullmatch(r"[^\s]{1,40}", word) and word not in ("auto", "none"):
            found[key] = word
    found |= {key: f"{value:g}GB" for key, names in _GB.items() if (value := _number(said, names)) and value < 100_000}
    if found:
        draft.put("model.stated", found | {"by": by})


def _number(said: Mapping[str, Any], names: tuple[str, ...]) -> float:
    """The first of the names that holds a number above 0; 0."""
    found = next((said[name] for name in names if said.get(name)), 0)
    return found if isinstance(found, int | float) and not isinstance(found, bool) and found > 0 else 0


def _parameters(draft: Draft, name: str, key: str, text: str) -> dict[str, int]:
    """`27B`, `122B-A10B`, `34372770104`."""
    match = _COUNT.fullmatch(text.strip())
    if not match:
        draft.note(f"{name}: {text[:40]!r} is no count of parameters and is left out")
        return {}
    found = {key: round(float(match[1]) * _SCALE[match[2].upper()])}
    if match[3]:
        found["active"] = round(float(match[3]) * _SCALE[match[4].upper()])
    return {name: count for name, count in found.items() if 0 < count <= 10**13}
