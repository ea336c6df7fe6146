"""The part of JSON Schema that probes ask for: https://json-schema.org/draft/2020-12"""

from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def problems(value: Any, schema: Mapping[str, Any], where: str = "$") -> Iterator[str]:
    """The violations of the schema: type, enum, required, properties, additionalProperties, items, minItems."""
    kind = schema.get("type")
    if kind and not (isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))):
        yield f"{where}: {type(value).__name__}, not {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if isinstance(value, dict):
        yield from _object(value, schema, where)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{where}: {len(value)} items, at least {schema['minItems']} expected"
        for place, item in enumerate(value):
            yield from problems(item, schema.get("items", {}), f"{where}[{place}]")


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, inside in value.items():
        if name in known:
            yield from problems(inside, known[name], f"{where}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{where}.{name} is not in the schema"
