"""Two nodes as they come: the maker's image, one update, one cable, nothing tuned. They serve well as they are."""

from dataclasses import replace
from typing import Any

from sparkwright.domain.check import Context
from sparkwright.domain.fabric_facts import Containers, Network, PciFunction, Profile, RdmaDevice, Route
from sparkwright.domain.facts import Docker, Driver, Gpu, Identity, Kernel, Memory, NodeFacts
from sparkwright.domain.host_facts import KernelLog, KernelNote, Library, Package, Unit, Upkeep
from sparkwright.domain.units import GIB, MIB
from sparkwright.facts.upkeep import SLEEP_TARGETS
from unit.checks.host_samples import BOARD, host_facts
from unit.checks.samples import CLUSTER, NIC, NODES, ODD, RAILS, healthy

KIB = 1024
# Makers with firmware tracks of their own.
MAKERS = {
    "founders": ("NVIDIA NVIDIA_DGX_Spark", "DGX Server for KVM", "5.36_0ACUM020", 127_601_452 * KIB),
    "asus": ("ASUSTeK COMPUTER INC. GX10", "GX10", "GX10DGX.0105.2026.0505.1153", 127_600_524 * KIB),
    "early": ("NVIDIA NVIDIA_DGX_Spark", "DGX Server for KVM", "5.36_0ACUM020", 125_513_944 * KIB),
    "hp": ("HP HP ZGX Nano G1n AI Station", "HP ZGX Nano G1n AI Station", "S20 Ver. 01.04.00", 127_622_144 * KIB),
}
DESKTOP = ("display-manager.service", "graphical.target", "unattended-upgrades.service", "apport.service")
SERVICES = (*DESKTOP, "systemd-oomd.service", "nvidia-persistenced.service")
UNITS = {name: Unit(name, "loaded", "active", "enabled") for name in SERVICES}
UNITS |= {name: Unit(name, "loaded", "inactive", "static") for name in SLEEP_TARGETS}
SYSCTLS = {
    "vm.min_free_kbytes": "67584",
    "vm.swappiness": "60",
    "vm.overcommit_memory": "0",
    "kernel.core_pattern": "|/usr/share/apport/apport -p%p -s%s -c%c -d%d -P%P -u%u -g%g -F%F -- %E",
}
# What the kernel of a healthy machine says of such matters in each boot.
BOOT = (
    "NVRM: loading NVIDIA Open GPU Kernel Module for aarch64  {driver}  Release Build  (dvs-builder@U22)",
    "nvidia-modeset: Loading NVIDIA UNIX Open Kernel Mode Setting Driver for aarch64  {driver}  Release Build",
    "nvidia_drm: loading out-of-tree module taints kernel.",
    "thermal_sys: Registered thermal governor 'step_wise'",
    "nvme nvme0: Shutdown timeout set to 10 seconds",
    "nvme nvme0: 20/0/0 default/read/poll queues",
    "nvme nvme0: allocated 64 MiB host memory buffer.",
    "nvme 0004:01:00.0: platform quirk: setting simple suspend",
    "pcieport 0000:00:00.0: AER: enabled with IRQ 270",
    "pcieport 0009:00:00.0: AER: Correctable error message received from 0009:01:00.0",
    "pcieport 0009:00:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
    "mt7925e 0009:01:00.0: ASIC revision: 79250000",
    "cx7-pcie-hotplug MTKP0001:00: Cable plugin",
    "mlx5_core 0000:01:00.0: firmware version: 28.45.4028",
    "mlx5_core 0000:01:00.0: 126.028 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x4 link)",
    "mlx5_core 0000:01:00.0: mlx5_pcie_event:326:(pid 165): Detected insufficient power on the PCIe slot (27W).",
    "mlx5_core 0000:01:00.0: Port module event: module 0, Cable plugged",
    "mlx5_core 0000:01:00.1: Port module event: module 1, Cable unplugged",
    "mlx5_core 0000:01:00.0 enp1s0f0np0: Link up",
    "GHES: APEI firmware first mode is enabled by APEI bit.",
    "EDAC MC: Ver: 3.0.0",
    "systemd[1]: Listening on systemd-oomd.socket - Userspace Out-Of-Memory (OOM) Killer Socket.",
)
CAGES = tuple(PciFunction(f"000{domain}:01:00.{number}", 32.0, 4) for domain in (0, 2) for number in (0, 1))


