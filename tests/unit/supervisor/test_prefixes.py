"""Kept prompts after a start: sent once, one at a time, behind clients, and what is said of them."""

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.endpoint import make_reply
from patience import PATIENCE
from sparkwright.adapters.prompt_files import PromptFiles
from sparkwright.domain.live import GatewayUse
from sparkwright.domain.probed import Reply
from sparkwright.gateway.prompts import KeptPrompt, prompt_to_keep
from sparkwright.supervisor import prefixes
from unit.supervisor.watchtower import Tower, make_tower

CHAT = "/v1/chat/completions"
SECRET = "the password of the vault is swordfish. "
STARTED = 500.0


def prompt(letter: str, uses: int, at: float) -> KeptPrompt:
    body = {"model": "twin", "messages": [{"role": "user", "content": (letter + SECRET) * 200}]}
    found = prompt_to_keep(CHAT, json.dumps(body).encode())
    assert found
    return KeptPrompt(found, at, 2000, (uses,) * len(found.blocks), len(found.body))


def remembering(folder: Path, *kept: tuple[str, int], age: float = 60.0) -> Tower:
    """A deployment that has just started and judged its answers, with prompts of these letters and uses."""
    it = make_tower()
    home = folder / "supervision" / "twin"
    home.mkdir(parents=True)
    it.keep.journal.path = home
    recipe = it.context.desired.recipe
    recipe = replace(recipe, serving=replace(recipe.serving, remember=10**6))
    it.context.desired = replace(it.context.desired, recipe=recipe)
    PromptFiles(home).save([prompt(*one, it.context.now() - age) for one in kept])
    it.bus.speaks = True
    it.scene.endpoint.answers = {CHAT: make_reply({"usage": {"prompt_tokens": 4000, "completion_tokens": 1}})}
    return it


def asked_prompts(it: Tower) -> list[str]:
    """First letters of the prompts that the engine got."""
    bodies = [json.loads(body) for path, body in it.scene.endpoint.asked if path == CHAT]
    assert all(body["max_tokens"] == 1 for body in bodies)
    return [body["messages"][0]["content"][0] for body in bodies]


async def test_the_most_used_come_first_and_once(tmp_path: Path) -> None:
    """Shown in live.json, noted for `incidents`; another supervisor sends nothing for the same start."""
    it = remembering(tmp_path, ("a", 2), ("b", 9), ("c", 5))
    await prefixes.send_kept(it.bus, STARTED)
    assert asked_prompts(it) == ["b", "c", "a"]
    assert it.context.seen.prefixes and it.context.seen.prefixes.text.startswith("3 prefixes, 12,000 tokens re-sent in")
    ((event, number),) = it.keep.store.events
    assert event.kind == "prefixes" and event.text == it.context.seen.prefixes.text and number == 0
    await prefixes.send_kept(it.bus, STARTED)
    assert len(asked_prompts(it)) == 3
    await prefixes.send_kept(it.bus, STARTED + 90)
    assert len(asked_prompts(it)) == 6


