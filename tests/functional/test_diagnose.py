"""`sparkwright diagnose` as it is typed: files, pipes, packed logs, folders, logs that grow."""

import gzip
import json
import lzma
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from functional.command import UserShell

LOGS = Path(__file__).parents[1] / "data" / "captures_logs"
GLOO = "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error, remote=[127.0.0.1]:40213\n"
BORING = "INFO 11-02 10:11:12 [core.py:109] all is well\n" * 50


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    return UserShell(tmp_path)


def test_two_ranks_logs_give_one_answer(user_shell: UserShell) -> None:
    """Guards the screen: cause, key, sureness, file and line number, why, fix, and what is missing."""
    code, out, err = user_shell.run("diagnose", str(LOGS / "m4-head.log"), str(LOGS / "m4-worker.log"))
    assert (code, err) == (1, "")
    assert "nccl-socket-ifname-wrong" in out and "medium 0.65" in out
    assert "m4-head.log:22  NCCL version 2.28.9" in out
    assert "fix    on every node: ip -br -4 addr" in out
    assert "no kernel log was given" in out
    assert "m4-worker.log 11 lines" in out


def test_nothing_known_is_reported_and_is_no_failure(user_shell: UserShell) -> None:
    """Guards that no cause is invented, and that a script can report."""
    code, out, _ = user_shell.run("diagnose", str(LOGS / "b-8b-graphs.log"))
    assert code == 0 and out.startswith("stopped in good order")
    assert "to narrow it down" not in out


HEALTHY = """WARNING 09-05 07:16:13 [fused_moe.py:191] Using default MoE config. Performance might be sub-optimal! \
Config file not found at /x/E=256,N=512,device_name=NVIDIA_GB10.json
INFO:     Application startup complete.
INFO:     10.0.0.9:51822 - "POST /v1/chat/completions HTTP/1.1" 200 OK
"""


def test_a_serving_server_is_healthy_and_says_so_first(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards the first line, exit 0 and the short answer of --json; a failure after it is exit 1."""
    path = tmp_path / "x.log"
    path.write_text(HEALTHY)
    code, out, _ = user_shell.run("diagnose", str(path))
    assert code == 0 and out.startswith("serves since line 2; 1 note\n")
    code, out, _ = user_shell.run("diagnose", str(path), "--json")
    told = json.loads(out)
    assert (code, told["state"], told["serves"], told["failure"], len(told["notes"])) == (0, "serving", True, None, 1)
    path.write_text(HEALTHY + GLOO)
    code, out, _ = user_shell.run("diagnose", str(path), "--json")
    told = json.loads(out)
    assert (code, told["state"], told["serves"]) == (1, "failed", False)
    assert told["failure"]["cause"] == "gloo-wrong-interface-loopback" and told["failure"]["line"]["number"] == 4


def test_a_folder_of_thousands_of_logs_and_a_picture(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards the list of what was read, and pictures that nobody can read as text."""
    (tmp_path / "many").mkdir()
    for number in range(300):
        (tmp_path / "many" / f"{number:04}.log").write_text("all is well\n")
    code, out, _ = user_shell.run("diagnose", str(tmp_path / "many"))
    assert code == 0 and "300 logs with 300 lines" in out and len(out) < 2000
    (tmp_path / "x.log").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"text that looks readable " * 40)
    code, out, err = user_shell.run("diagnose", str(tmp_path / "x.log"))
    assert (code, out) == (2, "") and "a picture" in err and "hint:" in err


@pytest.mark.parametrize("form", ["plain", "utf-16", "gzip", "cut gzip", "journal", "docker"])
def test_logs_in_their_envelopes(user_shell: UserShell, tmp_path: Path, form: str) -> None:
    """Guards packed logs, also half of one, and lines wrapped in JSON."""
    lines = (BORING + GLOO + BORING).splitlines(keepends=True)
    packed = gzip.compress((BORING * 20 + GLOO + BORING * 400).encode() + os.urandom(30_000))
    data = {
        "plain": "".join(lines).encode(),
        "utf-16": "".join(lines).encode("utf-16"),
        "gzip": packed,
        "cut gzip": packed[:-9000],
        "journal": "".join(json.dumps({"MESSAGE": x, "__REALTIME_TIMESTAMP": "1"}) + "\n" for x in lines).encode(),
        "docker": "".join(json.dumps({"log": x, "stream": "stderr"}) + "\n" for x in lines).encode(),
    }
    path = tmp_path / "x.log"
    path.write_bytes(data[form])
    code, out, _ = user_shell.run("diagnose", str(path), "--json")
    printed = json.loads(out)
    assert code == 1 and printed["schema"] == 1
    (cause,) = printed["diagnosis"]["causes"]
    assert cause["key"] == "gloo-wrong-interface-loopback"
    assert cause["proof"][0]["number"] == (1001 if "gzip" in form else 51)
    assert cause["sureness"] == "high"


