"""Checks of the driver versions and packages."""

import re
from collections.abc import Iterator

from sparkwright.checks.reading import (
    DASHBOARD,
    differing,
    driver_package,
    driver_versions,
    everywhere,
    gb10s,
    gpu_may_be_used,
    nodes,
    per_node,
    sparks,
    upstream,
)
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN
from sparkwright.domain.host_facts import Package
from sparkwright.domain.unknown import known


def deadlocking_driver(node: str, version: str, major: int) -> Iterator[Found]:
    if 590 <= major < 600:
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


_UPDATE = "sudo apt update && sudo apt dist-upgrade && sudo fwupdmgr refresh && sudo fwupdmgr upgrade && sudo reboot"


def firmware_mismatch(context: Context) -> Iterator[Found]:
    for facts in context.facts.values():
        driver = known(facts.driver)
        if driver and driver.torn is True and gpu_may_be_used(context, facts.node):
            yield Found(
                f"kernel module {driver.version}, GSP firmware {driver.gsp_firmware}",
                fix=f"update through {DASHBOARD}, or: {_UPDATE}",
                subject=facts.node,
            )


_FAMILY = re.compile(r"(nvidia-firmware|libnvidia-compute)-([0-9]{3})(-.*)?", re.ASCII)


def packages_mismatch(facts: NodeFacts) -> Iterator[Found]:
    driver = driver_package(facts)
    lacking = _lacking(driver, known(facts.packages) or ()) if driver else []
    if driver and lacking:
        yield Found(f"{driver.name} {driver.version}; {', '.join(f'{p.name} {p.version}' for p in lacking)}")


def _lacking(driver: Package, packages: tuple[Package, ...]) -> list[Package]:
    """Families of which no installed package has the driver's version: older firmware may lie next to the right one."""
    families: dict[str, list[Package]] = {}
    for package in packages:
        found = _FAMILY.fullmatch(package.name)
        if found and f"-{found[2]}" in driver.name:
            families.setdefault(found[1], []).append(package)
    wanted = upstream(driver.version)
    wrong = (members for members in families.values() if wanted not in {upstream(p.version) for p in members})
    return [members[-1] for members in wrong]


_FOREIGN = re.compile(
    r"nvidia-driver-[0-9]{3}-server(-open)?|nvidia-driver-5[0-7][0-9].*|nvidia-dkms-[0-9]{3}(-open)?-server.*"
    r"|nvidia-fabricmanager-[0-9]{3}|nvidia-nvswitch-[0-9]{3}",
    re.ASCII,
)


def server_packages(facts: NodeFacts) -> Iterator[Found]:
    found = [p for p in known(facts.packages) or () if _FOREIGN.fullmatch(p.name)]
    if found:
        yield Found(
            ", ".join(f"{p.name} {p.version}" for p in found),
            fix=f"sudo apt remove {' '.join(p.name for p in found)}; then the update of {DASHBOARD}",
        )


def driver_580_159(node: str, version: str, _: int) -> Iterator[Found]:
    if version == "580.159.03":
        yield Found(
            f"kernel module {version}", title=f"driver {version}: paired by DGX OS, with faults that some report"
        )


def drivers_differ(context: Context) -> Iterator[Found]:
    shown = differing(context, _versions)
    if shown and all(gpu_may_be_used(context, facts.node) for facts in nodes(context)):
        yield Found(shown, subject=everywhere(context))


def _versions(facts: NodeFacts) -> str | None:
    driver = known(facts.driver)
    version, firmware = (known(driver.version), known(driver.gsp_firmware)) if driver else (None, None)
    return (version if firmware in (None, version) else f"{version} with GSP firmware {firmware}") if version else None


_GOOD = 142


def early_580(node: str, version: str, major: int) -> Iterator[Found]:
    minor = version.split(".")[1]
    if major == 580 and int(minor) < _GOOD:
        yield Found(
            f"kernel module {version}; figures on record are from 580.142 and later",
            title=f"driver {version} is outdated",
        )


def newer_branch(node: str, version: str, major: int) -> Iterator[Found]:
    if major >= 600:
        yield Found(f"kernel module {version}; DGX OS pairs 580", title=f"driver {version} is not a branch of DGX OS")


_CLOSED = re.compile(r"nvidia-(driver|dkms)-[0-9]{3}(-server)?", re.ASCII)


def closed_modules(facts: NodeFacts) -> Iterator[Found]:
    found = [p for p in known(facts.packages) or () if _CLOSED.fullmatch(p.name)]
    if found:
        yield Found(", ".join(f"{p.name} {p.version}" for p in found))


