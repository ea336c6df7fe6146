"""Checks of the loaded driver: firmware, libraries, modules, devices."""

import re
from collections.abc import Iterator

from sparkwright.checks.reading import (
    DASHBOARD,
    gb10s,
    gpu_may_be_used,
    gpu_nodes,
    kernel_notes,
    library_differs,
    nodes,
    per_node,
    quoted,
)
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.unknown import known
from sparkwright.remote import repair

_UPDATER = re.compile(r"mlnx-fw-updater.*")


def nic_updater(facts: NodeFacts) -> Iterator[Found]:
    loose = [p for p in known(facts.packages) or () if _UPDATER.fullmatch(p.name) and not p.held]
    if loose:
        names = [package.name for package in loose]
        yield Found(
            ", ".join(f"{p.name} {p.version} is not held" for p in loose),
            fix=f"sudo apt-mark hold {' '.join(names)}",
            repair=repair.hold_fix(facts.node, names),
        )


_FAILED = re.compile(r"RmInitAdapter|Cannot initialize GSP|SEC2 secure boot partition timed out|GSP_INIT_DONE")


def gsp_failed(context: Context) -> Iterator[Found]:
    for facts, found in kernel_notes(context, _FAILED):
        if gpu_may_be_used(context, facts.node):
            yield Found(quoted(found), severity=WARN if known(facts.gpus) else OVERRIDE, subject=facts.node)


def library_mismatch(facts: NodeFacts) -> Iterator[Found]:
    pair = library_differs(facts)
    if pair:
        yield Found(f"loaded kernel module {pair[0]}, libcuda {pair[1]}")


def next_boot_differs(facts: NodeFacts) -> Iterator[Found]:
    driver, board = known(facts.driver), known(facts.board)
    loaded, waiting = (known(driver.version), known(board.module)) if driver and board else (None, None)
    if loaded and waiting and loaded != waiting and not library_differs(facts):
        yield Found(f"loaded kernel module {loaded}, on the disk {waiting}", title=f"next boot loads driver {waiting}")


_MODESET = re.compile(r"modeset=(0|N)\b", re.ASCII)


def drm_override(facts: NodeFacts) -> Iterator[Found]:
    board = known(facts.board)
    lines = [line for line in board.drm if _MODESET.search(line)] if board else []
    if board and lines:
        now = "only root may read it" if isinstance(board.modeset, Unknown) else "NY"[board.modeset]
        yield Found(f"{lines[0]}; modeset now: {now}")


_LEAST = 1_000_000


def libcuda_truncated(facts: NodeFacts) -> Iterator[Found]:
    board = known(facts.board)
    library = known(board.libcuda) if board else None
    if library and library.size < _LEAST:
        yield Found(f"{library.path}: {library.size} bytes; expected some tens of MB")


def uvm_missing(facts: NodeFacts) -> Iterator[Found]:
    board = known(facts.board)
    devices = known(board.devices) if board else None
    if known(facts.gpus) and devices and "nvidiactl" in devices and "nvidia-uvm" not in devices:
        yield Found(f"/dev: {', '.join(devices)}")


def persistence_off(facts: NodeFacts) -> Iterator[Found]:
    driver = known(facts.driver)
    if driver and driver.persistence is False:
        yield Found("nvidia-smi -q: Persistence Mode Disabled", repair=repair.persistence_fix(facts.node))


