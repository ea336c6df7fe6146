"""Contexts of a real engine that was killed: sent again from what the gateway kept, or restored from its own file."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from fakes.ports import free_port
from fakes.supervisor_home import FakeStore
from functional import tiny_gguf
from functional.facts.shell import run as run_here
from functional.gateway.test_loop_guard import CHAT, KEY, gateway_before
from functional.gateway.test_remembering import RememberingScene
from functional.tiny_gguf import write_tiny_gguf
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.openai_http import OpenAiEndpoint
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.recipe import Serving
from sparkwright.supervisor import disk_cache, prefixes
from sparkwright.supervisor.event_bus import EventBus

pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
from functional.test_llama_cpp import KEY as ENGINE_KEY
from functional.test_llama_cpp import NO_CACHE, RECIPE, render_rank, served

SYSTEM = "You count boats in the old harbour and write the number down. " * 75
ONE_SLOT = replace(RECIPE, serving=Serving(context=8192, sequences=1, batched_tokens=256), flags=NO_CACHE)


def boat_turns(*texts: str) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": "system", "content": SYSTEM}, *({"role": roles[n % 2], "content": t} for n, t in enumerate(texts))]


async def ask_chat(url: str, key: str, messages: list[dict[str, str]]) -> int:
    """Prompt tokens that the engine had to compute."""
    body = {"model": "tiny", "messages": messages, "max_tokens": 2, "temperature": 0}
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=120) as client:
        answer = await client.post(f"{url}{CHAT}", json=body)
        answer.raise_for_status()
        return int(answer.json()["timings"]["prompt_n"])


def started_bus(port: int, home: Path, recipe: Any) -> EventBus:
    """A bus whose engine has just started and judged its answers."""
    figures: dict[str, float] = {}
    clock = SystemClock()
    endpoint = OpenAiEndpoint(clock)
    node = SimpleNamespace(paths=SimpleNamespace(state=str(home.parent.parent)))
    cluster = SimpleNamespace(node=lambda name: node)
    notices: list[str] = []

    async def run_on_head(node: str, command: Command) -> Completed:
        return run_here(command)

    context = SimpleNamespace(
        name="tiny",
        head="here",
        supervisor_node="here",
        state="",
        url=f"http://127.0.0.1:{port}",
        key=Secret(ENGINE_KEY),
        desired=SimpleNamespace(recipe=recipe),
        services=SimpleNamespace(clock=clock, endpoint=endpoint, cluster=cluster, run=run_on_head),
        journal=SimpleNamespace(path=home, recall=lambda: figures),
        seen=SimpleNamespace(prefixes=None, engine=None, ended=None, restored=None),
        notices=notices,
        store=FakeStore(),
        remember=figures.update,
        now=clock.now,
        pause=clock.sleep,
        own_request=nullcontext,
        notice=lambda text, warning=False: notices.append(text),
    )
    canaries = SimpleNamespace(own=0)
    bus = SimpleNamespace(context=context, speaks=True, detectors=SimpleNamespace(canaries=canaries), lasting={})
    bus.set_trouble = lambda kind, what: bus.lasting.update({kind: what}) if what else None
    return cast("EventBus", bus)


@pytest.fixture(autouse=True)
def long_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_gguf, "CONTEXT", 8192)


@pytest.mark.parametrize("remember", [True, False])
async def test_a_killed_engine_has_its_context_again(tmp_path: Path, remember: bool) -> None:
    """Guards the whole way: the client's turns through the gateway, kill -9, and the next turn after a new start."""
    model, port = write_tiny_gguf(tmp_path / "tiny.gguf"), free_port()
    spec = render_rank(model, port, ONE_SLOT)
    supervision = tmp_path / "state" / "supervision"
    recipe = replace(ONE_SLOT, serving=replace(ONE_SLOT.serving, remember=10**7 if remember else 0))
    route = {"remember": recipe.serving.remember, "limit": 10**7}
    async with gateway_before(supervision, port, route, ENGINE_KEY) as one:
        async with served(spec, tmp_path / "log") as process:
            cold = await ask_chat(one.url, KEY, boat_turns("How many?"))
            warm = await ask_chat(one.url, KEY, boat_turns("How many?", "Two.", "And now?"))
            process.kill()
        scene = RememberingScene(one.url, supervision / "tiny", cast("Any", None))
        if remember:
            (first,) = await scene.kept()
            while max(first.uses) < 2:  # the second turn takes the place of the first, once it is written
                (first,) = await scene.kept(but=first)
            (scene.home / "live.json").unlink()
        (tmp_path / "log").unlink()
        async with served(spec, tmp_path / "log"):
            bus = started_bus(port, scene.home, recipe)
            await prefixes.send_kept(bus, 1.0)
            direct = f"http://127.0.0.1:{port}"
            after = await ask_chat(direct, ENGINE_KEY, boat_turns("How many?", "Two.", "And now?", "Three.", "Sure?"))
    assert cold > 3000 and warm < cold / 10
    assert after < cold / 10 if remember else after > cold
    if remember:
        told = bus.context.seen.prefixes
        assert told and told.sent == 1 and told.tokens > cold
        assert f"{told.tokens:,} tokens re-sent" in told.text


