"""The lists of routes: what is never in one, and that each engine has one."""

import pytest

from sparkwright.engines.catalog import ENGINES
from sparkwright.engines.tables import routes
from sparkwright.recipes.schema import GatewayPart
from unit.for_each import for_each

POWER = ("lora", "load", "weights", "health", "metrics", "control", "hints", "profile", "sleep", "rpc", "cache")


@for_each("engine", ENGINES)
def test_no_engine_lists_what_steers_the_server(engine: str) -> None:
    """Guards that a list names calls of clients only, and chats and models in each."""
    found = routes(engine)
    assert {"GET /v1/models", "POST /v1/chat/completions", "POST /v1/completions"} <= set(found.calls)
    assert [call for call in found.calls if any(word in call for word in POWER)] == []
    assert all(f"GET {path}" in found.calls for path in found.websockets)


def test_a_recipe_may_name_what_the_lists_may() -> None:
    """Guards that the schema takes each listed route (but `{path}`), and nothing that leaves /v1."""
    calls = [call for engine in ENGINES for call in routes(engine).calls if "{path}" not in call]
    assert GatewayPart(routes=calls).routes == calls
    for wrong in ("/v1/x", "GET /metrics", "GET /v1/../x", "GET /v1/", "get /v1/x", "GET /v1/x\n", "GET /v1/%2e"):
        with pytest.raises(ValueError, match="a method and a path below /v1"):
            GatewayPart(routes=[wrong])
