"""/v1/models of several deployments as one list: each engine's own rows, with who serves them and how it is.

Replicas of one model are one deployment here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sparkwright.domain.values import dataclass

MODELS = "/v1/models"


@dataclass(frozen=True, slots=True)
class ListedModels:
    """models: by the recipe. state: its supervisor's, '' for none. rows: its engine's, () without an answer."""

    deployment: str
    models: tuple[str, ...]
    state: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()


def names_of(listed: ListedModels) -> set[str]:
    return {*listed.models, *(name for row in listed.rows if isinstance(name := row.get("id"), str))}


def models_page(listed: Iterable[ListedModels]) -> dict[str, Any]:
    """The list in OpenAI's shape; a model whose engine does not answer now is listed all the same."""
    data: list[Mapping[str, Any]] = []
    for one in listed:
        bare = ({"id": name, "object": "model", "created": 0, "owned_by": "sparkwright"} for name in one.models)
        rows: Iterable[Mapping[str, Any]] = one.rows or bare
        data += [{**row, "deployment": one.deployment, "state": one.state or "unknown"} for row in rows]
    return {"object": "list", "data": data}