@pytest.mark.full
async def test_slots_come_back_from_the_disk(tmp_path: Path) -> None:
    """Guards serving.disk_cache with llama.cpp: saved after work, restored after kill -9, and a folder that is gone."""
    folder = tmp_path / "kv"
    recipe = replace(ONE_SLOT, serving=replace(ONE_SLOT.serving, disk_cache=str(folder), disk_cache_size=1 << 30))
    port = free_port()
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), port, recipe)
    (place,) = (Path(one.host) for one in spec.mounts)
    place.mkdir(parents=True)
    direct, bus = f"http://127.0.0.1:{port}", started_bus(port, tmp_path / "supervision/tiny", recipe)
    async with served(spec, tmp_path / "log") as process:
        cold = await ask_chat(direct, ENGINE_KEY, boat_turns("How many?"))
        await disk_cache.save_before_stop(bus)
        assert not bus.lasting and (place / "slot-0.bin").stat().st_size > 10_000
        process.kill()
    (tmp_path / "log").unlink()
    async with served(spec, tmp_path / "log"):
        await disk_cache.restore_slots(bus)
        assert (bus.context.seen.restored or 0) > 3000
        after = await ask_chat(direct, ENGINE_KEY, boat_turns("How many?", "Two.", "And now?"))
        (place / "slot-0.bin").unlink()
        place.rmdir()
        await disk_cache.save_before_stop(bus)
        assert "could not be saved" in bus.lasting[disk_cache.SLOTS]
        assert await ask_chat(direct, ENGINE_KEY, boat_turns("How many?", "Two.", "And now?")) < cold / 10, (
            "it serves on"
        )
    assert cold > 3000 and after < cold / 10


@pytest.mark.full
async def test_half_a_file_of_a_slot_costs_one_start_at_most(tmp_path: Path) -> None:
    """Guards the start after a power cut in the middle of a write: llama.cpp dies of such a file, and is not given it
    again."""
    recipe = replace(ONE_SLOT, serving=replace(ONE_SLOT.serving, disk_cache=str(tmp_path / "kv"), disk_cache_size=9**9))
    port = free_port()
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), port, recipe)
    (place,) = (Path(one.host) for one in spec.mounts)
    place.mkdir(parents=True)
    direct, bus = f"http://127.0.0.1:{port}", started_bus(port, tmp_path / "supervision/tiny", recipe)
    async with served(spec, tmp_path / "log"):
        await ask_chat(direct, ENGINE_KEY, boat_turns("How many?"))
        assert await disk_cache.save_slots(bus)
    assert [one.name for one in place.iterdir()] == ["slot-0.bin"], "nothing half is left"
    whole = (place / "slot-0.bin").read_bytes()
    (place / "slot-0.bin").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "log").unlink()
    async with served(spec, tmp_path / "log"):
        await disk_cache.restore_slots(bus)
    (said,) = bus.context.notices  # type: ignore[attr-defined]
    assert "did not come back from the disk cache: slot 0: " in said
    (tmp_path / "log").unlink()
    async with served(spec, tmp_path / "log") as process:
        await disk_cache.restore_slots(bus)
        assert await ask_chat(direct, ENGINE_KEY, boat_turns("How many?")) > 3000, "computed again"
        assert process.returncode is None
