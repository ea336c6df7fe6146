"""docs/reference/documents.schema.json: a JSON schema of what commands print with --json.

Keys that are dataclasses come from the code's own types. Within one `schema` keys are only added, so further keys are
valid. tests/functional/console/test_documents.py holds what the commands really print to it.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from docs_json import documents

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.diagnosis import Cause, Diagnosis, LogState, Proof
from sparkwright.domain.facts import FabricChoice, RankStatus
from sparkwright.domain.finding import Finding
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.domain.ledger import Fit, MemoryLedger
from sparkwright.domain.live import DeploymentState, Supervised
from sparkwright.domain.plan import Advice
from sparkwright.domain.recipe import Figure
from sparkwright.domain.run import RunListing
from sparkwright.domain.verdict import LoaderCost, Speed, Verdict
from sparkwright.gateway.keys import Key
from sparkwright.gateway.usage import Used

Schema = dict[str, Any]
# Types that a module names for the type checker only.
_LATE = {"DeploymentState": DeploymentState, "RankStatus": RankStatus, "Supervised": Supervised}
_TEXT = {"type": "string"}
_SIMPLE: dict[Any, Schema] = {
    bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"}, str: _TEXT, bytes: _TEXT,
    NoneType: {"type": "null"}, Secret: _TEXT, Any: {}, object: {},
}  # fmt: skip

_CAUSE = (Cause, {"sureness": str})
_INCIDENT = (Incident, {"open": bool, "away": float | None, "changed": str, "unwatched_at": float, "on": str})
_REMEDY = {"change": str, "costs": [str], "keys": Mapping[str, Any], "actions": [Any], "verdict": Verdict}
_CHANGE = {"node": str, "code": str, "says": str, "root": bool, "commands": [str], "outcome": str, "why": str}
_KEY = {name: hint for name, hint in get_type_hints(Key).items() if name != "sha256"}
_RANK = {
    "rank": int, "node": str, "runtime": str, "image": str, "argv": [str], "env": Mapping[str, str], "secrets": [str],
    "files": [{"name": str, "secret": bool, "text": str}], "listens": [tuple[str, int]],
}  # fmt: skip
_PLAN = {
    "deployment": str, "recipe": str, "profile": str, "recipe_hash": str, "simulated": bool, "cluster": str,
    "bind": str, "port": int, "served_name": str, "fabric": Mapping[str, FabricChoice], "ranks": [_RANK],
    "memory": [(MemoryLedger, {"left": int | None, "fits": bool, "verdict": Fit, "kv_tokens": int | None})],
    "verdict": Verdict | None, "speeds": [Speed], "loaders": [LoaderCost], "published": [Figure],
    "splits": Advice | None, "staging": [str], "findings": [Finding], "remedies": [_REMEDY],
}  # fmt: skip
_RECIPE = {
    "name": str, "title": str, "model": str, "engine": str, "version": str, "nodes": int, "profiles": [str],
    "default_profile": str, "state": str, "reason": str, "instead": str, "kind": str, "older": str, "simulated": bool,
    "origin": str, "source": str, "size?": int | None, "context?": int | None, "speed?": Mapping[str, float] | None,
    "speed_of?": str,
}  # fmt: skip

# A key with `?` may be absent. A list is an array, a pair is a class with further keys.
SHAPES: dict[str, dict[str, Any]] = {
    "check": {
        "cluster": str, "simulated": bool, "seconds": float, "findings": [Finding], "ignored": [Finding],
        "seen_before": [{"finding": Finding, "first_seen": float}], "unreachable": Mapping[str, str],
        "dry_run?": bool, "changes?": [_CHANGE],
    },
    "recipes list": {"recipes": [_RECIPE], "broken": [{"name": str, "errors": [str]}]},
    "plan": {
        **{f"{name}?": value for name, value in _PLAN.items()},
        "standing?": str, "measured?": Mapping[str, Calibration], "assumed?": [str], "longest_context?": int,
        "quantizations?": [{"model": str, "bytes": int, "verdict": Verdict}], "plans?": [Any],
        "other_recipes?": [{"recipe": str, "nodes": int, "engine": str, "command": str}],
    },
    "status": {"deployments": [Deployment], "unreachable": [str], "taken_down?": str, "at?": float},
    "incidents list": {
        "incidents": [_INCIDENT], "restarts": [(IncidentEvent, {"deployment": str, "on": str})], "trouble": [str],
    },
    "incidents show": {
        "incident": (*_INCIDENT, {"files": [{"name": str, "bytes": int}], "diagnosis": Mapping[str, Any] | None}),
    },
    "keys list": {"keys": [_KEY], "usage": [Used]},
    "runs list": {"runs": [RunListing]},
    "diagnose": {
        "diagnosis": (Diagnosis, {"causes": [_CAUSE], "harmless": [_CAUSE], "notes": [_CAUSE]}),
        "findings": [Finding], "trouble": [str], "simulated": bool, "since": float | None, "answered": bool,
        "earlier": [_CAUSE], "serves": bool, "state": LogState, "serves_since": Proof | None,
        "failure": Any, "notes": [_CAUSE],
    },
}  # fmt: skip


def schema_text() -> str:
    """One schema for all: `document` chooses the part that applies."""
    defs: dict[str, Schema] = {}
    rules = []
    for name, shape in SHAPES.items():
        told = documents()[name]
        made = _object({"schema": int, "document": str, "simulated?": bool} | shape, defs)
        for key, value in made["properties"].items():
            if key in told:
                made["properties"][key] = {"description": told[key], **value}
        defs[name] = made
        rules.append({"if": {"properties": {"document": {"const": name}}}, "then": {"$ref": _place(name)}})
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What sparkwright prints with --json",
        "type": "object",
        "required": ["schema", "document"],
        "allOf": rules,
        "$defs": dict(sorted(defs.items())),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _place(name: str) -> str:
    return f"#/$defs/{name.replace(' ', '%20')}"


def _of(shape: Any, defs: dict[str, Schema]) -> Schema:
    """The schema of a value; classes go into `defs`."""
    if isinstance(shape, dict):
        return _object(shape, defs)
    if isinstance(shape, list):
        return {"type": "array", "items": _of(shape[0], defs)}
    if isinstance(shape, tuple):
        kind, *more = shape
        keys = {name: value for part in more for name, value in part.items()}
        return _object({**_hints(kind), **keys}, defs)
    if is_dataclass(shape):
        name = shape.__name__  # type: ignore[union-attr]
        if name not in defs:
            defs[name] = {}  # a class may contain itself
            defs[name] = _object(_hints(shape), defs)
        return {"$ref": _place(name)}
    return _plain(shape, defs)


def _plain(hint: Any, defs: dict[str, Schema]) -> Schema:
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return {"anyOf": [_of(one, defs) for one in inside]}
    if origin is tuple and inside[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [_of(one, defs) for one in inside], "items": False}
    if origin is Mapping or origin is dict:
        return {"type": "object", "additionalProperties": _of(inside[1], defs)}
    if origin is not None:  # a sequence or a set
        return {"type": "array", "items": _of(inside[0], defs)}
    return _SIMPLE[hint] if hint in _SIMPLE else {"enum": [one.value for one in hint]}


def _object(shape: Mapping[str, Any], defs: dict[str, Schema]) -> Schema:
    properties = {name.removesuffix("?"): _of(value, defs) for name, value in shape.items()}
    required = [name for name in shape if not name.endswith("?")]
    return {"type": "object", "properties": properties, "required": required}


def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, localns=_LATE)
    return {one.name: hints[one.name] for one in fields(kind)}