CHECKS = (
    Check("DRV006", WARN, "upgrades may flash the NIC firmware", per_node(gb10s, nic_updater)).about(
        detects="the package mlnx-fw-updater is installed and apt may update it.",
        why="its update flashes the ConnectX-7 at once: 28.45.4028 to 28.47.1088 left NICs dead (pre-init, error "
        "-110), which only a repair cured.",
        cause="the package's installation flashes the ConnectX-7; such a flash has left NICs dead",
        fix="hold it; flash NIC firmware only by fwupd and on purpose",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://github.com/guardkit/dgx-spark"),
    ),
    Check("DRV007", WARN, "GSP firmware failed to start", gsp_failed).about(
        detects="lines of a GB10's kernel log of this boot show that the GSP or SEC2 firmware did not start or that "
        "the adapter was not initialized. An override when nvidia-smi shows no GPU, a warning when it does.",
        why="the driver and the firmware that it loads are not a pair, mostly after a bare `apt upgrade`; the "
        "GPU is then not there.",
        cause="driver and GPU firmware are not a pair: an update was not finished, or only half of it was pulled",
        fix=f"run the update of {DASHBOARD} again, or put the paired packages back and hold them; then reboot",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://github.com/thatcooperguy/NVCheckup"),
    ),
    Check("DRV008", OVERRIDE, "libcuda and loaded driver versions differ", per_node(gpu_nodes, library_mismatch)).about(
        detects="the version in libcuda's file name is not that of the loaded kernel module.",
        why="the driver was updated and the machine not rebooted: every CUDA program, also in new containers "
        "(they get this library), ends with `driver/library version mismatch`.",
        cause="the library on the disk is newer than the module that runs; CUDA refuses such a pair",
        fix="sudo systemctl reboot --no-block, all nodes together; then sparkwright check",
        see=("https://docs.nvidia.com/deploy/",),
    ),
    Check("DRV009", WARN, "next boot loads another driver", per_node(nodes, next_boot_differs)).about(
        detects="`modinfo nvidia` for the running kernel reports another version than the loaded module. Where libcuda "
        "differs too, that is DRV008.",
        why="the next boot loads a driver that was not tested with what is served now, also when it comes from "
        "a power cut.",
        cause="the driver was updated and the machine has run on since then",
        fix="reboot all nodes together when nothing is served; then sparkwright check",
        see=("https://github.com/DoctorMasterNewb/sparkbase",),
    ),
    Check("DRV010", INFO, "nvidia-drm modeset is disabled", per_node(gb10s, drm_override)).about(
        detects="a line of /etc/modprobe.d sets an option of nvidia-drm; modeset=0 comes with the package "
        "nvidia-drm-options-modeset0.",
        why="sources contradict each other. One side: with modeset=0 CUDA saw 62 of 119.7 GiB, and without "
        "DMA-BUF registering RDMA memory failed with ENOMEM. Other side: the override came to cure "
        "flickering desktops, a change of it has left displays dark until a power cut, and many clusters run "
        "well with it. So it is told and never touched.",
        cause="some saw half of the memory in CUDA, or no DMA-BUF for RDMA; many run well with it",
        fix="only if CUDA sees about 62 GiB or ibv_reg_mr fails: sudo rm that file, update-initramfs -u, reboot "
        "(a display may stay dark until power is cut)",
        see=(
            "https://al-engr.com/",
            "https://github.com/thatcooperguy/NVCheckup",
            "https://forums.developer.nvidia.com/t/382452",
        ),
    ),
    Check("DRV013", OVERRIDE, "libcuda.so.1 is truncated", per_node(gpu_nodes, libcuda_truncated)).about(
        detects="the file behind libcuda.so.1 has less than 1 MB.",
        why="containers get the host's library; each CUDA program then ends with `libcuda.so.1: file too short`.",
        cause="an update was cut off, or the disk was full",
        fix="df -h /, then sudo apt install --reinstall libnvidia-compute-580 (the branch of the loaded driver)",
        see=("https://github.com/guardkit/dgx-spark",),
    ),
    Check("DRV014", INFO, "/dev/nvidia-uvm is missing", per_node(gpu_nodes, uvm_missing)).about(
        detects="/dev/nvidiactl is there, /dev/nvidia-uvm is not, and nvidia-smi shows a GPU.",
        why="nvidia-smi works without it, CUDA does not. Mostly nothing has used CUDA since boot, and the first "
        "use makes it; where nobody may make it, programs and containers end with error 999 or `no "
        "CUDA-capable device`.",
        cause="nothing has used CUDA since boot, or the module nvidia_uvm cannot be loaded",
        fix="sudo nvidia-modprobe -u -c=0   # and: sudo systemctl enable --now nvidia-persistenced",
        see=("https://docs.nvidia.com/cuda/cuda-installation-guide-linux/",),
    ),
    Check("DRV015", INFO, "GPU persistence mode is off", per_node(gb10s, persistence_off)).about(
        detects="nvidia-smi shows that the persistence mode of a GB10 is disabled.",
        why="without it the driver lets go of the GPU when the last program ends and starts it again for the "
        "next, which costs seconds and loses clock settings. DGX OS has it on.",
        cause="nvidia-persistenced does not run, or somebody turned it off",
        fix="sudo nvidia-smi -pm 1   # for good: sudo systemctl enable --now nvidia-persistenced",
        see=("https://docs.nvidia.com/deploy/driver-persistence/",),
    ),
)
