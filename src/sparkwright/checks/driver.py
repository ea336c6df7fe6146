"""Checks of the driver versions and packages."""

import re
from collections.abc import Iterator

from sparkwright.checks.compat.versions import ranges
from sparkwright.checks.reading import (
    DASHBOARD,
    differing,
    driver_package,
    driver_versions,
    everywhere,
    gb10_nodes,
    gpu_may_be_used,
    machine_nodes,
    per_node,
    sparks,
    upstream,
)
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN
from sparkwright.domain.host_facts import Package
from sparkwright.domain.unknown import known_or_none

_UPDATE = "sudo apt update && sudo apt dist-upgrade && sudo fwupdmgr refresh && sudo fwupdmgr upgrade && sudo reboot"
_PAIRED = re.compile(r"(nvidia-firmware|libnvidia-compute)-([0-9]{3})(-.*)?", re.ASCII)
_FOREIGN = re.compile(
    r"nvidia-driver-[0-9]{3}-server(-open)?|nvidia-driver-5[0-7][0-9].*|nvidia-dkms-[0-9]{3}(-open)?-server.*"
    r"|nvidia-fabricmanager-[0-9]{3}|nvidia-nvswitch-[0-9]{3}",
    re.ASCII,
)
_GOOD_580 = 142
_CLOSED_MODULES = re.compile(r"nvidia-(driver|dkms)-[0-9]{3}(-server)?", re.ASCII)


def deadlocking_driver(node: str, version: str, _: int) -> Iterator[Found]:
    if ranges().has("driver-590-cudagraph-deadlock-gb10", "driver", version):
        yield Found(
            f"kernel module {version}; expected: 580.142 or a later paired 580",
            title=f"driver {version} deadlocks in CUDA graph capture",
        )


def driver_too_old(node: str, version: str, major: int) -> Iterator[Found]:
    if major < 580:
        yield Found(
            f"kernel module {version}; expected: 580.142 or a later paired 580",
            title=f"driver {version} is too old for GB10",
        )


def firmware_mismatch(context: Context) -> Iterator[Found]:
    for facts in context.facts.values():
        driver = known_or_none(facts.driver)
        if driver and driver.torn is True and gpu_may_be_used(context, facts.node):
            yield Found(
                f"kernel module {driver.version}, GSP firmware {driver.gsp_firmware}",
                fix=f"update through {DASHBOARD}, or: {_UPDATE}",
                subject=facts.node,
            )


def packages_mismatch(facts: NodeFacts) -> Iterator[Found]:
    driver = driver_package(facts)
    lacking = _lacking(driver, known_or_none(facts.packages) or ()) if driver else []
    if driver and lacking:
        yield Found(f"{driver.name} {driver.version}; {', '.join(f'{p.name} {p.version}' for p in lacking)}")


def _lacking(driver: Package, packages: tuple[Package, ...]) -> list[Package]:
    """Families of which no installed package has the driver's version: older firmware may lie next to the right one."""
    families: dict[str, list[Package]] = {}
    for package in packages:
        found = _PAIRED.fullmatch(package.name)
        if found and f"-{found[2]}" in driver.name:
            families.setdefault(found[1], []).append(package)
    wanted = upstream(driver.version)
    wrong = (members for members in families.values() if wanted not in {upstream(p.version) for p in members})
    return [members[-1] for members in wrong]


def server_packages(facts: NodeFacts) -> Iterator[Found]:
    found = [p for p in known_or_none(facts.packages) or () if _FOREIGN.fullmatch(p.name)]
    if found:
        yield Found(
            ", ".join(f"{p.name} {p.version}" for p in found),
            fix=f"sudo apt remove {' '.join(p.name for p in found)}; then the update of {DASHBOARD}",
        )


def driver_580_159(node: str, version: str, _: int) -> Iterator[Found]:
    if ranges().has("cuda-operation-not-permitted-580-159", "driver", version):
        yield Found(
            f"kernel module {version}", title=f"driver {version}: paired by DGX OS, with faults that some report"
        )


def drivers_differ(context: Context) -> Iterator[Found]:
    shown = differing(context, _versions)
    if shown and all(gpu_may_be_used(context, facts.node) for facts in machine_nodes(context)):
        yield Found(shown, subject=everywhere(context))


def _versions(facts: NodeFacts) -> str | None:
    driver = known_or_none(facts.driver)
    version, firmware = (known_or_none(driver.version), known_or_none(driver.gsp_firmware)) if driver else (None, None)
    return (version if firmware in (None, version) else f"{version} with GSP firmware {firmware}") if version else None


def early_580(node: str, version: str, major: int) -> Iterator[Found]:
    minor = version.split(".")[1]
    if major == 580 and int(minor) < _GOOD_580:
        yield Found(
            f"kernel module {version}; figures on record are from 580.142 and later",
            title=f"driver {version} is outdated",
        )


def newer_branch(node: str, version: str, major: int) -> Iterator[Found]:
    if major >= 600:
        yield Found(f"kernel module {version}; DGX OS pairs 580", title=f"driver {version} is not a branch of DGX OS")


def closed_modules(facts: NodeFacts) -> Iterator[Found]:
    found = [p for p in known_or_none(facts.packages) or () if _CLOSED_MODULES.fullmatch(p.name)]
    if found:
        yield Found(", ".join(f"{p.name} {p.version}" for p in found))


CHECKS = explained(
    __file__,
    Check("DRV001", OVERRIDE, "driver deadlocks in CUDA graph capture", per_node(driver_versions, deadlocking_driver)),
    Check("DRV002", BLOCK, "driver too old for GB10", per_node(driver_versions, driver_too_old)),
    Check("DRV003", OVERRIDE, "driver and GSP firmware versions differ", firmware_mismatch),
    Check("DRV004", WARN, "driver packages have different versions", per_node(gb10_nodes, packages_mismatch)),
    Check("DRV005", WARN, "server driver packages installed", per_node(gb10_nodes, server_packages)),
    Check("DRV011", INFO, "driver 580.159.03 has disputed faults", per_node(driver_versions, driver_580_159)),
    Check("DRV012", WARN, "nodes run different drivers", drivers_differ),
    Check("DRV016", INFO, "outdated 580 driver", per_node(driver_versions, early_580)),
    Check("DRV017", INFO, "driver branch not shipped with DGX OS", per_node(driver_versions, newer_branch)),
    Check("DRV018", WARN, "closed kernel modules installed on GB10", per_node(sparks, closed_modules)),
)
