"""Data of each engine: its own file (data/engines), and what no such file can say.

By topic are: loaders.toml, for loaders belong to several engines; emits.toml, the options that our own modules write
(an engine without a module says that by its `command` and `options`); read.toml, what was read and started of each
version by sparkwright's authors (an owner's file has `versions` and `tried`); variants.toml, forks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sparkwright.domain.deployment import Phase
from sparkwright.domain.values import dataclass

if TYPE_CHECKING:
    from sparkwright.domain.recipe import PhaseTime

# The simulator takes vLLM's flags; Ray changes who starts vLLM, not what vLLM is.
DATA_OF: Mapping[str, str] = {"simulator": "vllm", "vllm-ray": "vllm"}
# Those of DATA_OF that run the real engine; the simulator prints what this package wrote.
RUNS_AS_IT_IS = ("vllm-ray",)
DEFAULT, LOAD_FORMAT = "default", "load-format"  # of loaders: the usual one, the option that chooses one
# Those with flags, logs and figures of their own.
SEPARATE = ("vllm", "sglang", "trtllm", "llama-cpp")
# Those whose ranks a module renders.
BUILT_IN = (*SEPARATE, *DATA_OF)


@dataclass(frozen=True, slots=True)
class Routes:
    """calls: `METHOD /v1/path` with `{id}` and `{path}`. websockets: paths that a client may upgrade."""

    calls: tuple[str, ...]
    websockets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loader:
    """A loader of weights. GiB as (likely, least, most): buffers while it reads, keeps afterwards. disk, cached: GB/s a
    rank as (fast, likely, slow), from its disk and from the page cache. own: no load-format."""

    what: str
    buffers: tuple[float, float, float]
    disk: tuple[float, float, float]
    cached: tuple[float, float, float]
    see: tuple[str, ...]
    keeps: tuple[float, float, float] = (0.0, 0.0, 0.0)
    own: bool = False

    @property
    def rate(self) -> tuple[float, float, float]:
        """The same where nobody knows what the page cache holds."""
        return self.cached[0], self.disk[1], self.disk[2]


@cache
def loader(name: str) -> Loader:
    """The loader by vLLM's load-format; the default one for an unknown name. Raises TypeError for a row of other
    keys."""
    rows = load_table("loaders")
    row: Mapping[str, Any] = rows.get(name, rows[DEFAULT])
    more = {key: tuple(row[key]) for key in row if key not in ("what", "own")}
    return Loader(what=row["what"], own=row.get("own", False), **more)


@cache
def load_table(name: str) -> Mapping[str, Any]:
    return tomllib.loads(files("sparkwright.engines").joinpath("data", f"{name}.toml").read_text(encoding="utf-8"))


@cache
def engine_table(name: str) -> Mapping[str, Any]:
    """The file of an engine, in the form of docs/guides/adding-an-engine.md."""
    return load_table(f"engines/{name}")


@cache
def phase_times(engine: str) -> Mapping[Phase, PhaseTime]:
    """Usual seconds of each start-up phase, and the silence after which it counts as stuck."""
    from sparkwright.domain.recipe import PhaseTime  # `diagnose` reads other tables, and starts quickly

    return {Phase(name): PhaseTime(*seconds) for name, seconds in engine_table(engine)["phases"].items()}


def metric_names(engine: str) -> Mapping[str, str]:
    """Our vocabulary -> the name on this engine's page of figures."""
    names: Mapping[str, str] = engine_table(DATA_OF.get(engine, engine))["metrics"]
    return names


@cache
def routes(engine: str) -> Routes:
    """The routes of an engine in the catalog, whatever its version: an older one answers 404 itself."""
    found = engine_table(DATA_OF.get(engine, engine))
    sockets = tuple(found["websockets"])
    return Routes((*found["routes"], *(f"GET {path}" for path in sockets)), sockets)


def emitted(engine: str) -> tuple[str, ...]:
    """Options that render may write, of the version whose sources were read for it."""
    return tuple(load_table("emits")[DATA_OF.get(engine, engine)]["options"])
