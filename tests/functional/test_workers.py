"""Forks of one pytest process that share the test files: tests/workers.py."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

import namespaces
from fakes.processes import command_lines

TESTS = Path(__file__).parents[1]
APART = pytest.mark.skipif(not namespaces.can_enter(), reason="this kernel gives no namespaces")
PYTEST = [sys.executable, "-m", "pytest", "-q", "--workers=2", "--junitxml=out.xml"]
# Two files that need each other: only two processes at the same time pass them.
PAIR = """
import os, pathlib, time

def test_it():
    here = pathlib.Path(__file__)
    here.with_suffix(".worker").write_text(os.environ["TEST_WORKER"])
    here.with_suffix(".shared").write_text(str(os.listdir("/dev/shm")))
    pathlib.Path(f"/dev/shm/{{here.stem}}").touch()
    for kind in ("net", "pid", "mnt", "ipc"):
        here.with_suffix(f".{{kind}}").write_text(os.readlink(f"/proc/self/ns/{{kind}}"))
    end = time.monotonic() + 120
    while not here.with_name("test_{other}.ipc").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
"""
SEEN = "pathlib.Path(__file__).with_name('net').write_text(os.readlink('/proc/self/ns/net'))\n"
FILE = """
import os, pathlib, signal, time, pytest

@pytest.fixture(scope="module")
def place(tmp_path_factory):
    yield tmp_path_factory.mktemp("place")
    open({log!r}, "a").write("ended ")

@pytest.mark.parametrize("number", range(5))
def test_one(place, number):
    print(f"printed by {name} {{number}}")
    assert number != {fails}
    {last}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(
        "from workers import pytest_addoption, pytest_configure, pytest_runtestloop\n"
    )
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\naddopts = --import-mode=importlib\n")
    return tmp_path


def run(folder: Path, *words: str, fails: int = -1, last: str = "") -> tuple[subprocess.CompletedProcess[str], str]:
    """Four files of five tests; `fails`, `last`: of the third. Also the log of what fixtures' ends wrote."""
    log = folder / "log"
    for name in "abcd":
        special = {"fails": fails, "last": last} if name == "c" else {"fails": -1, "last": ""}
        (folder / f"test_{name}.py").write_text(FILE.format(log=str(log), name=name, **special))
    done = subprocess.run([*PYTEST, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    return done, log.read_text() if log.exists() else ""


def test_skipped_tests_are_counted_with_their_reason(folder: Path) -> None:
    """Guards the run on a machine without the data of some tests: its report was what broke."""
    done, _ = run(folder, "-rs", last="pytest.skip('data: not here')")
    assert done.returncode == 0 and "15 passed, 5 skipped" in done.stdout and "data: not here" in done.stdout
    suite = ElementTree.parse(folder / "out.xml").getroot()[0]
    assert suite.get("skipped") == "5"


@pytest.mark.parametrize(("until", "counts"), [("1", "20 skipped"), ("99999999999", "20 passed")])
def test_no_file_begins_when_the_time_is_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch, until: str, counts: str
) -> None:
    """CI ends a run that takes too long without any result: what was not reached is listed instead."""
    monkeypatch.setenv("TEST_UNTIL", until)
    done, ended = run(folder, "-rs")
    assert done.returncode == 0 and counts in done.stdout
    assert ("time: not reached" in done.stdout, "ended" in ended) == (until == "1", until != "1")


def test_each_test_runs_once_and_fixtures_end(folder: Path) -> None:
    """Guards the count that `make test` prints, and what module fixtures clean up."""
    done, log = run(folder)
    assert (done.returncode, log) == (0, "ended " * 4)
    cases = [
        f"{one.get('classname')} {one.get('name')}" for one in ElementTree.parse(folder / "out.xml").iter("testcase")
    ]
    assert sorted(cases) == [f"test_{name} test_one[{number}]" for name in "abcd" for number in range(5)]


def test_a_failure_is_shown_with_its_output(folder: Path) -> None:
    """Guards that a failure in a fork is a failure of the run, with the values and the output of that test alone."""
    done, _ = run(folder, fails=3)
    assert (done.returncode, "19 passed" in done.stdout and "1 failed" in done.stdout) == (1, True), done.stdout
    assert "assert 3 != 3" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("printed by")] == ["printed by c 3"]


def test_the_first_failure_stops_all(folder: Path) -> None:
    """Guards `make unit ARGS=-x`: the other fork stops, too."""
    done, _ = run(folder, "-x", fails=0, last="time.sleep(600)")
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout


def test_a_killed_fork_fails_the_run(folder: Path) -> None:
    """Guards against tests that are lost and nobody notices."""
    done, _ = run(folder, last="os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode not in (0, 1) and "a worker ended with status -9" in done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [(), pytest.param(("--apart",), marks=APART)], ids=["together", "apart"])
def test_an_interrupted_run_cleans_up(folder: Path, number: signal.Signals, words: tuple[str, ...]) -> None:
    """Guards containers and processes of fixtures: what stops the run reaches only its first process."""
    log = folder / "log"
    process = begin_run(folder, "time.sleep(600)", *words)
    process.send_signal(number)
    assert (process.wait(120), log.read_text()) == (2, "ended ")


@pytest.mark.parametrize("words", [(), pytest.param(("--apart",), marks=APART)], ids=["together", "apart"])
def test_forks_of_a_killed_run_end(folder: Path, words: tuple[str, ...]) -> None:
    """Guards against workers that go on testing for minutes when their runner was killed."""
    process = begin_run(folder, "time.sleep(600)", *words)
    forks = children(process.pid)
    process.kill()
    process.wait(120)
    end = time.monotonic() + 120
    while any(is_alive(pid) for pid in forks):
        assert forks and time.monotonic() < end
        time.sleep(0.01)


@APART
def test_workers_apart_have_namespaces_each(folder: Path) -> None:
    """Guards tests from those that run at the same time: functional ones have processes, ports and leases of their own,
    and the number of a worker is that of its testbed."""
    for name, other in ("ab", "ba"):
        (folder / f"test_{name}.py").write_text(PAIR.format(other=other))
    done = subprocess.run([*PYTEST, "--apart"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("net", "pid", "mnt", "ipc"):
        seen = {path.read_text() for path in folder.glob(f"*.{kind}")}
        assert len(seen | {os.readlink(f"/proc/self/ns/{kind}")}) == 3, kind
    assert {path.read_text() for path in folder.glob("*.worker")} == {"0", "1"}
    assert {path.read_text() for path in folder.glob("*.shared")} == {"[]"}


@APART
def test_without_root_a_worker_has_namespaces_and_no_capability() -> None:
    """Guards who has no root: a user namespace gives the same, and no right that the user does not have."""
    told = """
enter_namespaces()
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
socket.create_server(("127.0.0.1", 22022)).close()
print(os.getuid(), os.getpid() < 10, os.listdir("/dev/shm"), flush=True)
"""
    user = os.geteuid() or 65534
    code = Path(namespaces.__file__).read_text() + told
    words = ["setpriv", f"--reuid={user}", "--clear-groups"] if os.geteuid() == 0 else []
    done = subprocess.run([*words, "/usr/bin/python3", "-"], input=code, cwd="/", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{user} True []\n"), done.stderr


@APART
def test_one_worker_apart_has_namespaces_too(folder: Path) -> None:
    """Guards a developer's run of one file: a browser in the machine's own network loses its connections whenever a
    testbed adds a device to that."""
    (folder / "test_a.py").write_text("import os, pathlib\n\ndef test_it():\n    " + SEEN)
    command = [*PYTEST, "--workers=1", "--apart"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "net").read_text() != os.readlink("/proc/self/ns/net")


@pytest.mark.full
@APART
def test_a_process_that_a_test_leaves_fails_the_run_and_ends(folder: Path) -> None:
    """Guards the rule that a test stops what it starts: the kernel would clean up in silence."""
    marker = f"{time.time_ns()}.5"
    start = f"import subprocess; subprocess.Popen(['sleep', '{marker}'], start_new_session=True)"
    done, _ = run(folder, "--apart", last=f"{start} if number == 1 else None")
    assert done.returncode == 1 and "1 failed, 20 passed" in done.stdout, done.stdout
    assert f"sleep {marker} (since test_c.py)" in done.stdout
    cases = ElementTree.parse(folder / "out.xml").iter("testcase")
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["left_behind"]
    assert not any(marker in line for line in command_lines())


def begin_run(folder: Path, last: str, *words: str) -> subprocess.Popen[bytes]:
    """A run of one file whose first test has begun its last line."""
    log = folder / "log"
    begun = folder / "begun"
    text = f"pathlib.Path({str(begun)!r}).touch(); {last}"
    (folder / "test_a.py").write_text(FILE.format(log=str(log), name="a", fails=-1, last=text))
    process = subprocess.Popen([*PYTEST, *words], cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 120
    while not begun.exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.01)
    return process


def children(pid: int) -> list[int]:
    found = list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return found + [one for child in found for one in children(child)]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_the_tests_that_ended(folder: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """Guards the lines that `make test` prints every half minute."""
    progress = folder / "progress"
    monkeypatch.setenv("TEST_PROGRESS", str(progress))
    shown = f"import time\n    while 'test_c.py' not in pathlib.Path({str(progress)!r}).read_text(): time.sleep(0.01)"
    done, _ = run(folder, f"--workers={workers}", last=shown)
    assert done.returncode == 0, done.stdout
    assert json.loads(progress.read_text())[:2] == [20, 20]


def test_a_failure_can_be_read_before_the_run_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards who waits an hour for a run of which a test failed in the first minute."""
    monkeypatch.setenv("TEST_PROGRESS", str(folder / "some.progress"))
    seen = f"\n    assert number != 4 or 'assert 3 != 3' in pathlib.Path({str(folder / 'some.failed')!r}).read_text()"
    done, _ = run(folder, "--workers=1", fails=3, last=f"pass{seen}")
    assert "1 failed" in done.stdout, done.stdout
    assert json.loads((folder / "some.progress").read_text())[3] == 1


@pytest.mark.full
@pytest.mark.parametrize(("mark", "seconds", "code"), [("", 0, 0), ("", 0.3, 1), ("@pytest.mark.full", 0.3, 0)])
def test_a_unit_test_that_takes_long_fails_unless_marked(folder: Path, mark: str, seconds: float, code: int) -> None:
    """Guards the time that `make check` takes."""
    (folder / "conftest.py").write_text(
        "import cpu_limit\nfrom cpu_limit import pytest_runtest_call\ncpu_limit.LIMIT, cpu_limit.REFERENCE = 0.1, 60\n"
    )
    (folder / "test_it.py").write_text(
        f"import time, pytest\n\n{mark}\ndef test_it():\n    end = time.process_time() + {seconds}\n"
        "    while time.process_time() < end:\n        pass\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-W", "ignore::pytest.PytestUnknownMarkWarning"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert (done.returncode, "mark it `full`" in done.stdout) == (code, bool(code)), done.stdout
