"""Options of an engine that its owner had read: from the engine that is installed, or from a wheel.

The text comes from a foreign program, or from a file that anybody may have edited: sizes are bounded, and a row of
another shape than `Option` has is refused.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass
from sparkwright.engines.flag_data import FlagData, flag_data_of
from sparkwright.engines.wheels.llama import parse_help

MOST_BYTES = 4 << 20
ASKABLE = ("vllm", "sglang", "llama-cpp")  # whose parser launchers/engine_options.py can ask
VERSION = r"^[A-Za-z0-9][A-Za-z0-9_.+!-]{0,63}$"
Row = dict[str, Any]
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"  # on one line, in one direction
_Text = Annotated[str, StringConstraints(max_length=300, pattern=_PRINTABLE)]
_Value = Annotated[str, StringConstraints(max_length=200, pattern=_PRINTABLE)] | int | float | None
_Values = Annotated[list[_Value], Field(max_length=2000)]
_Name = Annotated[str, StringConstraints(pattern=r"^-?[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
_Spelling = Annotated[str, StringConstraints(pattern=r"^--?[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{1,99}$")]
_Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
_Limits = dict[Literal["ge", "gt", "le", "lt"], int | float]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Option(_Strict):
    """The row of one option, as the shipped files have it."""

    kind: Literal["flag", "bool", "value", "list", "json", "append", "maybe"]
    type: Literal["str", "int", "float", "number", "human-int", "si-int", "json-or-str"] = "str"
    choices: _Values = []
    known: _Values = []
    aliases: Annotated[list[_Spelling], Field(max_length=50)] = []
    negatives: Annotated[list[_Spelling], Field(max_length=50)] = []
    deprecated: _Text | Literal[True] = ""
    replaced_by: Annotated[_Text, Field(alias="replaced-by")] = ""
    refused: bool = False
    folded: bool = False
    range: _Limits = {}
    keys: Annotated[dict[_Key, _Values | None], Field(max_length=2000)] = {}
    default: _Value | bool = None


class _Source(_Strict):
    how: Literal["parser", "wheel"]
    place: _Text
    at: Annotated[int, Field(ge=0, lt=1 << 40)]


class _Document(_Strict):
    engine: Literal["vllm", "sglang", "trtllm", "llama-cpp"]
    version: Annotated[str, StringConstraints(pattern=VERSION)]
    build: Annotated[str, StringConstraints(pattern=r"^(?:sha256:)?[0-9a-f]{64}$|^$")]
    source: _Source
    env: Annotated[list[_Variable], Field(max_length=20_000)]
    env_deprecated: Annotated[dict[_Variable, _Text], Field(alias="env-deprecated", max_length=20_000)]
    options: Annotated[dict[_Name, _Option], Field(min_length=1, max_length=5000)]


@dataclass(frozen=True, slots=True)
class OptionsOrigin:
    """The source of options: the engine's own parser (`parser`) or the sources in a wheel (`wheel`).

    place: the wheel's name, `image NAME` or `venv PATH`. at: seconds since 1970.
    """

    engine: str
    how: str
    place: str
    at: float


def from_answer(text: str, origin: OptionsOrigin, version: str = "", build: str = "") -> Row:
    """The document to keep of what engine_options.py printed.

    version: by which recipes name the engine, else what it says itself. build: of the image, else the package's.
    Raises ValueError with the reason.
    """
    found = _tree(text.strip().rpartition("\n")[2])
    head = {"version": version or found.get("version"), "build": build or found.get("build")}
    if isinstance(found.get("help"), str):
        return from_help(found["help"], origin, head)
    return document(origin, head, found.get("options"), found.get("env"))


def from_help(text: str, origin: OptionsOrigin, head: Mapping[str, Any]) -> Row:
    """The document of llama.cpp's help text. Raises ValueError with the reason."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES >> 20} MiB")
    options = parse_help(text)
    env = sorted({row.pop("env") for row in options.values() if "env" in row})
    return document(origin, head, options, env)


def document(origin: OptionsOrigin, head: Mapping[str, Any], options: object, env: object) -> Row:
    """The document to keep. head: version, build, and `env-deprecated` if known. Raises ValueError with the reason."""
    row = {
        "engine": origin.engine,
        "version": head.get("version"),
        "build": head.get("build") or "",
        "source": {"how": origin.how, "place": origin.place[:300], "at": round(origin.at)},
        "env": env,
        "env-deprecated": head.get("env-deprecated") or {},
        "options": options,
    }
    _require(row)
    return row


def from_text(text: str) -> FlagData:
    """The data of a kept document. Raises ValueError with the reason."""
    row = _tree(text)
    _require(row)
    return flag_data_of({**row, "wheel": "", "sha256": ""})


def to_text(row: Row) -> str:
    """One option a line, so that two versions can be compared with diff."""
    head = {key: value for key, value in row.items() if key != "options"}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in row["options"].items())
    return f'{json.dumps(head, indent=1)[:-2]},\n "options": {{\n{lines}\n }}\n}}\n'


def _tree(text: str) -> Row:
    if len(text) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES >> 20} MiB")
    found = read_json(text)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def _require(row: Mapping[str, Any]) -> None:
    """Raises ValueError with the place of the first mistake."""
    try:
        _Document.model_validate(dict(row))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:60] for part in first["loc"])
        raise ValueError(f"{where}: {first['msg'][:200]}") from None
