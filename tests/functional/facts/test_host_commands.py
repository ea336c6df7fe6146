"""The scripts that ask for a node's system, run by this machine's own sh on fixture trees and on the real machine."""

import time
from pathlib import Path

import pytest

from functional.facts.shell import SHELLS, path_with_tool, read_fact, run, write_files
from sparkwright.domain.facts import Unknown
from sparkwright.domain.host_facts import Activity, Board, HardwareWatchdog, KernelLog, Times, Upkeep
from sparkwright.domain.sample import Sample
from sparkwright.facts import sample
from sparkwright.facts.fact import Fact
from unit.facts.subjects import ALL_FACTS

HOST_FACTS = ("kernel_log", "activity", "times", "packages", "upkeep", "board")
WATCHDOG = "sys/class/watchdog/watchdog0"
LOG = """\
[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x410fd4f0]
[    0.000000] Kernel command line: BOOT_IMAGE=/boot/vmlinuz driver_async_probe=mlx5_core
[    3.312611] NVRM: loading NVIDIA Open GPU Kernel Module for aarch64  580.159.03  Release Build
[    4.000001] mlx5_core 0000:01:00.0: firmware version: 28.45.4028
[    4.000002] mlx5_core 0000:01:00.1: firmware version: 28.45.4028
[   12.345678] NVRM: Xid (PCI:000f:01:00): 119, pid=1, Timeout after 6s of waiting for RPC response from GPU0 GSP!
[   13.345678] NVRM: Xid (PCI:000f:01:00): 119, pid=977, Timeout after 6s of waiting for RPC response from GPU0 GSP!
[   14.345678] NVRM: Xid (PCI:000f:01:00): 43, pid=977, name=python3
[   20.000000] audit: type=1400 apparmor="STATUS"
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_kernel_log_is_digested_on_the_node(tmp_path: Path, shell: str) -> None:
    """Guards that what cannot matter stays there, that like lines are counted, and that each Xid is recognized by
    number."""
    write_files(tmp_path, {"var/log/dmesg": LOG})
    command = ALL_FACTS["kernel_log"].command
    words = (shell, "sh") if shell == "busybox" else (shell,)
    asked = type(command)((*words, *command.argv[1:]))
    found = ALL_FACTS["kernel_log"].read(run(asked, SPARKWRIGHT_SYSROOT=str(tmp_path)))
    assert isinstance(found, KernelLog)
    assert found.lines == 9
    assert [(note.count, note.first, note.last) for note in found.notes] == [
        (1, 3.312611, 3.312611),
        (2, 4.000001, 4.000002),
        (2, 12.345678, 13.345678),
        (1, 14.345678, 14.345678),
    ]


def test_a_flood_of_lines_stays_small(tmp_path: Path) -> None:
    """Guards that a driver that writes without end, and one line after another of its own kind, cost little."""
    same = "".join(f"[{n}.000000] NVRM: value {n} at 0x{n:x} is bad\n" for n in range(20_000))
    words = "".join(f"[{n}.000000] NVRM: {'abcdefghij'[n % 10] * (n // 10 + 1)}\n" for n in range(1_000))
    write_files(tmp_path, {"var/log/dmesg": same + words})
    done = run(ALL_FACTS["kernel_log"].command, SPARKWRIGHT_SYSROOT=str(tmp_path))
    found = ALL_FACTS["kernel_log"].read(done)
    assert isinstance(found, KernelLog)
    assert (found.lines, len(found.notes), found.notes[0].count) == (21_000, 400, 20_000)
    assert len(done.stdout) < 400_000


def test_journal_is_asked_before_the_ring_and_nothing_is_no_log(tmp_path: Path) -> None:
    """Guards that a user without rights for the journal falls back to dmesg, and without both is reported as such."""
    bin_ = tmp_path / "bin"
    path_with_tool(bin_, "sudo", "exit 1")
    path_with_tool(bin_, "journalctl", "exit 1")
    path = path_with_tool(bin_, "dmesg", "echo '[ 1.5] NVRM: from the ring'")
    found = read_fact(ALL_FACTS["kernel_log"], PATH=path)
    assert isinstance(found, KernelLog)
    assert [note.text for note in found.notes] == ["NVRM: from the ring"]
    path_with_tool(bin_, "journalctl", "echo '[ 1.5] host kernel: NVRM: from the journal'")
    found = read_fact(ALL_FACTS["kernel_log"], PATH=path)
    assert isinstance(found, KernelLog)
    assert [note.text for note in found.notes] == ["NVRM: from the journal"]
    path_with_tool(bin_, "journalctl", "exit 1")
    path_with_tool(bin_, "dmesg", "echo 'Operation not permitted' >&2; exit 1")
    assert isinstance(read_fact(ALL_FACTS["kernel_log"], PATH=path), Unknown)


def test_board_is_read_from_its_tree(tmp_path: Path) -> None:
    """Guards that sensors, PCI functions, device nodes and the driver's files are found where DGX OS has them."""
    gpu, lib = "sys/bus/pci/devices/000f:01:00.0", "usr/lib/aarch64-linux-gnu"
    files = {f"{gpu}/vendor": "0x10de\n", f"{gpu}/device": "0x2e12\n", "dev/nvidiactl": "", "dev/nvidia0": ""}
    files |= {"sys/class/thermal/thermal_zone0/type": "acpitz\n", "sys/class/thermal/thermal_zone0/temp": "61200\n"}
    files |= {"sys/class/dmi/id/bios_version": "5.36\n", f"{lib}/libcuda.so.580.142": "x" * 1234}
    files |= {"etc/modprobe.d/zz.conf": "# options nvidia-drm modeset=1\noptions nvidia-drm modeset=0\n"}
    write_files(tmp_path, files | {"sys/module/nvidia_drm/parameters/modeset": "N\n"})
    (tmp_path / lib / "libcuda.so.1").symlink_to("libcuda.so.580.142")
    found = read_fact(ALL_FACTS["board"], SPARKWRIGHT_SYSROOT=str(tmp_path))
    assert isinstance(found, Board)
    assert (found.bios, found.zones, found.nvidia) == ("5.36", {"acpitz": 61.2}, {"000f:01:00.0": "10de:2e12"})
    assert found.devices == ("nvidia0", "nvidiactl")
    assert getattr(found.libcuda, "size", 0) == 1234
    assert getattr(found.libcuda, "version", "") == "580.142"
    assert [line.rpartition(":")[2] for line in found.drm] == ["options nvidia-drm modeset=0"]
    assert found.modeset is False


