"""Hooks as real programs and a real HTTP server; and that none of them can hold anything up."""

import asyncio
import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from patience import PATIENCE, wait_until
from sparkwright.adapters.hooks import Hooks
from sparkwright.domain.incident import News

NEWS = News("opened", "rank 1 exited\nwith 137", "twin", 1000.5, "draining", 7, "/state/incidents/twin/7", True)


def program(state: Path, name: str, text: str, mode: int = 0o755) -> Path:
    folder = state / "hooks"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


class HookHandler(BaseHTTPRequestHandler):
    bodies: list[dict[str, object]]
    status: int

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def server() -> Iterator[tuple[type[HookHandler], str]]:
    handler = type("Handler", (HookHandler,), {"bodies": [], "status": 204})
    made = HTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield handler, f"http://127.0.0.1:{made.server_port}/hook?token=SECRET"
    made.shutdown()
    thread.join()
    made.server_close()


def addresses(state: Path, *urls: str, mode: int = 0o600) -> None:
    path = state / "hooks.json"
    path.write_text(json.dumps({"webhooks": urls}))
    path.chmod(mode)


async def lines_of_hooks(state: Path, *news: News, limit: float = PATIENCE) -> list[str]:
    said: list[str] = []
    hooks = Hooks(state, said.append, limit)
    for one in news:
        hooks.announce(one)
    await hooks.aclose()
    return said


async def test_a_program_gets_it_in_its_environment_and_as_json(tmp_path: Path) -> None:
    """Shell scripts take the variables, others the document; nothing else of ours is in the environment."""
    program(tmp_path, "10-mail", f"cat >{tmp_path}/body; env >{tmp_path}/env; echo said; echo said >&2")
    assert await lines_of_hooks(tmp_path, NEWS) == []
    body = json.loads((tmp_path / "body").read_text())
    assert (body["schema"], body["event"], body["incident"], body["simulated"]) == (1, "opened", 7, True)
    env = (tmp_path / "env").read_text()
    for line in (
        "SPARKWRIGHT_EVENT=opened",
        "SPARKWRIGHT_TEXT=rank 1 exited\nwith 137",
        "SPARKWRIGHT_INCIDENT=7",
        "SPARKWRIGHT_SIMULATED=1",
    ):
        assert line in env
    allowed = ("SPARKWRIGHT_", "PATH=", "HOME=", "LANG=", "PWD=", "with 137", "_=", "SHLVL=", "OLDPWD=")
    assert [line for line in env.splitlines() if not line.startswith(allowed)] == []


async def test_an_address_is_posted_to(tmp_path: Path, server: tuple[type[HookHandler], str]) -> None:
    """The same document; an answer that is not 2xx is reported without the address's token."""
    handler, url = server
    addresses(tmp_path, url)
    assert await lines_of_hooks(tmp_path, NEWS) == []
    assert [body["event"] for body in handler.bodies] == ["opened"]
    handler.status = 500
    assert await lines_of_hooks(tmp_path, NEWS) == ["hook 127.0.0.1: HTTP 500"]


async def test_news_come_in_their_order(tmp_path: Path) -> None:
    """`closed` never before `opened`, however slow the hook."""
    program(tmp_path, "slow", f'sleep 0.2; echo "$SPARKWRIGHT_EVENT" >>{tmp_path}/order')
    closed = News("closed", "serving again", "twin", 1060.0, "ready", 7)
    assert await lines_of_hooks(tmp_path, NEWS, closed) == []
    assert (tmp_path / "order").read_text() == "opened\nclosed\n"


async def test_a_hook_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """It holds up nobody: `announce` returns at once, others are reported meanwhile, and no process stays."""
    program(tmp_path, "hangs", f"sleep 987654 & echo $! >{tmp_path}/child; wait")
    program(tmp_path, "works", f"echo done >{tmp_path}/done")
    said: list[str] = []
    hooks = Hooks(tmp_path, said.append, 6.0)  # both have begun by then, also on a busy machine
    hooks.announce(NEWS)
    assert said == []
    await hooks.aclose()
    await asyncio.sleep(0.1)
    assert said in (["hook hangs: was ended after 6 s"], [])
    assert (tmp_path / "done").exists()
    state = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    # the signal was sent, but a busy kernel may take a while to end the process
    wait_until(lambda: not state.exists() or ") Z" in state.read_text(), "the hook's child ends")


