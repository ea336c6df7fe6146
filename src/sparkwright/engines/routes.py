"""The routes of each engine that clients may call through the gateway (data/routes.toml)."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sparkwright.engines.flag_data import DATA_OF


@dataclass(frozen=True, slots=True)
class Routes:
    """calls: `METHOD /v1/path` with `{id}` and `{path}`. websockets: paths that a client may upgrade."""

    calls: tuple[str, ...]
    websockets: tuple[str, ...]


@cache
def routes(engine: str) -> Routes:
    """Those of an engine in the catalog, whatever its version: an older one answers 404 itself."""
    table = tomllib.loads(files(__package__).joinpath("data", "routes.toml").read_text())
    found = table[DATA_OF.get(engine, engine)]
    sockets = tuple(found["websockets"])
    return Routes((*found["routes"], *(f"GET {path}" for path in sockets)), sockets)
