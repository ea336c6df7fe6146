"""Facts of a node's system besides the basics in domain/facts.py: settings, packages, activity, kernel log."""

import re
from collections.abc import Mapping

from sparkwright.domain.units import GIB, MIB
from sparkwright.domain.unknown import NOT_ASKED, Unknown
from sparkwright.domain.values import dataclass, field


@dataclass(frozen=True, slots=True)
class KernelNote:
    """Lines of this boot's kernel log that differ in nothing but numbers.

    text, latest: the first and the last of them, without time stamp and host. first, last: seconds after boot.
    """

    text: str
    count: int = 1
    first: float | None = None
    last: float | None = None
    latest: str = ""


@dataclass(frozen=True, slots=True)
class KernelLog:
    """lines: how many were read; notes: what may matter of them, in order (those of facts/kernel.py)."""

    lines: int
    notes: tuple[KernelNote, ...] = ()

    def matching(self, pattern: re.Pattern[str]) -> tuple[KernelNote, ...]:
        return tuple(note for note in self.notes if pattern.search(note.text))


@dataclass(frozen=True, slots=True)
class Package:
    """An installed Debian package; held: `apt` leaves it as it is."""

    name: str
    version: str
    held: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """rss: bytes; unit: the systemd unit that it belongs to, '' for none. Arguments are never read: they hold keys."""

    pid: int
    name: str
    rss: int
    user: str = ""
    unit: str = ""


LARGE_BLOCK = 16 * MIB
# After 7 days 118 GiB were available without one block of 32 MiB; drop and compact gave 55 of 16 MiB (880 MiB), which
# was not enough, a reboot was (sparkring 173). Another driver failed with 8.7 GiB free (MiaAI DeepSeek-v4.1-Flash 23).
_LARGE_LEAST, _PLENTY = GIB, 8 * GIB


@dataclass(frozen=True, slots=True)
class Memory:
    """All in bytes, from /proc/meminfo. unsure: how far off `available` may be where it is assumed.

    unaccounted: pages that no counter explains: with no CUDA process alive these are the driver-retained pool, which
    the next CUDA process can reuse.
    huge_pages, huge_free: the reserved pool of default-size huge pages and what of it is not in use.
    cma_total, cma_free: the contiguous allocator's; corrupted: pages taken out of use after a memory error. shmem: of
    `cached`, shared memory and tmpfs, which cannot be evicted. blocks: free blocks by order, of 2**order pages of
    `page` bytes each (/proc/buddyinfo), () when not known.
    """

    total: int
    free: int
    available: int
    cached: int
    swap_total: int
    swap_free: int
    unaccounted: int
    huge_pages: int = 0
    huge_free: int = 0
    cma_total: int = 0
    cma_free: int = 0
    corrupted: int = 0
    unsure: int = 0
    blocks: tuple[int, ...] = ()
    page: int = 4096
    shmem: int = 0

    @property
    def page_cache(self) -> int:
        """Bytes that an eviction may give."""
        return max(0, self.cached - self.shmem)

    def in_blocks(self, size: int) -> int:
        """Bytes free in blocks of at least `size`, or of the kernel's largest where that is smaller."""
        sizes = [self.page << order for order in range(len(self.blocks))]
        least = min(size, sizes[-1]) if sizes else size
        return sum(one * count for one, count in zip(sizes, self.blocks, strict=True) if one >= least)

    @property
    def fragmented(self) -> bool:
        """Plenty is free, and the GPU driver finds no large block in it."""
        return bool(self.blocks) and self.free >= _PLENTY and self.in_blocks(LARGE_BLOCK) < _LARGE_LEAST


@dataclass(frozen=True, slots=True)
class PageCache:
    """Files in the page cache, bytes: cached before and left after an eviction; free: MemFree after it.

    unread: files that the ssh user may not open.
    """

    files: int
    cached: int
    left: int
    free: int
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    """swapped_in, swapped_out: pages within `seconds`. stall_some, stall_full: percent of the last 10 s in which some
    or all tasks waited for memory (PSI). oom_kills: since boot. processes: the biggest, biggest first."""

    swapped_in: int | Unknown = NOT_ASKED
    swapped_out: int | Unknown = NOT_ASKED
    stall_some: float | Unknown = NOT_ASKED
    stall_full: float | Unknown = NOT_ASKED
    oom_kills: int | Unknown = NOT_ASKED
    processes: tuple[Process, ...] | Unknown = NOT_ASKED
    seconds: float = 0.4