def test_upkeep_is_read_from_its_tree(tmp_path: Path) -> None:
    """Guards that settings come from the tree alone, where there is one: its machine is not the one that plays it."""
    files = {"proc/sys/vm/min_free_kbytes": "67584\n", "etc/default/grub": "GRUB_TIMEOUT=0\nGRUB_DEFAULT=0\n"}
    route = "Iface\tDestination\tGateway\nwlP9s9\t00000000\t0100A8C0\n"
    write_files(
        tmp_path,
        files | {"proc/net/route": route, "run/reboot-required.pkgs": "linux-base\n", "run/reboot-required": ""},
    )
    found = read_fact(ALL_FACTS["upkeep"], SPARKWRIGHT_SYSROOT=str(tmp_path))
    assert isinstance(found, Upkeep)
    assert (found.sysctl("vm.min_free_kbytes"), found.sysctl("vm.swappiness")) == (67584, None)
    assert (found.grub_timeout, found.reboot_for, found.wifi) == (0, ("linux-base",), "wlP9s9")
    assert (found.units, found.host_keys, isinstance(found.memlock, Unknown)) == ({}, (), True)


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        ({"dev/watchdog0": "", f"{WATCHDOG}/identity": "SBSA Generic Watchdog\n", f"{WATCHDOG}/state": "active\n",
          f"{WATCHDOG}/timeout": "120\n", f"{WATCHDOG}/bootstatus": "32\n"},
         ("watchdog0", "SBSA Generic Watchdog", "", True, True)),
        ({"dev/watchdog0": "", f"{WATCHDOG}/state": "inactive\n", f"{WATCHDOG}/bootstatus": "0\n"},
         ("watchdog0", "", "", False, False)),
        ({"sys/bus/platform/devices/sbsa-gwdt.0/uevent": ""}, ("", "", "sbsa_gwdt", False, False)),
        ({"sys/bus/pci/devices/0000:00:05.0/device": "0x25ab\n"}, ("", "", "i6300esb", False, False)),
        ({"dev/watchdog0": "", f"{WATCHDOG}/state": "odd\n", f"{WATCHDOG}/bootstatus": "many\n"},
         ("watchdog0", "", "", None, False)),
        ({}, ("", "", "", False, False)),
    ],
)  # fmt: skip
def test_a_watchdog_is_read_from_its_tree(tmp_path: Path, files: dict[str, str], shown: tuple[object, ...]) -> None:
    """Guards the device, a timer whose driver Ubuntu does not load, whether it counts, and who ended the last boot."""
    write_files(tmp_path, {"proc/sys/vm/swappiness": "60\n", "proc/sys/kernel/random/boot_id": "a\n"} | files)
    found = read_fact(ALL_FACTS["upkeep"], SPARKWRIGHT_SYSROOT=str(tmp_path))
    assert isinstance(found, Upkeep) and isinstance(found.watchdog, HardwareWatchdog)
    dog = found.watchdog
    assert (dog.device, dog.identity, dog.driver, dog.armed, dog.has_reset) == shown
    sampled = read_fact(Fact(sample.memory(), sample.parse), SPARKWRIGHT_SYSROOT=str(tmp_path))
    assert isinstance(sampled, Sample) and sampled.was_reset == shown[-1]