def stock_node(name: str, maker: str = "founders", driver: str = "580.178.04", **changes: Any) -> NodeFacts:
    """A node of that maker on DGX OS 7.6.0, with the desktop, the hot-plug handler and a cable in its first cage."""
    number = NODES.index(name) + 1
    product, platform, bios, total = MAKERS[maker]
    deb = f"{driver}-0ubuntu0.24.04.1"
    told = {
        **host_facts(number),
        "identity": Identity(
            name, f"{number:032x}", "aarch64", f"boot-{number}", "ai", "/home/ai", product, platform, "7.6.0"
        ),
        "kernel": Kernel("6.17.0-1021-nvidia", "quiet splash", "Ubuntu 24.04.3 LTS"),
        "memory": Memory(
            total, 99 * GIB, total - 14 * GIB, 12 * GIB, 16 * GIB, 16 * GIB, 7 * GIB, 0, 0, 128 * MIB, 68 * MIB
        ),
        "gpus": (Gpu("NVIDIA GB10", driver, "12.1", ODD, 43.0, 10.2, 2418.0, 2.0),),
        "gpu_processes": (),
        "driver": Driver(driver, driver, persistence=True),
        "docker": Docker(
            "28.5.1", ("nvidia", "runc"), False, "/var/lib/docker", storage="overlay2", log_driver="json-file"
        ),
        "containers": Containers(toolkit="1.19.0", daemon=('"path": "nvidia-container-runtime"',)),
        "packages": (
            Package("nvidia-driver-580-open", deb),
            Package(f"nvidia-firmware-580-{driver}", deb),
            Package("libnvidia-compute-580", deb),
            Package("linux-modules-nvidia-580-open-6.17.0-1021-nvidia", "6.17.0-1021.21+1"),
            Package("nvidia-spark-ota-check", "26.07"),
            Package("fwupd", "2.0.16-1~24.04"),
            Package("libfwupd2", "1.9.30-0ubuntu1~24.04.1"),
            Package("libfwupd3", "2.0.16-1~24.04"),
        ),
        "board": replace(
            BOARD,
            bios=bios,
            libcuda=Library(f"/usr/lib/aarch64-linux-gnu/libcuda.so.{driver}", 93_000_000, driver),
            module=driver,
        ),
        "kernel_log": KernelLog(
            2100, tuple(KernelNote(line.format(driver=driver), 1, 9.0, 12.0, line) for line in BOOT)
        ),
        "upkeep": Upkeep(
            SYSCTLS,
            UNITS,
            8192,
            "graphical.target",
            locale="en_US.UTF-8",
            grub_timeout=0,
            host_keys=(f"SHA256:{name}",),
        ),
        "nic": replace(
            NIC,
            functions=CAGES,
            devices=tuple(RdmaDevice(device, "28.45.4028", 200.0) for device, _, _ in RAILS),
            armed=True,
        ),
        "network": Network(
            (
                Route("default", "10.1.0.1", "enP7s7"),
                Route("10.1.0.0/24", "", "enP7s7"),
                Route("172.17.0.0/16", "", "docker0"),
            ),
            (Profile("Wired connection 1", "enP7s7", "auto"),),
            {"/etc/netplan/40-cx7.yaml": "600"},
        ),
    }
    return healthy(name, **(told | changes))


def stock_context(first: dict[str, Any] | None = None, second: dict[str, Any] | None = None) -> Context:
    """`check` of two stock nodes; what is given differs."""
    return Context(
        CLUSTER, {name: stock_node(name, **(more or {})) for name, more in zip(NODES, (first, second), strict=True)}
    )
