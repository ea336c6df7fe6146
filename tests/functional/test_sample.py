"""The sampling script run by this machine's own sh: on the real machine, and on the tree of a simulated node."""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fakes.sh import SHELLS, Sh
from patience import wait_until
from sparkwright.domain.facts import Memory
from sparkwright.domain.sample import GpuSample, PortTraffic, Sample
from sparkwright.domain.unknown import Unknown
from sparkwright.facts import sample
from sparkwright.facts.sample import Samples, parse
from sparkwright.simulator.nodes import make_cluster

_ROW = "54 %, 31 %, 41.20 W, 2405 MHz, 63"


@dataclass(frozen=True)
class SampledNode(Sh):
    """This machine as itself, or with `env` as another one."""

    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        return super().environ | dict(self.env)


@pytest.fixture(params=SHELLS)
def local_node(request: pytest.FixtureRequest, tmp_path: Path) -> SampledNode:
    return SampledNode(tmp_path, request.param)


@pytest.fixture(params=SHELLS)
def simulated_node(request: pytest.FixtureRequest, tmp_path: Path) -> SampledNode:
    """A simulated node with a kernel log, RDMA counters, and a GPU that works."""
    made = make_cluster(tmp_path / "cluster").nodes[0]
    node = SampledNode(tmp_path, request.param, dict(made.env))
    root = Path(node.env["SPARKWRIGHT_SYSROOT"])
    counters = root / "sys/class/infiniband/rocep1s0f0/ports/1/counters"
    counters.mkdir(parents=True)
    (counters / "port_xmit_data").write_text("1000\n")
    (counters / "port_rcv_data").write_text("2000\n")
    (root / "var/log").mkdir(parents=True)
    (root / "var/log/dmesg").write_text("[ 1.0] NVRM: Xid (PCI:000f:01:00): 43, from the boot before\n")
    return node


def write_smi(node: SampledNode, script: str) -> None:
    program = Path(node.env["PATH"].partition(":")[0]) / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")


@contextlib.contextmanager
def stream(
    node: SampledNode, every: float, gpu_every: float = 1.0
) -> Iterator[tuple[subprocess.Popen[str], Callable[[], Sample]]]:
    """The running script and the next of its samples, at most a minute away."""
    process, samples = node.start(sample.follow(every, gpu_every)), Samples()
    assert process.stdout is not None
    waiting = selectors.DefaultSelector()
    waiting.register(process.stdout, selectors.EVENT_READ)
    os.set_blocking(process.stdout.fileno(), False)
    lines: list[str] = []
    rest = ""

    def following() -> Sample:
        nonlocal rest
        until = time.monotonic() + 60
        while time.monotonic() < until:
            while lines:
                if found := samples.feed(lines.pop(0)):
                    return found
            waiting.select(0.2)
            with contextlib.suppress(BlockingIOError, TypeError):
                *new, rest = (rest + os.read(process.stdout.fileno(), 65536).decode()).split("\n")  # type: ignore[union-attr]
                lines.extend(new)
        raise AssertionError("no sample within 60 s")

    try:
        yield process, following
    finally:
        waiting.close()
        node.end(process)


def group_pids(leader: int) -> list[int]:
    """Processes of the leader's group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == leader and fields[0] != "Z":
                found.append(int(folder.name))
    return found


def is_at_end(leader: int, file: Path) -> bool:
    """True once a process of the leader's group has the file open and stands at its end."""
    for pid in group_pids(leader):
        with contextlib.suppress(OSError):
            for fd in Path(f"/proc/{pid}/fd").iterdir():
                position = Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text().split()[1]
                if os.path.samefile(fd, file) and int(position) == file.stat().st_size:
                    return True
    return False


def test_this_machine_is_sampled_again_and_again(local_node: SampledNode) -> None:
    """Real memory, a boot marker that stays, times that go on; what is not there is Unknown."""
    with stream(local_node, 0.3) as (_, following):
        found = [following() for _ in range(3)]
    assert all(isinstance(one.memory, Memory) and one.memory.available > 0 for one in found)
    assert len({one.boot for one in found}) == 1
    assert len(found[0].boot) > 36
    assert found[0].at < found[1].at < found[2].at
    if not shutil.which("nvidia-smi"):
        assert isinstance(found[-1].gpu, Unknown)