def test_packages_on_hold_come_from_dpkg_itself(tmp_path: Path) -> None:
    """Guards the pattern list and the state letters against the real dpkg-query, on a status file of ours."""
    form = "Package: {}\nStatus: {} ok {}\nVersion: {}\nArchitecture: arm64\nMaintainer: x\nDescription: x\n\n"
    rows = [
        ("nvidia-driver-580-open", "hold", "installed", "580.142-1"),
        ("mlnx-fw-updater", "install", "installed", "24.10"),
    ]
    rows += [("nvidia-driver-570", "deinstall", "config-files", "570.1"), ("bash", "install", "installed", "5.2")]
    write_files(tmp_path, {"var/lib/dpkg/status": "".join(form.format(*row) for row in rows)})
    found = read_fact(ALL_FACTS["packages"], SPARKWRIGHT_SYSROOT=str(tmp_path))
    if isinstance(found, Unknown) and "not installed" in found.why:
        pytest.skip("no dpkg on this machine")
    assert isinstance(found, tuple)
    assert {(p.name, p.version, p.held) for p in found} == {
        ("nvidia-driver-580-open", "580.142-1", True),
        ("mlnx-fw-updater", "24.10", False),
    }


def test_this_machine_reports_its_own_figures(tmp_path: Path) -> None:
    """Guards that clock, uptime and swapping are read from the real system without root."""
    before = time.time()
    times, activity = (
        read_fact(ALL_FACTS["times"]),
        read_fact(ALL_FACTS["activity"], PATH=path_with_tool(tmp_path, "sleep", "")),
    )
    assert isinstance(times, Times)
    assert isinstance(times.now, float)
    assert before - 1 < times.now < time.time() + 1
    assert isinstance(times.uptime, float)
    assert isinstance(activity, Activity)
    assert isinstance(activity.swapped_in, int)


@pytest.mark.parametrize("name", HOST_FACTS)
def test_a_tree_without_any_of_it_is_no_defect(tmp_path: Path, name: str) -> None:
    """Guards that on a fixture tree nothing of the machine that plays it comes through as the node's own."""
    found = read_fact(ALL_FACTS[name], SPARKWRIGHT_SYSROOT=str(tmp_path))
    if isinstance(found, Activity):
        assert isinstance(found.oom_kills, Unknown)
        assert isinstance(found.processes, Unknown)
    elif isinstance(found, Upkeep):
        assert (found.units, found.sysctls, found.host_keys) == ({}, {}, ())
    elif isinstance(found, Board):
        assert (found.zones, found.drm) == ({}, ())
    else:
        assert isinstance(found, Unknown | Times)
