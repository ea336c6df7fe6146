"""The values of our YAML: sizes (`64g`), durations (`4min`), texts as written, ranges with their reason."""

import re
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from sparkwright.domain.known_keys import PREFIXES
from sparkwright.domain.units import parse_size
from sparkwright.domain.values import dataclass, is_dataclass
from sparkwright.recipes.yaml_lines import WrittenFloat, WrittenInt

_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
_SECRET_VALUE = re.compile(rf"^{PREFIXES}\S{{8,}}")
_SECRET_NAME = re.compile(r"(^|_)(TOKEN|API_?KEY|SECRET|SECRET_KEY|PASSWORD|PASSWD|ACCESS_KEY|PRIVATE_KEY)$")


class Part(BaseModel):
    """The common base of all sections of our files: no unknown key, no silent conversion."""

    # Built when first used: `status` reads a cluster file and no recipe.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def is_secret_name(name: str) -> bool:
    """True for HF_TOKEN, OPENAI_API_KEY and the like; not for VLLM_MAX_TOKENS."""
    return bool(_SECRET_NAME.search(name.upper().replace("-", "_")))


def looks_secret(text: str) -> bool:
    """True for text with the shape of a well-known kind of key (`hf_...`, `sk-...`)."""
    return bool(_SECRET_VALUE.match(text.strip()))


def shown_value(value: Any) -> str:
    """A value as an error message shows it: one line, at most 60 characters, never a key."""
    if isinstance(value, str):
        return "a text that looks like a key (not shown)" if looks_secret(value) else _short(repr(value))
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else _short(str(getattr(value, "text", value)))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def seconds(value: Any) -> float:
    """Seconds of `230s`, `4min`, `1.5h` or a bare number. Raises ValueError."""
    match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]*)\s*", _text(value))
    if not match or match[2] not in _SECONDS:
        raise ValueError(f"found {shown_value(value)}; a duration is a number with s, min or h, as in 230s or 4min")
    return float(match[1]) * _SECONDS[match[2]]


def size_in_bytes(value: Any) -> int:
    """Bytes of `64g`, `149GB` or a bare number. Raises ValueError."""
    wrong = ValueError(f"found {shown_value(value)}; a size is a number with k, m, g, GiB or GB, as in 64g or 149GB")
    text = _text(value)
    if len(text) > 30:
        raise wrong
    try:
        return parse_size(text)
    except (ValueError, OverflowError):
        raise wrong from None


def _text(value: Any) -> str:
    return "" if isinstance(value, bool) else str(getattr(value, "text", value))


def as_written(value: Any) -> Any:
    """Numbers become the text they were written as; `true` is refused, for nobody knows whether 1 or true is meant."""
    if isinstance(value, WrittenInt | WrittenFloat):
        return value.text
    if isinstance(value, bool):
        word = str(value).lower()
        raise ValueError(f'found {word}; expected a text: put it in quotes, as in "{word}" or "{int(value)}"')
    if isinstance(value, str) and has_control(value):
        raise ValueError("found control characters in the text; allowed: printable text, tabs and line breaks")
    return value


def has_control(text: str) -> bool:
    """True when the text holds what is no text: NUL ends an argument early, ESC drives the terminal."""
    return any((ord(c) < 32 and c not in "\n\t") or ord(c) == 127 for c in text)


def plain_value(value: Any) -> Any:
    """The value without the memory of how it was written: plain int, float, str, bool, None, list, dict."""
    if isinstance(value, WrittenInt):
        return int(value)
    if isinstance(value, WrittenFloat):
        return float(value)
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    return {str(k): plain_value(v) for k, v in value.items()} if isinstance(value, dict) else value


_types = cache(get_type_hints)


def domain_value(kind: Any, value: Any) -> Any:
    """A value of a validated file (lists, mappings by field name) as the domain's type: dataclass, enum, tuple."""
    if get_origin(kind) is UnionType:
        kind = get_args(kind)[0]
    if isinstance(value, list):
        return tuple(domain_value(get_args(kind)[0], item) for item in value)
    if isinstance(value, dict) and is_dataclass(kind):
        made: Any = kind
        types = _types(made)
        return made(**{name: domain_value(types[name], item) for name, item in value.items()})
    if isinstance(value, dict) and len(inside := get_args(kind)) == 2 and inside[1] is not Any:
        return {name: domain_value(inside[1], item) for name, item in value.items()}
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value


# What an editor may accept: numbers are texts as they are written, sizes and durations may have a unit.
Text = Annotated[str, BeforeValidator(as_written), WithJsonSchema({"type": ["string", "number"]})]
Seconds = Annotated[float, BeforeValidator(seconds), WithJsonSchema({"type": ["number", "string"]})]
Size = Annotated[int, BeforeValidator(size_in_bytes), WithJsonSchema({"type": ["integer", "string"]})]


@dataclass(frozen=True, slots=True)
class Within:
    """low..high, and why; `zero`: 0 is allowed too and leaves the choice to the engine."""

    low: float
    high: float
    why: str
    zero: bool = False

    def __str__(self) -> str:
        return f"{'0 or ' if self.zero else ''}{self.low}..{self.high}"

    def check(self, value: float) -> float:
        if self.low <= value <= self.high or (self.zero and value == 0):
            return value
        raise ValueError(f"found {f'{value:g}' if isinstance(value, float) else value}; allowed {self}: {self.why}")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        within = {**handler(schema), "minimum": self.low, "maximum": self.high}
        return {"anyOf": [within, {"const": 0}]} if self.zero else within


@dataclass(frozen=True, slots=True)
class Matching:
    """Text of a form; `form` describes it; `hide`: the text may be a key and is not shown."""

    pattern: str
    form: str
    hide: bool = False

    def check(self, value: str) -> str:
        if value == "" or re.fullmatch(self.pattern, value):
            return value
        raise ValueError(
            f"found {'a text that is not shown' if self.hide else shown_value(value)}; allowed: {self.form}"
        )

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^(?:{self.pattern})?$"}