def test_one_look_without_the_gpu(local_node: SampledNode) -> None:
    """The same words as the stream's, from a command that ends."""
    found = parse(local_node.run(sample.memory()))
    assert isinstance(found, Sample)
    assert isinstance(found.memory, Memory)


def test_it_costs_next_to_nothing(local_node: SampledNode, tmp_path: Path) -> None:
    """A block starts a handful of programs, about a hundredth of what a core starts in the five seconds of a block."""
    shims, started = tmp_path / "shims", tmp_path / "started"
    shims.mkdir()
    for name in ("awk", "cat", "cut", "date", "grep", "head", "sed", "sleep", "stat", "tr"):
        (shims / name).write_text(f'#!/bin/sh\necho {name} >>{started}\nexec {shutil.which(name)} "$@"\n')
        (shims / name).chmod(0o755)
    with stream(replace(local_node, env={"PATH": f"{shims}:{os.environ['PATH']}"}), 0.2) as (_, following):
        for _ in range(8):
            following()
    names = started.read_text().split()
    assert 0 < len(names) <= 7 * names.count("date"), "a block reads the clock once"


@pytest.fixture
def without_nohup() -> Iterator[None]:
    """A shell cannot trap what was ignored when it began, and tests may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("without_nohup")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_stays_when_it_is_ended(simulated_node: SampledNode, how: signal.Signals) -> None:
    """Neither the readers in the background nor what they started."""
    with stream(simulated_node, 500.0) as (process, following):
        following()
        wait_until(lambda: len(group_pids(process.pid)) > 4)
        os.kill(process.pid, how)
        wait_until(lambda: not group_pids(process.pid), lambda: str(group_pids(process.pid)))


def test_a_reader_that_goes_away_ends_it(simulated_node: SampledNode) -> None:
    """A connection that is lost leaves no loop behind on the node."""
    with stream(simulated_node, 0.2) as (process, following):
        following()
        assert process.stdout is not None
        process.stdout.close()
        wait_until(lambda: not group_pids(process.pid), lambda: str(group_pids(process.pid)))
        process.stdout = None


def test_a_nodes_own_figures_are_read(simulated_node: SampledNode) -> None:
    """GPU, RDMA counters as they move, and kernel lines that are new; old ones and idle talk are not."""
    write_smi(simulated_node, f'case "$*" in *compute-apps*) echo 4711 ;; *) echo "{_ROW}" ;; esac')
    root = Path(simulated_node.env["SPARKWRIGHT_SYSROOT"])
    with stream(simulated_node, 0.3) as (process, following):
        seen = [following()]
        while not isinstance(seen[-1].gpu, GpuSample) or not seen[-1].gpu.pids:
            seen.append(following())
        wait_until(lambda: is_at_end(process.pid, root / "var/log/dmesg"), "the reader of the kernel's log")
        with (root / "var/log/dmesg").open("a") as log:
            log.write("[ 99.0] usb 1-1: new device\n[ 99.1] NVRM: Xid (PCI:000f:01:00): 79, fallen off the bus\n")
        (root / "sys/class/infiniband/rocep1s0f0/ports/1/counters/port_xmit_data").write_text("5000\n")
        while not seen[-1].kernel:
            seen.append(following())
        seen.append(following())
    last = seen[-1]
    assert isinstance(last.gpu, GpuSample)
    assert replace(last.gpu, pids=()) == GpuSample(54.0, 31.0, 41.2, 2405.0, 63.0, ())
    assert last.gpu.pids == (4711,)
    assert seen[0].ports == (PortTraffic("rocep1s0f0/1", 1000, 2000),)
    assert last.ports == (PortTraffic("rocep1s0f0/1", 5000, 2000),)
    told = [line for one in seen for line in one.kernel]
    assert told == ["[ 99.1] NVRM: Xid (PCI:000f:01:00): 79, fallen off the bus"]


def test_a_driver_that_hangs_holds_nothing_up(simulated_node: SampledNode) -> None:
    """nvidia-smi has been seen to block for minutes: memory is reported all the same, the GPU is
    not."""
    write_smi(simulated_node, "exec sleep 600")
    with stream(simulated_node, 0.2) as (_, following):
        found = [following() for _ in range(5)]
    assert found[-1].at - found[0].at < 15, "one wait for the driver takes the 20 s of `timeout`"
    assert isinstance(found[-1].memory, Memory)
    assert isinstance(found[-1].gpu, Unknown)
    assert isinstance(parse(simulated_node.run(sample.memory())), Sample)