async def test_the_texts_are_nowhere_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the log, nor in events, nor in what `status` and evidence are made of; also if the engine repeats
    them in its error."""
    caplog.set_level(logging.DEBUG)
    it = remembering(tmp_path, ("a", 2), ("b", 9))
    it.scene.endpoint.answers = {CHAT: lambda body: make_reply({"error": f"cannot read {body}"}, 400)}
    await prefixes.send_kept(it.bus, STARTED)
    assert it.context.seen.prefixes
    said = repr((it.context.seen, it.keep.store, it.keep.journal, it.events, it.scene.sink.happenings)) + caplog.text
    assert "swordfish" not in said and "2 could not be sent" in it.context.seen.prefixes.text


async def test_it_waits_for_the_answers_to_be_judged(tmp_path: Path) -> None:
    """Soup gets no prompts: it computes nothing that anybody wants."""
    for speaks, count in ((True, 1), (False, 0)):
        it = remembering(tmp_path / str(speaks), ("a", 2))
        it.bus.speaks = None
        task = asyncio.create_task(prefixes.send_kept(it.bus, STARTED))
        await asyncio.sleep(0.02)
        assert not asked_prompts(it)
        it.bus.speaks = speaks
        async with asyncio.timeout(PATIENCE):
            await task
        assert len(asked_prompts(it)) == count


async def test_clients_come_first(tmp_path: Path) -> None:
    """Nothing is sent while they take half of the places, or one waits; what was under way is left and sent again."""
    it = remembering(tmp_path, ("a", 2), ("b", 1))
    busy = [GatewayUse(99), GatewayUse(1, waiting=1), GatewayUse(0), GatewayUse(0)]
    it.scene.endpoint.uses = list(busy)
    await prefixes.send_kept(it.bus, STARTED)
    assert asked_prompts(it) == ["a", "b"] and it.context.seen.prefixes and it.context.seen.prefixes.sent == 2


async def test_one_that_is_under_way_is_left_for_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed, so that the engine stops; nothing is counted twice."""
    monkeypatch.setattr(prefixes, "_LOOK_EVERY", 0.01)
    it = remembering(tmp_path, ("a", 2))
    it.scene.endpoint.uses = [GatewayUse(0), GatewayUse(99), GatewayUse(99), GatewayUse(0), GatewayUse(0)]
    left, tries = [], 0

    async def post(url: str, body: str, key: Any, seconds: float) -> Reply:
        nonlocal tries
        tries += 1
        try:
            await asyncio.sleep(2 * PATIENCE if tries == 1 else 0)
        except asyncio.CancelledError:
            left.append(tries)
            raise
        return make_reply({"usage": {"prompt_tokens": 4000, "completion_tokens": 1}})

    monkeypatch.setattr(it.scene.endpoint, "post", post)
    async with asyncio.timeout(PATIENCE):
        await prefixes.send_kept(it.bus, STARTED)
    assert left == [1] and tries == 2
    assert it.context.seen.prefixes and (it.context.seen.prefixes.sent, it.context.seen.prefixes.tokens) == (1, 4000)


async def test_it_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts that are not sent within the time are left out, with the reason."""
    monkeypatch.setattr(prefixes, "_SECONDS", 0.0)
    it = remembering(tmp_path, ("a", 2), ("b", 1))
    await prefixes.send_kept(it.bus, STARTED)
    assert not asked_prompts(it) and it.context.seen.prefixes
    assert "2 left out: not done within 0 s, beside what clients asked for" in it.context.seen.prefixes.text


async def test_what_is_too_old_is_not_sent(tmp_path: Path) -> None:
    """Its owner said how long a text may be used."""
    it = remembering(tmp_path, ("a", 2), age=25 * 3600.0)
    await prefixes.send_kept(it.bus, STARTED)
    assert not asked_prompts(it) and it.context.seen.prefixes is None


async def test_switched_off_they_are_removed(tmp_path: Path) -> None:
    """Their key goes, too, whether or not a gateway runs."""
    it = remembering(tmp_path, ("a", 2))
    files = PromptFiles(it.keep.journal.path)
    recipe = it.context.desired.recipe
    recipe = replace(recipe, serving=replace(recipe.serving, remember=0))
    it.context.desired = replace(it.context.desired, recipe=recipe)
    await prefixes.send_kept(it.bus, STARTED)
    assert not files.folder.exists() and not files.key.exists() and not asked_prompts(it)


async def test_texts_that_cannot_be_read_are_a_trouble_and_no_more(tmp_path: Path) -> None:
    """It serves; the trouble says why its contexts are gone."""
    it = remembering(tmp_path, ("a", 2))
    PromptFiles(it.keep.journal.path).key.unlink()
    await prefixes.send_kept(it.bus, STARTED)
    (fault,) = it.events
    assert "kept prompts cannot be read, so none is sent again" in fault.what and "its key is gone" in fault.what
