"""JSON schemas of the recipe and the cluster file, for editors: made from the models that read the files."""

import re
from collections.abc import Mapping
from typing import Any

from sparkwright.recipes.cluster_file import ClusterPart
from sparkwright.recipes.schema import RecipeFile, RecipePart
from sparkwright.recipes.yaml_lines import read_yaml

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ABOUT = {"recipe": "A recipe of sparkwright: what to serve.", "cluster": "A cluster file of sparkwright: the nodes."}
_PLACE = "#/$defs/"

Schema = dict[str, Any]
Required = Mapping[str, list[str]]
"""Reference to a section -> the keys that it needs."""


def file_schema(kind: str, annotated: str) -> Schema:
    """The schema of a `recipe` or a `cluster` file. annotated: its reference file, which explains every key.

    A schema knows less than the loader: `recipes validate` also compares keys with each other and with the engine.
    """
    root = (ClusterPart if kind == "cluster" else RecipeFile).model_json_schema()
    definitions: dict[str, Schema] = root.pop("$defs")
    if kind == "cluster":
        nodes = root["properties"]["nodes"]
        nodes["items"] = {"anyOf": [{"type": "string"}, nodes["items"]]}
    _describe(root, definitions, _comments(annotated))
    required = {f"{_PLACE}{name}": section.pop("required", []) for name, section in definitions.items()}
    if kind == "recipe":
        # A profile has any keys of the base, none of them required.
        own = {name: value for name, value in root["properties"].items() if name in RecipePart.model_fields}
        del own["name"]
        definitions["Profile"] = {**root, "properties": own, "required": []}
        root = {**root, "properties": dict(root["properties"])}
        root["properties"]["profiles"] = {**root["properties"]["profiles"]}
        root["properties"]["profiles"]["additionalProperties"] = {"$ref": f"{_PLACE}Profile"}
    made = {name: _as_written(section, required, False) for name, section in definitions.items()}
    return {"$schema": _DIALECT, **_as_written(root, required, True), "description": _ABOUT[kind], "$defs": made}


def _as_written(section: Schema, required: Required, base: bool) -> Schema:
    """The section as people write it: keys that begin with x- are free, and a key without value keeps its default.

    base: the sections in it are not laid over others, so they need their required keys, as items of lists always do.
    """
    changed = {key: value for key, value in section.items() if key not in ("title", "properties")}
    if "properties" not in section:
        return changed
    changed["patternProperties"] = {"^x-": True}
    changed["properties"] = {}
    for name, value in section["properties"].items():
        shown = {key: value[key] for key in ("description", "default") if key in value}
        if isinstance(shown.get("default"), dict):
            del shown["default"]
        rest = {key: item for key, item in value.items() if key not in ("description", "default", "title")}
        choices = [_choice(choice, required, base) for choice in rest.get("anyOf", [rest])]
        if name not in section.get("required", ()) and {"type": "null"} not in choices:
            choices.append({"type": "null"})
        changed["properties"][name] = {**shown, **(choices[0] if len(choices) == 1 else {"anyOf": choices})}
    return changed


def _choice(choice: Schema, required: Required, base: bool) -> Schema:
    """One form of a value. In a mapping of free names a value may be empty: in a profile that takes a name away."""
    changed = dict(choice)
    if base and required.get(choice.get("$ref", "")):
        changed["required"] = required[choice["$ref"]]
    if "items" in choice:
        changed["items"] = _choice(choice["items"], required, True)
    if "anyOf" in choice:
        changed["anyOf"] = [_choice(one, required, base) for one in choice["anyOf"]]
    if isinstance(value := choice.get("additionalProperties"), dict):
        changed["patternProperties"] = {"^x-": True}
        changed["additionalProperties"] = {"anyOf": [value, {"type": "null"}]}
    return changed


def _comments(annotated: str) -> dict[tuple[str, ...], str]:
    """Key path, without places in lists, -> the comment above it in the annotated file."""
    lines = annotated.splitlines()
    found: dict[tuple[str, ...], str] = {}
    for path, number in read_yaml(annotated, "the reference").lines.items():
        above: list[str] = []
        for line in reversed(lines[: number - 1]):
            comment = re.fullmatch(r"\s*# ?(.*)", line)
            if not comment:
                break
            above.insert(0, comment[1])
        if above and isinstance(path[-1], str):
            found.setdefault(tuple(part for part in path if isinstance(part, str)), "\n".join(above))
    return found


def _describe(root: Schema, definitions: Mapping[str, Schema], comments: Mapping[tuple[str, ...], str]) -> None:
    """Write each comment into the property of its path; a section that stands in several places gets the first."""

    def walk(schema: Any, path: tuple[str, ...]) -> None:
        if isinstance(schema, list):
            for item in schema:
                walk(item, path)
        if not isinstance(schema, dict):
            return
        for name, value in schema.get("properties", {}).items():
            if (text := comments.get((*path, name))) and "description" not in value:
                value["description"] = text
            walk(value, (*path, name))
        for key in ("items", "anyOf"):
            walk(schema.get(key), path)
        walk(definitions.get(str(schema.get("$ref", "")).removeprefix(_PLACE)), path)

    walk(root, ())
