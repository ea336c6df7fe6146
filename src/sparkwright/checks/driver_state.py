"""Checks of the loaded driver: firmware, libraries, modules, devices."""

import re
from collections.abc import Iterator

from sparkwright.checks import reading
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.unknown import known_or_none
from sparkwright.remote import repair

_UPDATER = re.compile(r"mlnx-fw-updater.*")
_GSP_FAILED = re.compile(r"RmInitAdapter|Cannot initialize GSP|SEC2 secure boot partition timed out|GSP_INIT_DONE")
_MODESET = re.compile(r"modeset=(0|N)\b", re.ASCII)
_LEAST_LIBCUDA = 1_000_000


def nic_updater(facts: NodeFacts) -> Iterator[Found]:
    loose = [p for p in known_or_none(facts.packages) or () if _UPDATER.fullmatch(p.name) and not p.held]
    if loose:
        names = [package.name for package in loose]
        yield Found(
            ", ".join(f"{p.name} {p.version} is not held" for p in loose),
            fix=f"sudo apt-mark hold {' '.join(names)}",
            repair=repair.hold_fix(facts.node, names),
        )


def gsp_failed(context: Context) -> Iterator[Found]:
    for facts, found in reading.kernel_notes(context, _GSP_FAILED):
        if reading.gpu_may_be_used(context, facts.node):
            yield Found(
                reading.quoted(found), severity=WARN if known_or_none(facts.gpus) else OVERRIDE, subject=facts.node
            )


def library_mismatch(facts: NodeFacts) -> Iterator[Found]:
    pair = reading.library_differs(facts)
    if pair:
        yield Found(f"loaded kernel module {pair[0]}, libcuda {pair[1]}")


def next_boot_differs(facts: NodeFacts) -> Iterator[Found]:
    driver, board = known_or_none(facts.driver), known_or_none(facts.board)
    loaded, waiting = (known_or_none(driver.version), known_or_none(board.module)) if driver and board else (None, None)
    if loaded and waiting and loaded != waiting and not reading.library_differs(facts):
        yield Found(f"loaded kernel module {loaded}, on the disk {waiting}", title=f"next boot loads driver {waiting}")


def drm_override(facts: NodeFacts) -> Iterator[Found]:
    board = known_or_none(facts.board)
    lines = [line for line in board.drm if _MODESET.search(line)] if board else []
    if board and lines:
        now = "only root may read it" if isinstance(board.modeset, Unknown) else "NY"[board.modeset]
        yield Found(f"{lines[0]}; modeset now: {now}")


def libcuda_truncated(facts: NodeFacts) -> Iterator[Found]:
    board = known_or_none(facts.board)
    library = known_or_none(board.libcuda) if board else None
    if library and library.size < _LEAST_LIBCUDA:
        yield Found(f"{library.path}: {library.size} bytes; expected some tens of MB")


def uvm_missing(facts: NodeFacts) -> Iterator[Found]:
    board = known_or_none(facts.board)
    devices = known_or_none(board.devices) if board else None
    if known_or_none(facts.gpus) and devices and "nvidiactl" in devices and "nvidia-uvm" not in devices:
        yield Found(f"/dev: {', '.join(devices)}")


def persistence_off(facts: NodeFacts) -> Iterator[Found]:
    driver = known_or_none(facts.driver)
    if driver and driver.persistence is False:
        yield Found("nvidia-smi -q: Persistence Mode Disabled", repair=repair.persistence_fix(facts.node))


CHECKS = explained(
    __file__,
    Check("DRV006", WARN, "upgrades may flash the NIC firmware", reading.per_node(reading.gb10_nodes, nic_updater)),
    Check("DRV007", WARN, "GSP firmware failed to start", gsp_failed),
    Check(
        "DRV008",
        OVERRIDE,
        "libcuda and loaded driver versions differ",
        reading.per_node(reading.gpu_nodes, library_mismatch),
    ),
    Check("DRV009", WARN, "next boot loads another driver", reading.per_node(reading.machine_nodes, next_boot_differs)),
    Check("DRV010", INFO, "nvidia-drm modeset is disabled", reading.per_node(reading.gb10_nodes, drm_override)),
    Check("DRV013", OVERRIDE, "libcuda.so.1 is truncated", reading.per_node(reading.gpu_nodes, libcuda_truncated)),
    Check("DRV014", INFO, "/dev/nvidia-uvm is missing", reading.per_node(reading.gpu_nodes, uvm_missing)),
    Check("DRV015", INFO, "GPU persistence mode is off", reading.per_node(reading.gb10_nodes, persistence_off)),
)
