"""The receiving side of a copy is sent odd things: pieces changed on their way, paths that lead out of the target."""

import contextlib
import json
import random
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.remote.programs import take_text
from sparkwright.remote.programs.wire import (
    BLOCK,
    DROP,
    HEAD,
    KEEP,
    PARTIAL,
    PIECE,
    SALT,
    SUM,
    code_of,
    gmac_of,
    head_of,
    name_of,
)

SECRET = "5e" * 32


@pytest.fixture(params=[True, False], ids=["gmac", "hmac"])
def taking(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, int, bool]]:
    """The receiving program, waiting for a file over plain TCP: what has arrived of it, its port, the kind of code."""
    words = ["python3", "-I", "-S", "-c", take_text()]
    asked = {"role": "plan", "root": str(tmp_path), "single": False, "files": [["a.bin", 4 * BLOCK, 1, 420]]}
    asked |= {"links": [], "secret": SECRET, "listen": "127.0.0.1", "streams": 1, "yields": False}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        print(json.dumps(asked | {"gmac": request.param}), file=process.stdin, flush=True)
        answered = json.loads(process.stdout.readline())
        assert answered["gmac"] == request.param
        yield tmp_path / PARTIAL / name_of("a.bin"), answered["port"], answered["gmac"]
        process.kill()


@pytest.mark.parametrize("kind", [DROP, SUM, KEEP])
def test_a_piece_that_was_changed_on_its_way_is_not_taken(taking: tuple[Path, int, bool], kind: str) -> None:
    """Over plain TCP a flipped bit of head, salt, content or code is found, and no other kind of piece avoids that.

    Content of a file that the publisher's checksum verifies is not: that finds it at the end.
    """
    (arrived, port, gmac), content = taking, random.Random(5).randbytes(BLOCK)
    head = head_of(arrived.name, BLOCK, BLOCK, kind) + random.Random(6).randbytes(SALT)
    code = code_of(bytes.fromhex(SECRET), head, () if kind == KEEP else [content], gmac)
    sent = head + (code + content if kind == KEEP else content + code)
    other = head_of(arrived.name, BLOCK, BLOCK, DROP if kind == KEEP else KEEP)
    forged = [other + sent[len(other) :], *(flipped(sent, at) for at in (head.index(b" ") + 1, HEAD, sent.index(code)))]
    for one in [*forged, *([] if kind == KEEP else [flipped(sent, len(head) + at) for at in (0, 77, BLOCK - 1)])]:
        assert answer(port, one) == b""
    assert len(arrived.with_suffix(".journal").read_text().splitlines()) == 1
    assert answer(port, sent) == b"\n"
    assert arrived.read_bytes()[BLOCK : 2 * BLOCK] == content


def test_a_code_of_one_piece_is_that_of_no_other() -> None:
    """The same content has another code with another head, salt or key, and GMAC is what NIST's test case 1 gives."""
    key, head, content = b"k" * 32, b"h" * HEAD, b"c" * PIECE
    made = {
        code_of(*words, True) for words in ((key, head, [content]), (key, head[1:], [content]), (head, key, [content]))
    }
    halves = [content[: BLOCK + 5], memoryview(bytearray(content[BLOCK + 5 :]))]
    assert len(made) == 3 and code_of(key, head, halves, True) in made
    assert gmac_of(bytes(28), ()).hex() == "58e2fccefa7e3061367f1d57a4e7455a"


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def answer(port: int, data: bytes) -> bytes:
    """Nothing where the connection was closed, which each of the calls may be the first to see."""
    with socket.create_connection(("127.0.0.1", port)) as connection, contextlib.suppress(OSError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(1)
    return b""


def test_a_path_that_leads_out_of_the_target_is_refused(tmp_path: Path) -> None:
    """Also a source that was taken over writes nowhere else."""
    for more in ({"files": [["../x", 1, 1, 420]], "links": []}, {"files": [], "links": [["a/x", "../../y"]]}):
        asked = json.dumps({"role": "plan", "root": str(tmp_path / "t"), "single": False, **more})
        words = ["python3", "-I", "-S", "-c", take_text()]
        done = subprocess.run(words, input=asked + "\n", capture_output=True, text=True, check=False)
        assert "error 23" in done.stdout and not (tmp_path / "x").exists(), done.stderr
