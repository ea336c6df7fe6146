"""The program that guards a node's memory while weights load, on this kernel."""

import fcntl
import json
import os
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fakes.sh import Sh
from patience import wait_until
from sparkwright.domain.command import Command
from sparkwright.domain.host_facts import PageCache
from sparkwright.domain.sample import LoadSample
from sparkwright.facts.memory import parse_cache
from sparkwright.facts.sample import parse_load
from sparkwright.remote.host import script
from sparkwright.remote.programs import Floors, guard_node, leave_guard, measure

SIZE = 8 << 20
EVERYTHING = 1 << 60
SHORT = 300  # bytes of a guard's command line: what `ps` shows to a person


@contextmanager
def guarding(sh: Sh, soft: int, hard: int, folder: Path) -> Iterator[Iterator[LoadSample]]:
    """The guard's output, line by line; its stop makes a file `stopped` in the node's home."""
    stop = script('echo stopped > "$1"', str(sh.home / "stopped"))
    command = guard_node(Floors(soft, hard), [str(folder)], stop, every=0.05)
    process = sh.start(command)
    assert process.stdin and process.stdout
    try:
        process.stdin.write((command.stdin or b"").decode())
        process.stdin.close()
        process.stdin = None
        yield (found for line in process.stdout if (found := parse_load(line)))
    finally:
        sh.end(process)


@pytest.fixture
def model_folder(node_shell: Sh) -> Path:
    folder = node_shell.home / "models/m"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(SIZE))
    return folder


def write_back(folder: Path) -> None:
    """Write the model to the disk: the kernel drops no page that is not there yet."""
    with folder.joinpath("model.safetensors").open("rb") as file:
        os.fdatasync(file.fileno())


def cached(sh: Sh, folder: Path) -> int:
    found = parse_cache(sh.run(measure([str(folder)])))
    assert isinstance(found, PageCache)
    return found.cached


def test_samples_are_those_of_the_kernel(node_shell: Sh, model_folder: Path) -> None:
    """Free, available and large blocks are read once a period, and nothing is evicted above the floors."""
    with guarding(node_shell, 0, 0, model_folder) as samples:
        first, second = next(samples), next(samples)
    text = Path("/proc/meminfo").read_text()
    total = int(next(line for line in text.splitlines() if line.startswith("MemTotal")).split()[1]) * 1024
    assert 0 < first.free <= total and 0 < first.available <= total and 0 <= first.large <= first.free
    assert second.at > first.at and first.freed == 0 and not first.stop
    assert cached(node_shell, model_folder) == SIZE


def test_below_the_soft_floor_the_model_s_pages_are_evicted(node_shell: Sh, model_folder: Path) -> None:
    """Page cache that the load leaves behind goes while it loads; the rank is not stopped for it."""
    write_back(model_folder)
    with guarding(node_shell, EVERYTHING, 0, model_folder) as samples:
        assert not any(next(samples).stop for _ in range(3))
    assert cached(node_shell, model_folder) == 0


class ShortNode(Sh):
    """A node whose kernel reclaims memory up to a level that is far above all that there is."""

    @property
    def environ(self) -> dict[str, str]:
        root = self.home / "root"
        (root / "proc").mkdir(parents=True, exist_ok=True)
        (root / "proc/meminfo").write_text("MemFree: 1000 kB\nMemAvailable: 900000 kB\n")
        zone = "Node 0, zone Normal\n  pages free 250\n        min 50\n        high 1000\n  pagesets\n    high: 9\n"
        (root / "proc/zoneinfo").write_text(zone)
        return {**super().environ, "SPARKWRIGHT_SYSROOT": str(root)}


def test_pages_go_before_the_kernel_reclaims_memory_itself(node_shell: Sh, model_folder: Path) -> None:
    """A floor below the kernel's high watermark would never be reached: it has evicted programs by then."""
    write_back(model_folder)
    with guarding(ShortNode(node_shell.home), 1, 0, model_folder) as samples:
        assert [next(samples).free for _ in range(3)] == [1000 * 1024] * 3
    assert cached(node_shell, model_folder) == 0


def test_below_the_hard_floor_the_rank_is_stopped_here_and_at_once(node_shell: Sh, model_folder: Path) -> None:
    """The node stops its own rank: nobody has to reach it first, and the reason is printed before."""
    with guarding(node_shell, EVERYTHING, EVERYTHING, model_folder) as samples:
        found = list(samples)
    assert [one.stop for one in found] == ["", "memory"] and found[0].available > 0
    assert (node_shell.home / "stopped").read_text() == "stopped\n"


@contextmanager
def guard_process(node: Sh, command: Command) -> Iterator[tuple[int, Iterator[LoadSample]]]:
    """The guard's process, and its output line by line."""
    process = node.start(command)
    assert process.stdin and process.stdout
    try:
        process.stdin.write((command.stdin or b"").decode())
        process.stdin.close()
        process.stdin = None
        yield process.pid, (found for line in process.stdout if (found := parse_load(line)))
    finally:
        node.end(process)