async def test_hooks_that_fail_are_reported_and_nothing_else_happens(tmp_path: Path) -> None:
    """A wrong exit code, no interpreter, a port where nobody listens."""
    program(tmp_path, "fails", "exit 3")
    (tmp_path / "hooks" / "nonsense").write_bytes(b"\x7fELFnot really")
    (tmp_path / "hooks" / "nonsense").chmod(0o755)
    addresses(tmp_path, "http://127.0.0.1:9/")
    said = await lines_of_hooks(tmp_path, NEWS)
    assert "hook fails: exit code 3" in said
    assert any(line.startswith("hook nonsense: OSError") for line in said)
    assert any(line.startswith("hook 127.0.0.1: ConnectError") for line in said)


async def test_what_is_not_safe_is_not_used(tmp_path: Path, server: tuple[type[HookHandler], str]) -> None:
    """A program that others may change, URLs that others may read, plain http to another machine."""
    handler, url = server
    program(tmp_path, "lax", f"touch {tmp_path}/ran", mode=0o777)
    program(tmp_path, "plain-file", f"touch {tmp_path}/ran", mode=0o644)
    addresses(tmp_path, url, mode=0o644)
    said = await lines_of_hooks(tmp_path, NEWS)
    assert len(said) == 2 and "hook lax is not run" in said[0] and "chmod 600" in said[1]
    addresses(tmp_path, "http://example.com/?token=SECRET", "ftp://x/", "nonsense", "http://[", "https:///x")
    said = await lines_of_hooks(tmp_path, NEWS)
    assert sum("only https" in line for line in said) == 5 and "SECRET" not in "".join(said)
    os.chmod(tmp_path / "hooks", 0o777)
    assert any("hooks in" in line and "not run" in line for line in await lines_of_hooks(tmp_path, NEWS))
    assert not (tmp_path / "ran").exists() and handler.bodies == []


@pytest.mark.parametrize("text", ["", "[]", '{"webhooks": 3}', '{"hooks": []}', "\x00"])
async def test_a_broken_list_is_no_trouble(tmp_path: Path, text: str) -> None:
    """It is reported how it should be, at most."""
    addresses(tmp_path)
    (tmp_path / "hooks.json").write_text(text)
    assert all('{"webhooks": ["https://..."]}' in line for line in await lines_of_hooks(tmp_path, NEWS))


async def test_odd_places_are_no_trouble(tmp_path: Path) -> None:
    """A file in the place of the folder, a link to nowhere, words that no encoding has: what works is still
    reported."""
    (tmp_path / "hooks").write_text("")
    assert any("hooks in" in line for line in await lines_of_hooks(tmp_path, NEWS))
    (tmp_path / "hooks").unlink()
    program(tmp_path, "works", f"cat >{tmp_path}/body")
    (tmp_path / "hooks" / "nowhere").symlink_to(tmp_path / "gone")
    odd = News("opened", b"caf\xe9".decode("utf-8", "surrogateescape"), "twin", 1.0)
    assert await lines_of_hooks(tmp_path, odd) == []
    assert json.loads((tmp_path / "body").read_text())["text"] == "caf?"


async def test_no_notifier_is_fine(tmp_path: Path) -> None:
    """Most clusters have no hooks."""
    assert await lines_of_hooks(tmp_path, NEWS) == []


async def test_hooks_that_are_too_slow_forget_the_oldest(tmp_path: Path) -> None:
    """The queue is bounded: a supervisor that relaunches for a day does not grow."""
    program(tmp_path, "count", f'echo "$SPARKWRIGHT_INCIDENT" >>{tmp_path}/numbers')
    many = [News("opened", "", "twin", 1.0, incident=number) for number in range(1, 101)]
    await lines_of_hooks(tmp_path, *many)
    assert (tmp_path / "numbers").read_text().split() == [str(number) for number in range(69, 101)]
