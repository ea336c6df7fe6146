"""Page cache of files on this kernel: counted and evicted by their owner, by the program that nodes run."""

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from fakes.sh import Sh
from patience import wait_until
from sparkwright.domain.facts import Memory
from sparkwright.domain.host_facts import PageCache
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.memory import MEMORY, parse_cache
from sparkwright.remote.programs import evict_pages, measure

SIZE = 24 << 20


def counted(sh: Sh, command: object) -> PageCache:
    found = parse_cache(sh.run(command))  # type: ignore[arg-type]
    assert isinstance(found, PageCache), found
    return found


def resident(path: Path) -> int:
    """The resident pages by mincore, asked apart from the program under test."""
    libc = ctypes.CDLL(None)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        view = ctypes.c_char.from_buffer(mapped)
        states = ctypes.create_string_buffer(len(mapped) // mmap.PAGESIZE)
        assert libc.mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(len(mapped)), states) == 0
        del view
        return states.raw.count(b"\1") * mmap.PAGESIZE


@pytest.fixture
def hub_folder(node_shell: Sh) -> Path:
    """A hub entry of two shards, one of them through a link, whole in the page cache and dirty."""
    blobs, snapshot = node_shell.home / "hub/models--a--b/blobs", node_shell.home / "hub/models--a--b/snapshots/1"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name in ("one", "two"):
        (blobs / name).write_bytes(os.urandom(SIZE))
        (snapshot / f"{name}.safetensors").symlink_to(f"../../blobs/{name}")
    return node_shell.home / "hub"


def test_less_than_one_percent_stays_in_the_page_cache(node_shell: Sh, hub_folder: Path) -> None:
    """The owner's eviction must work without root, on dirty pages too, or a load begins with a full page cache."""
    blob = hub_folder / "models--a--b/blobs/one"
    before = counted(node_shell, measure([str(hub_folder)]))
    assert (before.files, before.cached) == (2, 2 * SIZE) and resident(blob) == SIZE
    found = counted(node_shell, evict_pages([str(hub_folder)]))
    assert (found.files, found.cached, found.unread) == (2, 2 * SIZE, 0)
    assert found.left < 0.01 * found.cached and resident(blob) < 0.01 * SIZE
    assert counted(node_shell, measure([str(hub_folder)])).cached == found.left


def test_eviction_ends_once_enough_is_free(node_shell: Sh, hub_folder: Path) -> None:
    """The model's own pages spare a read from disk: they stay where memory suffices without them."""
    assert counted(node_shell, evict_pages([str(hub_folder)], goal=1)).files == 0
    assert counted(node_shell, measure([str(hub_folder)])).cached == 2 * SIZE


def test_the_model_s_own_pages_are_evicted_last(node_shell: Sh, hub_folder: Path) -> None:
    """The model that is to be loaded goes only if the other one in the folder was not enough."""
    other = node_shell.home / "hub/other.bin"
    other.write_bytes(bytes(SIZE))
    found = counted(node_shell, evict_pages([str(hub_folder)], 1 << 60, str(hub_folder / "models--a--b/snapshots/1")))
    assert found.files == 3 and found.left < 0.01 * found.cached


def test_a_page_that_a_process_has_mapped_stays(node_shell: Sh, hub_folder: Path) -> None:
    """A page that an engine maps while it loads is never taken from it."""
    blob = hub_folder / "models--a--b/blobs/one"
    with blob.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        os.fdatasync(file.fileno())
        assert sum(mapped[:: mmap.PAGESIZE]) >= 0
        assert counted(node_shell, evict_pages([str(hub_folder)])).left >= SIZE


def test_what_cannot_be_opened_is_counted_apart(node_shell: Sh) -> None:
    """Devices, sockets, dangling links and folders that lead back to themselves end no eviction."""
    folder = node_shell.home / "odd"
    folder.mkdir()
    (folder / "loop").symlink_to(folder)
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    found = counted(node_shell, evict_pages([str(folder), str(node_shell.home / "absent")]))
    assert (found.files, found.cached) == (0, 0)


def test_the_size_of_a_page_is_this_kernel_s(node_shell: Sh) -> None:
    """The free blocks and MemFree give it only while nobody takes or frees gigabytes between the two reads, so one good
    look is enough."""

    seen: list[tuple[int, int]] = []

    def fits() -> bool:
        found = MEMORY.parse(node_shell.run(MEMORY.command))
        assert isinstance(found, Memory) and not isinstance(found, Unknown)
        assert found.page == mmap.PAGESIZE
        seen.append((found.free, found.in_blocks(1)))
        return found.free / 2 < found.in_blocks(1) < found.free * 1.05

    wait_until(fits, lambda: f"bytes in MemFree and in the free blocks: {seen[-5:]}")