def test_a_guard_that_hangs_is_ended_and_named(node_shell: Sh, model_folder: Path) -> None:
    """A guard that is stopped (SIGSTOP) or waits in the kernel: a new one samples, and stops the rank where it must."""
    node, stop = ShortNode(node_shell.home), script('echo stopped > "$1"', str(node_shell.home / "stopped"))
    command = guard_node(Floors(0, 400_000_000), [str(model_folder)], stop, 0.05, patience=4.0)
    with guard_process(node, command) as (parent, lines):
        assert next(lines).available
        (child,) = children_of(parent)
        os.kill(child, signal.SIGSTOP)
        assert next(one.hung for one in lines if one.hung) == 4.0
        assert not Path(f"/proc/{child}").exists()
        assert next(lines).available
        (node.home / "root/proc/meminfo").write_text("MemFree: 1000 kB\nMemAvailable: 1000 kB\n")
        assert next(one.stop for one in lines if one.stop) == "memory"
        wait_for((node_shell.home / "stopped").exists)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_guard_whose_parent_ends_does_so_too(node_shell: Sh, model_folder: Path, how: signal.Signals) -> None:
    """No guard is left that nobody watches: it might hang for ever."""
    with guard_process(node_shell, guard_node(Floors(0, 0), [str(model_folder)], script("true"), 0.05)) as (
        parent,
        lines,
    ):
        assert next(lines).available
        (child,) = children_of(parent)
        os.kill(parent, how)
        wait_for(lambda: state_of(child) in ("", "Z"))


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def state_of(pid: int) -> str:
    """The process's state as `ps` shows it; "" if there is no such process."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def test_a_guard_whose_lines_nobody_reads_stops_the_rank(node_shell: Sh, model_folder: Path) -> None:
    """Ctrl-Z on `up`, or a client that hangs: the pipe fills, and the guard goes on looking."""
    node = ShortNode(node_shell.home)
    command = guard_node(
        Floors(0, 400_000_000),
        [str(model_folder)],
        script('echo stopped > "$1"', str(node_shell.home / "stopped")),
        0.001,
    )
    process = node.start(command)
    assert process.stdin and process.stdout
    try:
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        process.stdin.write((command.stdin or b"").decode())
        process.stdin.close()
        process.stdin = None
        wait_for(lambda: waiting(process.stdout.fileno()) > 3800)
        (node_shell.home / "root/proc/meminfo").write_text("MemFree: 1000 kB\nMemAvailable: 1000 kB\n")
        wait_for((node_shell.home / "stopped").exists)
    finally:
        node_shell.end(process)


def waiting(fd: int) -> int:
    """Bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), "little")


def test_a_floor_of_nothing_stops_nothing(node_shell: Sh, model_folder: Path) -> None:
    """A plan that leaves nothing known has no hard floor: a guard set too high kills healthy loads."""
    with guarding(node_shell, EVERYTHING, 0, model_folder) as samples:
        assert not any(next(samples).stop for _ in range(5))
    assert not (node_shell.home / "stopped").exists()


@pytest.mark.parametrize("short", [True, False])
def test_a_guard_that_nobody_follows_stops_the_rank_or_ends_with_it(
    node_shell: Sh, model_folder: Path, short: bool
) -> None:
    """A start that was detached is guarded too; the curve and the reason stay, and no process does."""
    rank, log = subprocess.Popen(["sleep", "600"]), node_shell.home / "rank0/stopped.jsonl"
    until = script('while kill -0 "$1" 2>/dev/null; do sleep 0.02; done', str(rank.pid))
    stop = script('kill "$1"', str(rank.pid))
    done = node_shell.run(
        leave_guard(Floors(EVERYTHING, EVERYTHING if short else 0), [str(model_folder)], stop, until, str(log))
    )
    assert done.ok, done.stderr
    try:
        if not short:
            wait_for(lambda: any(len(words) < SHORT for words in guards(node_shell.home)))
            rank.kill()
        rank.wait(60)
        wait_for(lambda: not guards(node_shell.home))
    finally:
        rank.kill()
        rank.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    assert [one.get("stop") for one in lines] == ([None, "memory"] if short else [])


def guards(home: Path) -> list[bytes]:
    """The command lines of guards whose home is that folder. A shell that has just been forked to become one still has
    the long one of its parent."""
    found = [(words_of(path), words_of(path.parent / "environ")) for path in Path("/proc").glob("[0-9]*/cmdline")]
    return [words for words, environ in found if f"HOME={home}".encode() in environ and b"guard" in words]


def words_of(path: Path) -> bytes:
    """b"" where the process has ended meanwhile."""
    with suppress(OSError):
        return path.read_bytes()
    return b""


def wait_for(condition: Callable[[], bool]) -> None:
    wait_until(condition, poll=0.01)


@pytest.mark.parametrize(
    "line",
    ["", "sh: python3: not found", "[]", '{"stop": "rm -rf"}', '{"at": 1, "free": 2}', '{"at": [], "free": 1}',
     '{"at": 1, "free": 1e300, "available": 1}', '{"at": 1,' * 500],
)  # fmt: skip
def test_odd_lines_are_no_samples(line: str) -> None:
    """A node's line is checked before it is used."""
    assert parse_load(line) is None
