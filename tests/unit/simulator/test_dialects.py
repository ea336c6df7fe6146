"""A start of one rank in each engine's dialect, read by that engine's own log dialect; its metrics and its routes."""

from __future__ import annotations

import asyncio
import io
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from starlette.requests import Request

from simulators import llama, sglang, trtllm
from simulators.dialect import SimulatorDialect
from simulators.site import SimulatedSite
from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.engines.dialect import dialect
from sparkwright.engines.tables import metric_names
from sparkwright.simulator.link import HeadLink
from sparkwright.simulator.log import LineForm, LogVoice, Voices
from sparkwright.simulator.rank import SimulatedRank, StartFailed
from sparkwright.simulator.service import Core, DialectTrouble
from unit.simulator.inprocess import MakeRank

GIVEN = Namespace(model="/m/tiny.gguf", enable_metrics=True, metrics=True, api_key="hidden", model_path="m")
TALKS: dict[str, tuple[SimulatorDialect, LineForm, Callable[[str], LogEvent | None], Mapping[str, str]]] = {
    "sglang": (
        sglang.SglangDialect(GIVEN, "0.5.12", True),
        sglang._form(0, 2),
        dialect("sglang").read,
        metric_names("sglang"),
    ),
    "trtllm": (
        trtllm.TrtllmDialect("1.3.0rc", None),
        trtllm._form((0, 2)),
        dialect("trtllm").read,
        metric_names("trtllm"),
    ),
    "llama-cpp": (
        llama.LlamaDialect(GIVEN),
        LineForm(llama._own, lambda: ""),
        dialect("llama-cpp").read,
        metric_names("llama-cpp"),
    ),
}
NOBODY = Request({"type": "http"})
QUIET = DialectTrouble(lambda: None, lambda _: asyncio.sleep(0))
ENGINE = pytest.mark.parametrize("engine", TALKS)


@pytest.fixture
def talking(make_rank: MakeRank) -> Callable[[str], tuple[SimulatedRank, io.StringIO]]:
    """A rank that speaks as the engine does, into a text."""

    def make(engine: str) -> tuple[SimulatedRank, io.StringIO]:
        out = io.StringIO()
        voice = LogVoice("", 7, out, TALKS[engine][1])
        return replace(make_rank("--port", "8000", "--max-num-seqs", "4"), voices=Voices(*[voice] * 4)), out

    return make


async def start(dialect: SimulatorDialect, rank: SimulatedRank) -> None:
    dialect.greet(rank)
    dialect.join(rank)
    dialect.met(rank, [])
    await dialect.load(rank)
    await dialect.fit(rank)
    await dialect.capture(rank)
    dialect.listening(rank)
    dialect.ready(rank)


@ENGINE
async def test_a_start_is_understood_from_weights_to_ready(
    engine: str, talking: Callable[[str], tuple[SimulatedRank, io.StringIO]]
) -> None:
    """Phases only go forward, none of the lines is an error, the last reports ready, and the first reports
    simulated."""
    dialect, _, read, _ = TALKS[engine]
    rank, out = talking(engine)
    await start(dialect, rank)
    lines = out.getvalue().replace("\r", "\n").splitlines()
    events = [event for line in lines if (event := read(line))]
    order = list(Phase)
    seen = [order.index(event.phase) for event in events if not event.alive]
    assert seen == sorted(seen)
    assert {Phase.LOAD, Phase.WARMUP, Phase.SERVER} <= {event.phase for event in events}
    assert not [event for event in events if event.error]
    assert [event for event in events if event.ready]
    assert "SIMULATED" in lines[0]


@ENGINE
def test_a_failed_start_is_an_error_for_the_reader(
    engine: str, talking: Callable[[str], tuple[SimulatedRank, io.StringIO]]
) -> None:
    """The engine's last report is shown by `up`."""
    dialect, _, read, _ = TALKS[engine]
    rank, out = talking(engine)
    dialect.failed(rank, "RuntimeError: no more memory")
    assert any(event.error for line in out.getvalue().splitlines() if (event := read(line)))


@ENGINE
async def test_metrics_have_the_engine_s_names_and_the_mark(
    engine: str, talking: Callable[[str], tuple[SimulatedRank, io.StringIO]]
) -> None:
    """Every name is there, but those of speculation and of cache tiers, which are off; none of vLLM's is left."""
    dialect, _, _, names = TALKS[engine]
    rank, _ = talking(engine)
    core = Core(rank, HeadLink(1), QUIET)
    text = bytes((await SimulatedSite(core, engine, dialect.metrics, dialect.labels).scrape(NOBODY)).body).decode()
    assert text.startswith("# HELP sparkwright_simulated 1") and "vllm:" not in text
    wanted = {name for role, name in names.items() if "spec" not in name and not role.startswith("tier_")}
    assert [name for name in wanted if f"\n{name}" not in text] == []


def test_unbalanced_memory_stops_sglang_unless_it_is_asked_not_to_look(
    talking: Callable[[str], tuple[SimulatedRank, io.StringIO]], make_rank: MakeRank
) -> None:
    """A node with less than 90 % of another's free memory; the variable turns the error into a line."""
    rank, out = talking("sglang")
    rank = replace(rank, limits=replace(rank.limits, world=2))
    scarce = [{"free": rank.settings.free_gib * 0.8}]
    with pytest.raises(StartFailed, match="The memory capacity is unbalanced"):
        sglang.SglangDialect(GIVEN, "0.5.12", balanced=True).met(rank, scarce)
    sglang.SglangDialect(GIVEN, "0.5.12", balanced=False).met(rank, scarce)
    assert "The memory capacity is unbalanced" in out.getvalue()


def test_no_key_is_shown(talking: Callable[[str], tuple[SimulatedRank, io.StringIO]]) -> None:
    """SGLang prints all its arguments; the simulator leaves the key out, in its log as in /server_info."""
    dialect = sglang.SglangDialect(GIVEN, "0.5.12", balanced=True)
    rank, out = talking("sglang")
    dialect.greet(rank)
    site = SimulatedSite(Core(rank, HeadLink(1), QUIET), "SGLang", {}, str)
    assert "hidden" not in out.getvalue() + str(dialect._server(site))


@pytest.mark.parametrize(
    ("engine", "open_paths", "guarded"),
    [
        ("sglang", ["/health", "/metrics"], ["/v1/models", "/server_info"]),
        ("llama-cpp", ["/health", "/v1/models"], ["/v1/chat/completions", "/metrics", "/props"]),
        ("trtllm", ["/v1/chat/completions", "/metrics"], []),
    ],
)
def test_each_engine_guards_its_own_paths(engine: str, open_paths: list[str], guarded: list[str]) -> None:
    """The guarded paths differ from engine to engine; TensorRT-LLM has no key to ask for."""
    dialect = TALKS[engine][0]
    assert [path for path in open_paths if dialect.guarded(path)] == []
    assert [path for path in guarded if not dialect.guarded(path)] == []
