"""A copy whose other side freezes, says nothing or loses a piece: it ends with the reason, and names no wrong file."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.sh import Sh
from functional.remote.test_push import HERE, feed_program, receiving, tree_checksums
from patience import wait_until
from sparkwright.domain.cluster import Transfer
from sparkwright.remote import staging
from sparkwright.remote.programs import sender, take_text
from sparkwright.remote.programs.wire import CUT_OFF, FAILED, PARTIAL, PIECE, name_of

PATIENT = replace(HERE, name="spark-2", source="spark-1", patience=10.0)
# Stands in for ssh: starts the receiving program, and takes pieces out of the way to it, with an answer of its own.
RELAY = """
import os, subprocess, sys
mode, log = sys.argv[1], sys.argv[2]
if mode == "mute":
    sys.stdin.buffer.read()
    sys.exit(0)
p = subprocess.Popen(["sh", "-c", sys.argv[-1]], stdin=subprocess.PIPE)
source, to = sys.stdin.buffer, p.stdin
line = source.readline()
to.write(line + source.read(int(line)))
hello = source.readline()
to.write(hello)
to.flush()
if b'"data"' not in hello:
    while block := source.read1(65536):
        to.write(block)
        to.flush()
else:
    while head := source.read(80):
        name, offset, length, kind = head.decode().split()
        content = source.read(int(length))
        if kind != "beat" and offset == "8388608" and (mode == "always" or not os.path.exists(log)):
            open(log, "a").write(name + "\\n")
            sys.stdout.write("got " + offset + "\\n")
            sys.stdout.flush()
            continue
        to.write(head + content)
        to.flush()
to.close()
p.wait()
"""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, what)


@pytest.fixture
def node_shell(tmp_path: Path) -> Sh:
    return Sh(tmp_path, "dash")


def relayed(tmp_path: Path, source: Path, target: Path, mode: str) -> "subprocess.CompletedProcess[str]":
    """push.py with a relay in place of ssh."""
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    asked = {"source": str(source), "target": str(target), "streams": 1, "limit": 0, "chain": "", "follows": False}
    patience = 2.0 if mode == "mute" else 60.0  # a busy machine may need seconds to start Python
    asked |= {"leads": False, "yields": False, "peer": "spark-2", "from": "spark-1", "patience": patience}
    words = ["python3", "-I", "-S", "-", json.dumps(asked), "spark@there", sys.executable, str(relay), mode]
    return subprocess.run([*words, str(tmp_path / "swallowed")], input=sender(), capture_output=True, text=True)


@pytest.fixture(params=["blobs", "plain"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that its publisher's SHA-256 names, and one without a published checksum. Zeros, as a file has them where
    nothing was written, except in the first piece."""
    data = random.Random(3).randbytes(PIECE) + bytes(2 * PIECE)
    name = f"blobs/{hashlib.sha256(data).hexdigest()}" if request.param == "blobs" else "model.gguf"
    file = tmp_path / "from" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    return tmp_path / "from"


def test_a_piece_that_was_acknowledged_and_never_came_is_sent_again(tmp_path: Path, source: Path) -> None:
    """The receiver looks at its own journal before it names a file, whoever acknowledges in its name."""
    done = relayed(tmp_path, source, tmp_path / "to", "once")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len((tmp_path / "swallowed").read_text().splitlines()) == 1
    assert tree_checksums(tmp_path / "to").items() >= tree_checksums(source).items()


def test_a_file_that_never_comes_whole_gets_no_name(tmp_path: Path, source: Path) -> None:
    """Zeros in place of zeros are named, too: a hole in the journal is enough."""
    done = relayed(tmp_path, source, tmp_path / "to", "always")
    assert done.returncode == FAILED and "its content is not what its checksum promises" in done.stdout, done.stdout
    assert not [
        path
        for path in (tmp_path / "to").rglob("*")
        if path.is_file() and path.stat().st_size > PIECE and PARTIAL not in path.parts
    ]


def test_a_peer_that_says_nothing_is_given_up(tmp_path: Path, source: Path) -> None:
    """A login that hangs after the connection is there: exit 12 with the node and the seconds."""
    done = relayed(tmp_path, source, tmp_path / "to", "mute")
    assert done.returncode == CUT_OFF, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "spark-2 has acknowledged nothing for 2 s"


@pytest.mark.full
def test_a_frozen_receiver_is_given_up(node_shell: Sh) -> None:
    """SIGSTOP is what a frozen node looks like: progress tells the stall, and the copy ends with the reason."""
    source = node_shell.home / "from.bin"
    with source.open("wb") as file:
        file.truncate(64 * PIECE)
    command = staging.push_tree(str(source), str(node_shell.home / "to.bin"), PATIENT, Transfer(limit=40_000_000))
    process = node_shell.start(command)
    feed_program(process, command)
    journal = node_shell.home / PARTIAL / f"{name_of('to.bin')}.journal"
    while process.poll() is None and not (journal.exists() and len(journal.read_text().splitlines()) > 1):
        os.sched_yield()
    frozen = receiving(process.pid)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    out, _ = process.communicate(timeout=120)
    lines = out.splitlines()
    assert process.returncode == CUT_OFF and lines[-1].startswith("spark-2 has acknowledged nothing for 10"), lines[-3:]
    assert any(" no data for 5 s" in line for line in lines), lines[-12:]
    wait_for(lambda: not receiving(process.pid), "a receiver that was given up still runs")
    assert frozen and not (node_shell.home / "to.bin").exists()


@pytest.mark.parametrize("role", ["plan", "data"])
def test_a_receiver_gives_up_a_silent_sender(tmp_path: Path, role: str) -> None:
    """Nothing stays behind on a node whose sender has frozen; signs of life without any data keep it."""
    words = ["python3", "-I", "-S", "-c", take_text()]
    asked: dict[str, object] = {"role": role, "root": str(tmp_path), "single": False, "files": [], "links": []}
    asked |= {"folder": str(tmp_path), "from": "spark-1", "patience": 1.0}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert process.stdout.readline() == b"error 12 spark-1 was silent for 1 s\n"
        assert process.wait(30) == 0


def test_a_path_that_leads_out_of_the_target_is_refused(tmp_path: Path) -> None:
    """A source that was taken over writes nowhere else, either."""
    for more in ({"files": [["../x", 1, 1, 420]], "links": []}, {"files": [], "links": [["a/x", "../../y"]]}):
        asked = json.dumps({"role": "plan", "root": str(tmp_path / "t"), "single": False, **more})
        words = ["python3", "-I", "-S", "-c", take_text()]
        done = subprocess.run(words, input=asked + "\n", capture_output=True, text=True, check=False)
        assert "error 23" in done.stdout and not (tmp_path / "x").exists(), done.stderr


def test_links_that_lead_nowhere_or_back_are_left_out(node_shell: Sh) -> None:
    """`ln -s /models/foo /models/foo`, typed twice, makes a link to the folder inside it: the copy is whole."""
    source = node_shell.home / "foo"
    source.mkdir()
    (source / "a.txt").write_text("a")
    (source / "foo").symlink_to(source)
    (source / "self").symlink_to(source / "self")
    done = node_shell.run(staging.push_tree(str(source), str(node_shell.home / "to"), HERE, Transfer()))
    assert done.ok, done.stdout
    assert {path.name for path in (node_shell.home / "to").iterdir() if "incomplete" not in path.name} == {"a.txt"}