@dataclass(frozen=True, slots=True)
class Times:
    """now: seconds since the epoch by the node's own clock. ntp: a service is set to keep it; synchronized: it does.

    unclean: the previous boot ended without a shutdown.
    """

    now: float | Unknown
    uptime: float | Unknown = NOT_ASKED
    synchronized: bool | Unknown = NOT_ASKED
    ntp: bool | Unknown = NOT_ASKED
    unclean: bool | Unknown = NOT_ASKED


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit: load is loaded, masked or not-found; active is active, inactive, failed; enabled as printed."""

    name: str
    load: str
    active: str
    enabled: str = ""
    says: str = ""  # the service's own text about what it does


@dataclass(frozen=True, slots=True)
class HardwareWatchdog:
    """The timer that resets a machine which no longer answers it, and whether systemd answers it.

    device: its /dev name, '' without one; driver: the kernel module of a timer that is there without one. active: it
    counts now. systemd: its RuntimeWatchdogUSec as printed (`2min`, `0`). has_reset: it ended the boot before this one.
    """

    device: str = ""
    identity: str = ""
    driver: str = ""
    active: bool | Unknown = NOT_ASKED
    timeout: int | Unknown = NOT_ASKED
    systemd: str | Unknown = NOT_ASKED
    has_reset: bool = False

    @property
    def armed(self) -> bool | None:
        """None if it is not known."""
        if not self.device:
            return False
        if isinstance(self.active, Unknown):
            return None if isinstance(self.systemd, Unknown) else self.systemd not in _OFF
        return self.active


_OFF = ("", "0", "infinity")


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The setup and maintenance state of a node's system.

    sysctls: `vm.swappiness` -> `60`. memlock: KiB that a login may lock, None for no limit. target: what is booted to.
    reboot_for: packages that wait for a reboot. host_keys: fingerprints of the ssh host keys (`SHA256:...`).
    wifi: the interface of the default route when it is a wireless one; power_save: its own setting.
    """

    sysctls: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    memlock: int | Unknown | None = NOT_ASKED
    target: str = ""
    reboot_needed: bool = False
    reboot_for: tuple[str, ...] = ()
    locale: str = ""
    grub_timeout: int | Unknown = NOT_ASKED
    host_keys: tuple[str, ...] = ()
    wifi: str = ""
    power_save: bool | Unknown = NOT_ASKED
    watchdog: HardwareWatchdog | Unknown = NOT_ASKED

    def active(self, unit: str) -> bool:
        return unit in self.units and self.units[unit].active == "active"

    def sysctl(self, name: str) -> int | None:
        """The value as a whole number, None when it is none or is not known."""
        value = self.sysctls.get(name, "")
        return int(value) if re.fullmatch(r"[0-9]{1,18}", value, re.ASCII) else None


@dataclass(frozen=True, slots=True)
class Library:
    """libcuda as programs find it: the file behind the link, and its bytes. version: of its name, '' without one."""

    path: str
    size: int
    version: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """Firmware, sensors and what the driver has put onto the disk.

    bios, ec: versions, '' when unknown. zones: thermal zone -> °C, the hottest of those with one name.
    nvidia: NVIDIA's PCI functions, address -> `10de:2e12`. devices: those of /dev/nvidia* that are there.
    module: the version of the driver that the next boot loads. drm: lines of /etc/modprobe.d about nvidia-drm, with
    their files. modeset: its value now, only readable as root.
    """

    bios: str = ""
    bios_date: str = ""
    ec: str = ""
    zones: Mapping[str, float] = field(default_factory=dict)
    nvidia: Mapping[str, str] | Unknown = NOT_ASKED
    devices: tuple[str, ...] | Unknown = NOT_ASKED
    libcuda: Library | Unknown = NOT_ASKED
    module: str | Unknown = NOT_ASKED
    drm: tuple[str, ...] = ()
    modeset: bool | Unknown = NOT_ASKED