def test_a_pipe_and_a_folder(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards `docker logs | sparkwright diagnose -`, also without the dash, and an incident's folder."""
    for words in (["diagnose", "-"], ["diagnose"]):
        code, out, _ = user_shell.run(*words, stdin=GLOO)
        assert code == 1 and "standard input:1  RuntimeError: Gloo" in out
    (tmp_path / "incident").mkdir()
    (tmp_path / "incident" / "rank0-a.log").write_text(BORING)
    (tmp_path / "incident" / "rank1-b.log").write_text(GLOO)
    (tmp_path / "incident" / "plan.json").write_text(GLOO)
    code, out, _ = user_shell.run("diagnose", str(tmp_path / "incident"))
    assert code == 1 and "rank1-b.log:1" in out and "plan.json" not in out


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["diagnose", "nowhere/x.log"], "nowhere/x.log: there is no such file"),
        (["diagnose", "No_Such"], "No_Such: there is no such file"),
        (["diagnose", "no-such-deployment"], "no such file"),
        (["diagnose", "--watch", "-", "x.log"], "either standard input or files"),
    ],
)
def test_wrong_arguments_are_reported(user_shell: UserShell, words: list[str], printed: str) -> None:
    """Guards exit 2 and a sentence that names what was wrong."""
    code, out, err = user_shell.run(*words)
    assert (code, out) == (2, "") and printed in err


def test_an_empty_folder_and_an_unreadable_file(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards what a glob or a wrong path leads to."""
    (tmp_path / "empty").mkdir()
    code, _, err = user_shell.run("diagnose", str(tmp_path / "empty"))
    assert code == 2 and "no logs in this folder" in err
    code, out, err = user_shell.run("diagnose", os.devnull)
    assert (code, out) == (2, "") and "empty" in err


def test_packed_logs_that_are_not_read_are_reported(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards against `no known cause` for bytes that nobody can read, and against watching a file that cannot grow."""
    (tmp_path / "x.xz").write_bytes(lzma.compress(GLOO.encode()))
    code, out, err = user_shell.run("diagnose", str(tmp_path / "x.xz"))
    assert (code, out) == (2, "") and "xzcat" in err
    (tmp_path / "x.gz").write_bytes(gzip.compress(GLOO.encode()))
    code, out, err = user_shell.run("diagnose", "--watch", str(tmp_path / "x.gz"))
    assert (code, out) == (2, "") and "a packed log does not grow" in err


XID = "NVRM: Xid (PCI:000f:01:00): 79, pid=1, GPU has fallen off the bus.\n"
FULL = "OSError: [Errno 28] No space left on device: '/models/x'\n"
GATED = "Cannot access gated repo for url https://huggingface.co/x/y. Access to model x/y is restricted.\n"
LATER = ((XID, "gpu-fell-off-bus-xid79"), (FULL, "disk-full"))


def printed(watch: subprocess.Popen[str]) -> str:
    """The next cause's key; the test's own time limit is the whole suite's."""
    assert watch.stdout
    ready, _, _ = select.select([watch.stdout], [], [], 60.0)
    assert ready, "no cause within 60 s"
    return str(json.loads(watch.stdout.readline())["key"])


def test_watch_prints_each_cause_while_the_log_grows(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards the live log: once each, also after the file was replaced; Ctrl-C ends it."""
    path = tmp_path / "live.log"
    path.write_text(BORING + GLOO)
    watch = user_shell.start("diagnose", "--watch", "--json", str(path))
    try:
        assert printed(watch) == "gloo-wrong-interface-loopback"
        for text, key in LATER:
            with path.open("a") as log:
                log.write(text)
            assert printed(watch) == key
        path.rename(tmp_path / "live.log.1")
        path.write_text(GATED + GLOO)
        assert printed(watch) == "hf-gated-repo-no-access"
    finally:
        watch.send_signal(signal.SIGINT)
        _, err = watch.communicate(timeout=60)
    assert watch.returncode == 130 and "Traceback" not in err


def test_watch_on_a_file_explains_at_ctrl_c(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards a failure without a known cause: the line that explains and its next step, when the user gives up."""
    path = tmp_path / "app.log"
    path.write_text("Error: Cannot find module 'express'\n")
    watch = user_shell.start("diagnose", "--watch", "--json", str(path))
    assert watch.stderr and "following" in watch.stderr.readline()
    watch.send_signal(signal.SIGINT)
    out, err = watch.communicate(timeout=60)
    why = json.loads(out.splitlines()[0])["explanation"]
    assert watch.returncode == 130 and "Traceback" not in err
    assert (why["mechanism"], why["line"]["number"]) == ("missing-module", 1) and why["next"]


def test_watch_on_a_pipe_ends_with_it(user_shell: UserShell) -> None:
    """Guards `docker logs -f | sparkwright diagnose --watch -`: reported while the pipe is open, exit 1 at its end."""
    watch = user_shell.start("diagnose", "--watch", "--json", "-", stdin=subprocess.PIPE)
    assert watch.stdin
    for text, key in ((BORING + GLOO, "gloo-wrong-interface-loopback"), *LATER):
        watch.stdin.write(text)
        watch.stdin.flush()
        assert printed(watch) == key
    watch.stdin.close()
    assert watch.wait(timeout=60) == 1
    for stream in (watch.stdout, watch.stderr):
        assert stream
        stream.close()


def test_a_file_is_read_without_what_a_cluster_needs(tmp_path: Path) -> None:
    """Guards the start of `diagnose FILE`: neither use cases, nor recipes, nor an event loop are loaded for it."""
    (tmp_path / "a.log").write_text("RuntimeError: no kernel image is available for execution on the device\n")
    command = [sys.executable, "-X", "importtime", "-m", "sparkwright", "diagnose", str(tmp_path / "a.log")]
    loaded = subprocess.run(command, capture_output=True, text=True, timeout=60).stderr.split()
    heavy = {"asyncio", "sparkwright.wiring", "sparkwright.app.services", "sparkwright.domain.recipe"}
    assert "sparkwright.app.diagnose.examine" in loaded and not heavy & set(loaded)
