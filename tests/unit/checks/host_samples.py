"""The reports of a healthy Spark's system: settings, packages, activity, kernel log, clock and board."""

from dataclasses import replace
from typing import Any

from sparkwright.domain.facts import Kernel
from sparkwright.domain.host_facts import (
    Activity,
    Board,
    KernelLog,
    KernelNote,
    Library,
    Package,
    Process,
    Times,
    Unit,
    Upkeep,
)
from sparkwright.domain.units import MIB
from sparkwright.facts.upkeep import SLEEP_TARGETS

KERNEL = Kernel("6.17.0-1014-nvidia", "quiet splash", "Ubuntu 24.04.3 LTS")
LOADED = "580.142"
_LIBRARY = f"/usr/lib/aarch64-linux-gnu/libcuda.so.{LOADED}"
LOADING = KernelNote(f"NVRM: loading NVIDIA Open GPU Kernel Module for aarch64  {LOADED}  Release Build", 1, 3.3, 3.3)
PACKAGES = (
    Package("nvidia-driver-580-open", f"{LOADED}-0ubuntu0.24.04.1", held=True),
    Package("nvidia-firmware-580-580.126.09", "580.126.09-0ubuntu0.24.04.1"),
    Package(f"nvidia-firmware-580-{LOADED}", f"{LOADED}-0ubuntu0.24.04.1"),
    Package("libnvidia-compute-580", f"{LOADED}-0ubuntu0.24.04.1"),
    Package("linux-modules-nvidia-580-open-6.17.0-1014-nvidia", "6.17.0-1014.14+1"),
    Package("mlnx-fw-updater", "24.10-1.1.4.0", held=True),
    Package("fwupd", "1.9.30-0ubuntu1~24.04.1"),
    Package("libfwupd2", "1.9.30-0ubuntu1~24.04.1"),
)
ACTIVITY = Activity(0, 0, 0.0, 0.0, 0, (Process(1, "systemd", 14 * MIB, "root", "init.scope"),))
TIMES = Times(1000.4, 86400.0, synchronized=True, ntp=True, unclean=False)
UPKEEP = Upkeep(
    sysctls={"vm.min_free_kbytes": "3145728", "vm.overcommit_memory": "0", "kernel.core_pattern": "core"},
    units={name: Unit(name, "masked", "inactive", "masked") for name in SLEEP_TARGETS},
    memlock=None,
    target="multi-user.target",
    locale="en_US.UTF-8",
    grub_timeout=5,
)
BOARD = Board(
    bios="5.36_0ACUM020",
    ec="3.5",
    zones={"acpitz": 51.0},
    nvidia={"000f:01:00.0": "10de:2e12"},
    devices=("nvidia0", "nvidiactl", "nvidia-uvm"),
    libcuda=Library(_LIBRARY, 93_000_000, LOADED),
    module=LOADED,
)


def host_facts(number: int) -> dict[str, Any]:
    """The facts of node `number`: each node has ssh host keys of its own."""
    return {
        "kernel": KERNEL,
        "kernel_log": KernelLog(2000, (LOADING,)),
        "packages": PACKAGES,
        "activity": ACTIVITY,
        "times": TIMES,
        "upkeep": replace(UPKEEP, host_keys=(f"SHA256:key-of-{number}",)),
        "board": BOARD,
        "asked": 1000.0,
        "at": 1001.0,
    }