CHECKS = (
    Check(
        "DRV001", OVERRIDE, "driver deadlocks in CUDA graph capture", per_node(driver_versions, deadlocking_driver)
    ).about(
        detects="kernel module 590.x or 595.x on a node with a GB10 (or an unknown GPU) whose GPU the recipe may use.",
        why="one owner of two nodes reports a confirmed deadlock in CUDA-graph capture on 590.x; the branch is "
        "not supported on GB10, and it keeps the pages of ended CUDA processes. Other side: a large CUDA "
        "allocation was measured to work on it, and 580.159.03 has contested faults of its own. Hence an "
        "override and no block.",
        cause="CUDA-graph capture hangs on 590.x and 595.x with GB10, without an error line",
        fix=f"install the driver that DGX OS pairs: the update of {DASHBOARD}, then reboot",
        see=("https://conselara.dev/tags/vllm/", "https://github.com/thatcooperguy/NVCheckup"),
    ),
    Check("DRV002", BLOCK, "driver too old for GB10", per_node(driver_versions, driver_too_old)).about(
        detects="kernel module older than 580 on a node with a GB10 (or an unknown GPU) whose GPU the recipe may use.",
        why="sm_121 needs CUDA 13, which needs driver 580; older ones do not know the chip.",
        cause="GB10 (sm_121) needs CUDA 13 and with it driver 580",
        fix=f"update through {DASHBOARD}, then reboot",
        see=("https://github.com/thatcooperguy/NVCheckup",),
    ),
    Check("DRV003", OVERRIDE, "driver and GSP firmware versions differ", firmware_mismatch).about(
        detects="the loaded kernel module and the GSP firmware that the GPU runs are both known and differ.",
        why="an update that was cut short or done by a bare `apt upgrade` leaves such a pair; the GPU then fails "
        "at the next boot or under load.",
        cause="an update was not finished, or `apt upgrade` pulled only half of it",
        fix="run the update to its end, and reboot",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://github.com/thatcooperguy/NVCheckup"),
    ),
    Check("DRV004", WARN, "driver packages have different versions", per_node(gb10s, packages_mismatch)).about(
        detects="nvidia-driver-NNN, libnvidia-compute-NNN and the GPU firmware packages of that branch are "
        "installed, and one of them lacks the driver's version. Kernel module packages carry the kernel's "
        "version and are not compared.",
        why="a bare `apt upgrade` has pulled a newer driver without its GPU firmware; after the next boot the "
        "GPU did not start (Xid 119, RmInitAdapter failed). What runs now is not yet touched.",
        cause="an update was not finished, or `apt upgrade` pulled only half of it; the next boot may have no GPU",
        fix=f"before the next reboot: run the update of {DASHBOARD} to its end, or sudo apt dist-upgrade",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://github.com/thatcooperguy/NVCheckup"),
    ),
    Check("DRV005", WARN, "server driver packages installed", per_node(gb10s, server_packages)).about(
        detects="a package of a server or NVSwitch driver, of the branch 570, or of a DKMS server build is installed.",
        why="they replace or shadow parts of the driver that DGX OS pairs; updates then leave a mixture.",
        cause="installed by hand from a guide for servers, or by a script that does not know GB10",
        fix="remove them, and run the update of DGX OS",
        see=("https://github.com/thatcooperguy/NVCheckup",),
    ),
    Check("DRV011", INFO, "driver 580.159.03 has disputed faults", per_node(driver_versions, driver_580_159)).about(
        detects="kernel module 580.159.03 on a GB10.",
        why="one side: it is what OTA2607 pairs and what NVIDIA's table names, and it ends a process that takes "
        "too much memory where others hang the machine. Other side: a leak of memory descriptors "
        "(NV_ERR_NO_MEMORY, some 160 a boot), engines that end with `operation not permitted`, a decode "
        "regression by one report. Where the leak shows, MEM014 tells so.",
        cause="some saw leaks of memory descriptors and engines that died; others serve on it for weeks",
        fix=f"leave it while it works; else the update of {DASHBOARD} to 580.173 or later",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://forums.developer.nvidia.com/t/363989"),
    ),
    Check("DRV012", WARN, "nodes run different drivers", drivers_differ).about(
        detects="kernel module and GSP firmware are not the same on all nodes.",
        why="all ranks run in step: memory that one driver keeps, or speed that it loses, is the whole group's; "
        "and faults of one version are looked for in the other.",
        cause="one node was updated and not the other, or not yet rebooted",
        fix=f"run the update of {DASHBOARD} on the older ones, and reboot all together",
        see=(
            "https://github.com/christopherowen/dgx-spark-networking",
            "https://github.com/Reederey87/dgx-spark-2x-deepseek-v4-flash",
        ),
    ),
    Check("DRV016", INFO, "outdated 580 driver", per_node(driver_versions, early_580)).about(
        detects="kernel module 580.x older than 580.142 on a GB10.",
        why="good results that are on record are from 580.142 and later; 580.126.09 was seen together with a "
        "link at 13 Gb/s, which others trace to a hot-attached cable.",
        cause="the system was not updated since it was set up",
        fix=f"run the update of {DASHBOARD}, and reboot all nodes together",
        see=("https://conselara.dev/tags/vllm/", "https://github.com/thatcooperguy/NVCheckup"),
    ),
    Check("DRV017", INFO, "driver branch not shipped with DGX OS", per_node(driver_versions, newer_branch)).about(
        detects="kernel module 600 or later on a GB10.",
        why="610.43 was seen to work with CUDA 13.3, with secure boot off or a key enrolled; hardly anybody "
        "measures or serves on it, so faults of it are in no list.",
        cause="installed by hand",
        fix=f"the paired driver: the update of {DASHBOARD}",
        see=("https://github.com/DoctorMasterNewb/sparkbase",),
    ),
    Check("DRV018", WARN, "closed kernel modules installed on GB10", per_node(sparks, closed_modules)).about(
        detects="a package nvidia-driver-NNN or nvidia-dkms-NNN without `-open` is installed on a GB10.",
        why="NVIDIA supports Blackwell and later with the open kernel modules alone. With the closed ones of "
        "580.173.02 the GPU was found and never started (Xid 169, RmInitAdapter failed); the open ones of "
        "the same version worked.",
        cause="installed by hand; GB10 is supported with the open kernel modules alone",
        fix=f"the -open packages of the same version; or the update of {DASHBOARD}",
        see=("https://github.com/Start9Labs/start-technologies/pull/3693",),
    ),
)
