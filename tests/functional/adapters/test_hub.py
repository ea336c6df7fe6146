"""The hub's API, spoken by a real server on loopback: what a plan learns from it, and every way in which it fails."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.clock import FakeClock
from fakes.hub_http import CONFIG, FILES, RESOLVE, TREE, HubServer, Reply, serving
from fakes.ports import free_port
from sparkwright.adapters.hub import HttpHub
from sparkwright.domain.checkpoint import Published
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import Unknown

DAY = 24 * 3600.0


@pytest.fixture
def server() -> Iterator[HubServer]:
    with serving() as server:
        yield server


def make_hub(server: HubServer, folder: Path, **more: Any) -> HttpHub:
    return HttpHub(folder / "hub", more.pop("clock", FakeClock()), more.pop("at", server.url), **more)


async def test_size_and_config_before_any_download(server: HubServer, tmp_path: Path) -> None:
    """The files that engines load are counted, not the second copy next to them."""
    assert await make_hub(server, tmp_path).look("org/name") == Published("org/name", "main", CONFIG, 7_000_000_000)
    assert [path for path, _ in server.asked] == [TREE, RESOLVE]


async def test_a_listing_of_several_pages(server: HubServer, tmp_path: Path) -> None:
    """The hub lists a thousand files at a time and names the next page in a header."""
    server.answer(TREE, FILES[:2], Link=f'<{server.url}/next?cursor=a>; rel="next"')
    server.answer("/next?cursor=a", FILES[2:])
    found = await make_hub(server, tmp_path).look("org/name")
    assert isinstance(found, Published) and found.weights == 7_000_000_000


async def test_a_token_stays_with_its_hub(server: HubServer, tmp_path: Path) -> None:
    """Files may lie on another host, which has no business with the token."""
    with serving() as other:
        server.replies[RESOLVE] = (307, {"Location": f"{other.url}/elsewhere"}, b"")
        other.replies["/elsewhere"] = (200, {}, CONFIG.encode())
        found = await make_hub(server, tmp_path, token=Secret("hf_abc")).look("org/name")
    assert isinstance(found, Published) and found.config == CONFIG
    assert {key for _, key in server.asked} == {"Bearer hf_abc"}
    assert other.asked == [("/elsewhere", None)]


REFUSALS: dict[str, tuple[Reply, str]] = {
    "gated": ((403, {"X-Error-Code": "GatedRepo"}, b"{}"), "export HF_TOKEN"),
    "unknown": ((404, {}, b"{}"), "no such model or revision"),
    "busy": ((429, {}, b"slow down"), "HTTP 429"),
    "a login page": ((200, {"Content-Type": "text/html"}, b"<html>welcome to the hotel"), "answer cannot be used"),
    "a page without end": ((200, {}, b"[" + b" " * (32 << 20)), "is longer than 32 MiB"),
    "a circle": ((302, {"Location": TREE}, b""), "HTTP 302"),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refusal_is_reported(server: HubServer, tmp_path: Path, case: str) -> None:
    """A plan goes on without, and its reader learns why the hub did not help."""
    reply, words = REFUSALS[case]
    server.replies[TREE] = reply
    found = await make_hub(server, tmp_path).look("org/name")
    assert isinstance(found, Unknown) and words in found.why
    assert not (tmp_path / "hub").exists()


async def test_without_internet_there_is_no_answer(server: HubServer, tmp_path: Path) -> None:
    """Nobody listens, or nobody answers in time: not a word of it, the recipe's own figures have to do."""
    assert await make_hub(server, tmp_path, at=f"http://127.0.0.1:{free_port()}").look("org/name") is None
    waiting = threading.Event()
    server.replies[TREE] = lambda: (waiting.wait(60), (200, {}, b"[]"))[1]
    assert await make_hub(server, tmp_path, limit=0.2).look("org/name") is None
    waiting.set()


async def test_an_answer_is_kept_for_a_day(server: HubServer, tmp_path: Path) -> None:
    """The next plan asks nobody; after a day it asks again, and without internet the old answer is better than none."""
    clock = FakeClock()
    first = await make_hub(server, tmp_path, clock=clock).look("org/name")
    server.asked.clear()
    assert await make_hub(server, tmp_path, clock=clock).look("org/name") == first
    assert server.asked == []
    await clock.sleep(DAY + 1)
    assert await make_hub(server, tmp_path, clock=clock, at=f"http://127.0.0.1:{free_port()}").look("org/name") == first
    await make_hub(server, tmp_path, clock=clock).look("org/name")
    assert len(server.asked) == 2


async def test_a_damaged_answer_is_asked_for_again(server: HubServer, tmp_path: Path) -> None:
    """A stored answer may be cut off, or be another program's."""
    await make_hub(server, tmp_path).look("org/name")
    (kept,) = (tmp_path / "hub").glob("*.json")
    for text in ("", "{", "[]", '{"at": "x"}', '{"at": 1, "model": "a"}'):
        kept.write_text(text)
        assert isinstance(await make_hub(server, tmp_path).look("org/name"), Published)


async def test_a_token_does_not_leave_tls(tmp_path: Path) -> None:
    """Guards a redirect to the same host without encryption, and to another port."""
    hub = HttpHub(tmp_path, FakeClock(), "https://hub.example", Secret("hf_x"))
    assert hub.owns("https://hub.example/a/b")
    assert not any(map(hub.owns, ("http://hub.example/a", "https://hub.example:8443/a", "https://hub.example.org/a")))


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 200_000, b"5", b'[{"path": 5}]'])
async def test_an_odd_listing_is_no_fault_of_ours(server: HubServer, tmp_path: Path, body: bytes) -> None:
    """Guards a hub, or what is in its place, that answers with what is no listing."""
    server.replies[TREE] = (200, {}, body)
    found = await HttpHub(tmp_path, FakeClock(), server.url).look("org/name")
    assert isinstance(found, Unknown | Published)
