"""Shared memory of killed engines, on a real /dev/shm: removed if it is ours and nobody uses it."""

import mmap
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.sh import Sh
from sparkwright.engines.catalog import leavings
from sparkwright.remote.leftovers import remove_leftovers

SHM = Path("/dev/shm")
HOLDS = (
    "import mmap, sys\nf = open(sys.argv[1], 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nf.close()\nprint()\nsys.stdin.read()"
)


@pytest.fixture
def region() -> Iterator[Path]:
    path = SHM / f"vllm_offload_{uuid.uuid4()}.mmap"
    path.write_bytes(bytes(mmap.PAGESIZE))
    yield path
    path.unlink(missing_ok=True)


def rank_folder(sh: Sh, *lines: str) -> Path:
    """The folder of a rank that has printed these lines."""
    folder = sh.home / "state/deployments/twin/rank0"
    folder.mkdir(parents=True)
    (folder / "log").write_text("".join(f"{line}\n" for line in lines))
    return folder


def run_for(sh: Sh, folder: Path, label: str = "vllm 0.33.0") -> list[str]:
    done = sh.run(remove_leftovers(leavings(label), "process", [str(folder)]))
    assert done.ok, done.stderr
    return done.stdout.splitlines()


def test_what_a_killed_rank_left_is_removed(node_shell: Sh, region: Path) -> None:
    """Guards 14 GB that the next start of a node would lack: the rank's own log names the file."""
    folder = rank_folder(
        node_shell,
        f"(EngineCore pid=28330) INFO [shared_offload_region.py:177] Created mmap file {region} (13.96 GB)",
        f"INFO Opened existing mmap file {region}",
    )
    assert run_for(node_shell, folder) == [f"removed {mmap.PAGESIZE} {region}"]
    assert not region.exists() and run_for(node_shell, folder) == []


def test_what_a_process_has_mapped_stays(node_shell: Sh, region: Path) -> None:
    """Guards an engine that outlived its leader, and another one that took the file over."""
    folder = rank_folder(node_shell, f"Created mmap file {region} (13.96 GB)")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(region)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout and holder.stdout.readline()
        assert run_for(node_shell, folder) == [f"used {mmap.PAGESIZE} {region}"] and region.exists()
        assert holder.stdin
        holder.stdin.close()
    assert run_for(node_shell, folder) == [f"removed {mmap.PAGESIZE} {region}"]


def test_what_is_open_without_a_map_stays(node_shell: Sh, region: Path) -> None:
    """Guards the moment between the two."""
    folder = rank_folder(node_shell, f"Created mmap file {region} (13.96 GB)")
    with region.open("rb"):
        assert run_for(node_shell, folder) == [f"used {mmap.PAGESIZE} {region}"]


def test_nothing_else_is_touched(node_shell: Sh, region: Path) -> None:
    """Guards files of others: what no log of the rank names, other names, a link, and a path that a client wrote."""
    target = node_shell.home / "mine"
    target.write_text("x")
    link = SHM / f"vllm_offload_{uuid.uuid4()}.mmap"
    link.symlink_to(target)
    try:
        folder = rank_folder(
            node_shell, f"Created mmap file {link}", f"/dev/shm/vllm_offload_/../..{target}.mmap", str(target)
        )
        assert run_for(node_shell, folder) == [] and region.exists() and target.exists()
    finally:
        link.unlink()


def test_engines_that_leave_nothing_are_not_asked() -> None:
    """Guards a pattern that would fit all: an empty one is no question."""
    assert leavings("llama-cpp b7000") == leavings("nobodys 1") == leavings("") == ""
