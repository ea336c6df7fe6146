"""Programs of the testbed's tools, and how an interrupt ends them."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier

import pytest

from testbed.shell import TestbedError, logged, run, run_to_end, together, wait_until


def test_an_interrupt_ends_what_all_threads_wait_for(tmp_path: Path) -> None:
    """Guards `make test` that is stopped while the testbed is built: a pool waits for its threads, those for minutes
    of mmdebstrap."""
    ended = list[str]()
    all_work = Barrier(4)  # work that has not begun is cancelled

    def work(kind: str) -> None:
        all_work.wait()
        try:
            if kind == "interrupted":
                read_pid(tmp_path / "pid")
                raise KeyboardInterrupt
            if kind == "program":
                logged(["sh", "-c", f"echo $$ >{tmp_path}/pid && exec sleep 1000"], tmp_path / "log")
            elif kind == "waits":
                wait_until(lambda: False, "the end of time", 1000)
            else:
                wait_for_interrupt()
                run(["touch", str(tmp_path / "begun")])
        except TestbedError as error:
            ended.append(str(error)[:11])

    with pytest.raises(KeyboardInterrupt):
        together(work, ("interrupted", "program", "waits", "late"))
    assert sorted(ended) == ["interrupted", "interrupted", "sh ended wi"] and not (tmp_path / "begun").exists()
    run(["true"])  # cleaning up goes on


def test_an_interrupt_while_work_is_handed_out_ends_what_has_begun(tmp_path: Path) -> None:
    """Guards an interrupt in the moment between two threads: the pool waited a quarter of an hour for the first."""

    def handed_out() -> Iterator[str]:
        yield f"echo $$ >{tmp_path}/pid && exec sleep 1000"
        read_pid(tmp_path / "pid")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        together(lambda script: run(["sh", "-c", script]), handed_out())
    assert not Path(f"/proc/{read_pid(tmp_path / 'pid')}/cmdline").exists()


def test_a_program_that_takes_too_long_leaves_no_pipe_open() -> None:
    """Guards a test of the nodes that failed for a pipe, now and then, when ssh did not answer."""
    gc.collect()  # it must not close an earlier test's descriptor in between
    before = sorted(os.listdir("/proc/self/fd"))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired) as late:
        run_to_end(["sleep", "100"], 0.05, "", text=True, **pipes)
    assert late.value.cmd == ["sleep", "100"] and sorted(os.listdir("/proc/self/fd")) == before


def wait_for_interrupt() -> None:
    try:
        wait_until(lambda: False, "the interrupt", 1000)
    except TestbedError:
        return


@pytest.mark.full
def test_a_signal_ends_a_build_at_once(tmp_path: Path) -> None:
    """Guards the same with a real SIGINT to a process whose threads run programs."""
    program = (
        "from testbed.shell import run, together\n"
        f"together(lambda n: run(['sh', '-c', f'echo $$ >{tmp_path}/{{n}} && exec sleep 1000']), (1, 2))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "tools")}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.DEVNULL)
    try:
        pids = [read_pid(tmp_path / name) for name in ("1", "2")]
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
    assert not [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists()]


def read_pid(path: Path) -> int:
    end = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(path.read_text())
