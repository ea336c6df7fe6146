"""`top` and `status --watch`: in place on a terminal, frames elsewhere, and Ctrl-C as their usual end."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.command import COMMAND, UserShell
from functional.supervised import SupervisedHead, supervising
from patience import CALL
from sparkwright.domain.live import LiveEngine

_IN, _OUT = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    made = UserShell(tmp_path)
    head = SupervisedHead(made)
    with supervising(head.home) as pid:
        head.live(pid=pid, at=time.time() + CALL, engine=LiveEngine(1.0, running=3.0, waiting=1.0, kv_usage=0.42))
        yield made
    made.clean()


def on_terminal(shell: UserShell, columns: int, *words: str) -> tuple[int, str]:
    """The exit code and all that was drawn, with Ctrl-C once a frame is there."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {**shell.environ, "TERM": "xterm"}
    process = subprocess.Popen([*COMMAND, *words], stdin=side, stdout=side, stderr=side, env=environ, cwd=shell.folder)
    os.close(side)
    said, sent = b"", False
    try:
        while chunk := os.read(main, 4096):
            said += chunk
            if not sent and b"available" in said:
                process.send_signal(signal.SIGINT)
                sent = True
    except OSError:  # the command has ended
        pass
    os.close(main)
    return process.wait(timeout=60), said.decode()


@pytest.mark.parametrize("words", [("top",), ("status", "--watch")])
def test_a_terminal_of_80_columns_is_drawn_on_and_left_as_it_was(user_shell: UserShell, words: tuple[str, ...]) -> None:
    """Guards that no line is wider than the terminal, and that Ctrl-C gives back screen and cursor with exit 0."""
    code, said = on_terminal(user_shell, 80, *words)
    assert code == 0, said
    assert said.count(_IN) == said.count(_OUT) == 1 and said.index(_IN) < said.index("available") < said.index(_OUT)
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l") and "Traceback" not in said and "stopped" not in said
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.replace("\x1b[H", "\n"))
    assert max(map(len, drawn.replace("\r", "").split("\n"))) <= 80 and "SIMULATED" in drawn


def first_frame(shell: UserShell, *words: str) -> str:
    """The first frame without a terminal; whole lines, until the second one begins."""
    process = shell.start(*words, "--every", "0.5")
    assert process.stdout
    lines: list[str] = []
    for line in process.stdout:
        if lines and (line.startswith("{") or (re.match(r"\d{4}-", line) and len(lines) > 1)):
            break
        lines.append(line)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    return "".join(lines)


def test_without_a_terminal_frames_are_printed(user_shell: UserShell) -> None:
    """Guards that a pipe gets plain text, and a program one object a look."""
    text = first_frame(user_shell, "top")
    assert "\x1b" not in text and "SIMULATED  twin: ready" in text
    assert re.search(r"running +3\n", text) and re.search(r"KV cache +42 % +prefix hits +unknown", text), text
    assert re.search(r"spark-1 +20.0 GiB +5 h 00 min", text) and "cannot be asked now" in text
    assert "problem" not in text and "answered" not in text
    shown = json.loads(first_frame(user_shell, "top", "--json"))["deployments"][0]
    assert (shown["name"], shown["state"], shown["decode_tokens_s"]) == ("twin", "ready", None)
    assert shown["live"]["engine"]["running"] == 3.0
    assert json.loads(first_frame(user_shell, "status", "--watch", "--json"))["deployments"][0]["state"] == "ready"


def test_what_does_not_serve_has_no_speed(user_shell: UserShell) -> None:
    """Guards that the last figures of an engine that is gone are not shown as if they were of now."""
    path = user_shell.folder / "nodes/spark-1/home/.local/state/sparkwright/supervision/twin/live.json"
    live = json.loads(path.read_text())
    path.write_text(json.dumps({**live, "phase": "failed", "refusing": True, "why": "it dies in every load"}))
    text = first_frame(user_shell, "top")
    assert "42 %" not in text and "tok/s" not in text and "it dies in every load" in text


def test_an_unknown_name_is_refused(user_shell: UserShell) -> None:
    """Guards that a misspelt deployment is not watched for ever."""
    code, _, err = user_shell.run("top", "nothing-like-it")
    assert code == 2 and "there are: twin" in err
