"""Notifications over a real HTTP server and a real program in sendmail's place, and from a real supervisor."""

import asyncio
import email
import json
import os
import socket
import stat
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from functional.command import UserShell
from functional.test_install_supervisor import read_live, user_shell
from functional.test_supervised_cli import kill_rank, up
from patience import wait_until
from sparkwright.adapters.notify import Notifier
from sparkwright.domain.codec import to_json
from sparkwright.domain.incident import News
from sparkwright.domain.notify import Form, Receiver, Receivers

__all__ = ["user_shell"]  # a fixture

OPENED = News("opened", "rank 1 on b was killed", "twin", 1000.0, "draining", 7)
CLOSED = replace(OPENED, what="closed", fault="rank 1 on b was killed", away=16.0, state="ready")


class Inbox(BaseHTTPRequestHandler):
    """Answers with `statuses`, the last one for ever; notes path, headers and body."""

    got: list[tuple[str, dict[str, str], dict[str, Any]]]
    statuses: list[int]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.got.append((self.path, dict(self.headers), body))
        self.send_response(self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def http_inbox() -> Iterator[tuple[type[Inbox], str]]:
    handler = type("Handler", (Inbox,), {"got": [], "statuses": [200]})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def written(state: Path, *receivers: Receiver, mode: int = 0o600, **more: Any) -> Path:
    (state / "notify").mkdir(mode=0o700, exist_ok=True)
    path = state / "notify/notify.json"
    path.write_text(to_json(Receivers(receivers, **more)))
    path.chmod(mode)
    return path


def mailer(folder: Path, code: int = 0) -> Path:
    """Takes mail as sendmail does."""
    path = folder / "sendmail"
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{folder}/args; cat >{folder}/mail; exit {code}\n')
    path.chmod(0o755)
    return path


async def announce_news(state: Path, *news: News, retries: tuple[float, ...] = (), limit: float = 10.0) -> list[str]:
    said: list[str] = []
    notifier = Notifier(state, said.append, limit, retries)
    for one in news:
        notifier.announce(one)
    await notifier.aclose()
    return said


async def test_each_form_arrives(tmp_path: Path, http_inbox: tuple[type[Inbox], str]) -> None:
    """One outage, one message to each: ntfy with its token, three chats, a plain webhook, and mail."""
    handler, url = http_inbox
    web = [Receiver(form, f"{url}/{form}/SECRET", "TOKEN" if form is Form.NTFY else "") for form in Form][:-1]
    mail = Receiver(Form.MAIL, to=("me@example.com",), program=str(mailer(tmp_path)))
    written(tmp_path, *web, mail)
    assert await announce_news(tmp_path, OPENED, CLOSED) == []
    got = {path.split("/")[1]: (path, headers, body) for path, headers, body in handler.got}
    said = "twin was away for 16 s: rank 1 on b was killed; it serves again"
    assert len(handler.got) == 5
    path, headers, body = got["ntfy"]
    assert (path, headers["Authorization"], body["topic"]) == ("/ntfy", "Bearer TOKEN", "SECRET")
    assert body["message"] == said
    assert got["slack"][2] == got["mattermost"][2] == {"text": said} and got["discord"][2]["content"] == said
    assert (got["webhook"][2]["event"], got["webhook"][2]["sentence"]) == ("closed", said)
    assert (tmp_path / "args").read_text().split() == ["-i", "me@example.com"]
    assert said in email.message_from_bytes((tmp_path / "mail").read_bytes()).get_payload()


async def test_what_fails_for_a_moment_is_sent_again(tmp_path: Path, http_inbox: tuple[type[Inbox], str]) -> None:
    """503 and 429 are tried again, in order; 404 is not. No address is in the log."""
    handler, url = http_inbox
    written(tmp_path, Receiver(Form.SLACK, f"{url}/SECRET"))
    handler.statuses[:] = [503, 429, 200]
    assert await announce_news(tmp_path, CLOSED, retries=(0.01, 0.01)) == []
    assert len(handler.got) == 3
    handler.statuses[:] = [404]
    assert await announce_news(tmp_path, CLOSED, retries=(0.01, 0.01)) == [
        "notification by slack (127.0.0.1): HTTP 404"
    ]
    assert len(handler.got) == 4


async def test_a_receiver_that_hangs_holds_up_nobody(tmp_path: Path, http_inbox: tuple[type[Inbox], str]) -> None:
    """The deadline ends it; the other receiver has its message, and `announce` has returned at once."""
    handler, url = http_inbox
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = f"http://127.0.0.1:{silent.getsockname()[1]}/SECRET"
        written(tmp_path, Receiver(Form.SLACK, there), Receiver(Form.DISCORD, f"{url}/x"))
        said = await announce_news(tmp_path, CLOSED, limit=3.0)  # seconds; the other one must answer within them
    assert [body["content"] for _, _, body in handler.got] and len(handler.got) == 1
    assert not [line for line in said if "SECRET" in line]


async def test_a_flood_is_held_back_and_its_end_is_not(tmp_path: Path, http_inbox: tuple[type[Inbox], str]) -> None:
    """All are sent within the limit; beyond it the last one says how many are missing, and `given-up` does not wait."""
    handler, url = http_inbox
    written(tmp_path, Receiver(Form.SLACK, f"{url}/x"), per_hour=2)
    notes = [replace(OPENED, what="degraded", text=f"number {n}") for n in range(9)]
    over = replace(OPENED, what="given-up", text="4 faults")
    notifier = Notifier(tmp_path, pytest.fail)
    for one in notes:
        notifier.announce(one)
    while len(handler.got) < 2:
        await asyncio.sleep(0.01)
    notifier.announce(over)
    await notifier.aclose()
    texts = [body["text"] for _, _, body in handler.got]
    assert texts == [
        "twin serves, but: number 0",
        "twin serves, but: number 1",
        "twin is down and needs you: 4 faults (7 earlier messages held back)",
    ]


async def test_what_is_urgent_does_not_let_the_flood_before_it_through(
    tmp_path: Path, http_inbox: tuple[type[Inbox], str]
) -> None:
    """It may come while an earlier message is under way: what the limit holds back is counted then, too."""
    handler, url = http_inbox
    written(tmp_path, Receiver(Form.SLACK, f"{url}/x"), per_hour=2)
    notifier = Notifier(tmp_path, pytest.fail)
    for number in range(9):
        notifier.announce(replace(OPENED, what="degraded", text=f"number {number}"))
    notifier.announce(replace(OPENED, what="given-up", text="4 faults"))
    await notifier.aclose()
    texts = [body["text"] for _, _, body in handler.got]
    assert texts[2:] == ["twin is down and needs you: 4 faults (7 earlier messages held back)"]


async def test_an_outage_that_lasts_is_told_at_its_beginning(
    tmp_path: Path, http_inbox: tuple[type[Inbox], str]
) -> None:
    """The outage is told after `after` seconds, and its end as well."""
    handler, url = http_inbox
    written(tmp_path, Receiver(Form.SLACK, f"{url}/x"), after=0.05)
    notifier = Notifier(tmp_path, pytest.fail)
    notifier.announce(OPENED)
    while not handler.got:
        await asyncio.sleep(0.01)
    notifier.announce(CLOSED)
    await notifier.aclose()
    begun, ended = (body["text"] for _, _, body in handler.got)
    assert begun.startswith("twin has been away for 0.1 s: rank 1") and ended.startswith("twin was away for 16 s")


BAD = {
    "an open file": (0o644, None),
    "no JSON": (0o600, "SECRET"),
    "another shape": (0o600, '{"receivers": [{"form": "SECRET"}]}'),
    "a limit of nothing": (0o600, '{"receivers": [], "per_hour": 0}'),
    "a huge file": (0o600, "[" * 100_000),
}


@pytest.mark.each_row
@pytest.mark.parametrize("case", BAD)
async def test_a_bad_file_is_named_and_nothing_is_sent(
    tmp_path: Path, http_inbox: tuple[type[Inbox], str], case: str
) -> None:
    """Supervision goes on; the log has why, without a secret."""
    handler, url = http_inbox
    mode, text = BAD[case]
    path = written(tmp_path, Receiver(Form.SLACK, f"{url}/SECRET"), mode=mode)
    if text is not None:
        path.write_text(text)
    (said,) = await announce_news(tmp_path, CLOSED)
    assert "notifications are not sent" in said and "SECRET" not in said and not handler.got


async def test_addresses_and_mailers_that_cannot_work(tmp_path: Path) -> None:
    """Plain http to another machine, no address at all, no mailer, one that fails: a line for each."""
    written(
        tmp_path,
        Receiver(Form.SLACK, "http://example.com/SECRET"),
        Receiver(Form.DISCORD, "https://[SECRET"),
        Receiver(Form.MAIL, to=("a@b.c",), program="/nowhere/sendmail"),
        Receiver(Form.MAIL, to=("d@e.f",), program=str(mailer(tmp_path, 67))),
    )
    said = await announce_news(tmp_path, CLOSED)
    assert len(said) == 4 and not [line for line in said if "SECRET" in line]
    assert any("https" in line for line in said) and any("exit code 67" in line for line in said)
    assert any("/nowhere/sendmail" in line for line in said)


def configured(shell: UserShell, text: str) -> None:
    path = shell.folder / "cluster.yaml"
    path.write_text(f"{path.read_text()}\n{text}\n")


def content(path: Path) -> bytes:
    """b"" for a file that was a part of another and has its name now."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.full
def test_an_owner_is_told_of_a_killed_rank(user_shell: UserShell, http_inbox: tuple[type[Inbox], str]) -> None:
    """`notify test` sends from the head; `up` brings the settings there; a killed rank makes one sentence."""
    handler, url = http_inbox
    program = mailer(user_shell.folder)
    channels = f"[{{form: ntfy, url_env: NTFY_URL}}, {{form: mail, to: [me@example.com], program: {program}}}]"
    configured(user_shell, f"notify: {{channels: {channels}}}")
    code, _, err = user_shell.run("notify", "test")
    assert code == 2 and "NTFY_URL" in err
    secret = {"NTFY_URL": f"{url}/SECRET"}
    code, out, err = user_shell.run("notify", "test", "--json", **secret)
    assert code == 0, err
    assert [one["trouble"] for one in json.loads(out)["deliveries"]] == ["", ""] and "SECRET" not in out + err
    assert "sends a test message" in handler.got[-1][2]["message"] and (user_shell.folder / "mail").exists()
    assert user_shell.run("notify", "apply", **secret)[0] == 0
    path = user_shell.folder / "a/state/notify/notify.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    up(user_shell)  # without the variable: what the head has is kept
    assert "SECRET" in path.read_text()
    kill_rank(user_shell, "b", 1)
    wait_until(lambda: any("was away for" in body["message"] for _, _, body in handler.got), "the sentence")
    said = next(body["message"] for _, _, body in handler.got if "was away for" in body["message"])
    assert said.startswith("[simulated] twin was away for") and said.endswith("; it serves again") and "rank 1" in said
    wait_until(lambda: read_live(user_shell)["phase"] == "ready", "serving")
    state = user_shell.folder / "a/state"
    assert "SECRET" not in (state / "supervision/twin/log").read_text()
    # Not rglob: it fails if a folder is removed meanwhile
    files = (Path(folder, name) for folder, _, names in os.walk(state) for name in names)
    kept = [one for one in files if one.is_file() and not one.is_symlink() and os.access(one, os.R_OK)]
    assert [one.name for one in kept if b"/SECRET" in content(one)] == ["notify.json"]
    assert user_shell.run("down", "twin")[0] == 0
    print(said)
