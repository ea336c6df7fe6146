"""Checks of how a node is set up and kept: services, updates, kernel log, limits."""

import re
from collections.abc import Iterator

from sparkwright.checks.rails import rails
from sparkwright.checks.reading import (
    FIRMWARE,
    driver_package,
    nodes,
    per_node,
    sparks,
    specs_on,
    upstream,
)
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.unknown import known
from sparkwright.facts.upkeep import SLEEP_TARGETS
from sparkwright.remote import repair

_UNIT = "display-manager.service"


def desktop(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    if upkeep and upkeep.active(_UNIT):
        yield Found(f"{_UNIT} is active; boots to {upkeep.target or 'an unknown target'}")


def may_sleep(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    awake = [u.name for name in SLEEP_TARGETS if upkeep and (u := upkeep.units.get(name)) and u.load == "loaded"]
    if upkeep and awake:
        yield Found(
            f"not masked: {', '.join(awake)}",
            fix=f"sudo systemctl mask {' '.join(awake)}",
            severity=WARN if upkeep.active("display-manager.service") else INFO,
            repair=repair.mask_fix(facts.node, awake),
        )


_WEIGHTY = re.compile(r"linux-(image|modules|nvidia)|nvidia|mlnx|fwupd")


def reboot_pending(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    if upkeep and upkeep.reboot_needed:
        weighty = any(_WEIGHTY.match(name) for name in upkeep.reboot_for)
        yield Found(
            f"/run/reboot-required: {', '.join(upkeep.reboot_for[:6]) or 'no package named'}",
            severity=WARN if weighty else INFO,
        )


def automatic_upgrades(facts: NodeFacts) -> Iterator[Found]:
    upkeep, driver = known(facts.upkeep), driver_package(facts)
    if upkeep and driver and not driver.held and upkeep.active("unattended-upgrades.service"):
        yield Found(
            f"unattended-upgrades is active, {driver.name} {driver.version} is not held",
            fix=f"sudo apt-mark hold {driver.name}   # and unhold it before an update through the DGX Dashboard",
        )


def reached_over_wifi(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    if upkeep and upkeep.wifi:
        saving = upkeep.power_save is True
        state = "on" if saving else "off" if upkeep.power_save is False else "not known"
        yield Found(
            f"default route over {upkeep.wifi}, power saving {state}",
            title="node is reached over Wi-Fi" + (" with power saving" if saving else ""),
            severity=WARN if saving else INFO,
        )


_ENOUGH = 1 << 20  # KiB


def memlock_low(context: Context) -> Iterator[Found]:
    for facts in nodes(context):
        upkeep = known(facts.upkeep)
        limit = known(upkeep.memlock) if upkeep else None
        if limit is not None and limit < _ENOUGH and _process_with_rdma(context, facts):
            yield Found(f"ulimit -l: {limit} KiB; expected: unlimited", subject=facts.node)


def _process_with_rdma(context: Context, facts: NodeFacts) -> bool:
    return any(spec.rdma and spec.runtime is Runtime.PROCESS for spec in specs_on(context, facts.node))


def crash_dumps(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    pattern = upkeep.sysctls.get("kernel.core_pattern", "") if upkeep else ""
    if upkeep and "apport" in pattern and upkeep.active("apport.service"):
        yield Found(f"kernel.core_pattern = {pattern[:80]}")


def no_boot_menu(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    dkms = next((p for p in known(facts.packages) or () if p.name.startswith("nvidia-dkms-")), None)
    if upkeep and dkms and upkeep.grub_timeout == 0:
        yield Found(f"GRUB_TIMEOUT=0, {dkms.name} {dkms.version} is installed")


_LIBRARY = re.compile(r"libfwupd[0-9]*")


def fwupd_mismatch(facts: NodeFacts) -> Iterator[Found]:
    packages = known(facts.packages) or ()
    daemon = next((p for p in packages if p.name == "fwupd"), None)
    libraries = [p for p in packages if _LIBRARY.fullmatch(p.name)]
    versions = {upstream(p.version) for p in libraries}
    if daemon and libraries and upstream(daemon.version) not in versions:
        library = libraries[-1]
        yield Found(
            f"fwupd {daemon.version}, {library.name} {library.version}",
            fix="sudo apt update && sudo apt install fwupd " + library.name,
        )


_ENGLISH = ("en", "C", "POSIX")


def locale_not_english(facts: NodeFacts) -> Iterator[Found]:
    upkeep, identity = known(facts.upkeep), known(facts.identity)
    told_language = upkeep.locale if upkeep else ""
    if told_language and identity and known(identity.ota_version) and not told_language.startswith(_ENGLISH):
        yield Found(f"/etc/default/locale: {told_language}")


_BIOS = re.compile(r"GX10DGX\.([0-9]{4})\b.*", re.ASCII)
_GOOD = 105


def asus_bios_old(facts: NodeFacts) -> Iterator[Found]:
    board = known(facts.board)
    told = _BIOS.fullmatch(board.bios) if board else None
    if told and int(told[1]) < _GOOD:
        yield Found(
            f"bios_version: {told[0]}; expected: GX10DGX.{_GOOD:04} or later",
            title=f"outdated BIOS {told[1]} on ASUS GX10",
            severity=WARN if _second_cage(facts) else INFO,
        )


def _second_cage(facts: NodeFacts) -> bool:
    return any(rail.port.device.endswith("f1") for rail in rails(facts))


CHECKS = (
    Check("HOST011", INFO, "desktop session uses unified memory", per_node(sparks, desktop)).about(
        detects="the display manager is active on a node with a GB10.",
        why="desktop, browser and display take memory of the one pool, about 10 GB by one report, and GPU time "
        "(13 % of matrix throughput by another). Who works at the machine wants it all the same.",
        cause="DGX OS starts a desktop unless it was set up without one",
        fix="sudo systemctl set-default multi-user.target && sudo systemctl isolate multi-user.target",
        see=("https://github.com/DoctorMasterNewb/sparkbase",),
    ),
    Check("HOST012", WARN, "node may suspend", per_node(sparks, may_sleep)).about(
        detects="sleep targets of systemd are not masked on a GB10. With a desktop, whose idle timer uses them, it "
        "is a warning; else info.",
        why="a GB10 that suspends ends all ranks and often does not come back: serving looks idle to a desktop.",
        cause="DGX OS leaves sleep to the desktop's idle timer",
        fix="mask them",
        see=("https://github.com/thatcooperguy/NVCheckup",),
    ),
    Check("HOST013", INFO, "reboot pending after an update", per_node(sparks, reboot_pending)).about(
        detects="/run/reboot-required is there on a GB10. A warning when kernel, driver or firmware packages are "
        "among those that ask for it.",
        why="what is loaded is older than what is on the disk; the next reboot, also one after a power cut, "
        "brings a different system than the one that was tested.",
        cause="packages were updated and the machine has run on since then",
        fix="sudo systemctl reboot --no-block on all nodes, when nothing is served; then sparkwright check",
        see=("https://www.debian.org/doc/debian-policy/",),
    ),
    Check("HOST014", INFO, "unattended upgrades may replace the driver", per_node(sparks, automatic_upgrades)).about(
        detects="unattended-upgrades is active on a GB10, and a package of the NVIDIA driver is installed and not "
        "held.",
        why="an `apt upgrade` that is not DGX OS's own update has pulled a driver without its GPU firmware; the "
        "GPU did not start at the next boot. By default only security updates come by themselves, so this is "
        "worth knowing and no defect.",
        cause="Ubuntu's automatic upgrades know nothing of the pairing that DGX OS makes",
        fix="hold the driver while you serve, and update through the DGX Dashboard",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://wiki.debian.org/UnattendedUpgrades"),
    ),
    Check("HOST016", INFO, "node is reached over Wi-Fi", per_node(sparks, reached_over_wifi)).about(
        detects="the default route goes over a wireless interface. With power saving on it is a warning.",
        why="the MT7925 of a GB10 drops out under load and with power saving: machines were healthy and out of "
        "reach for over an hour, and a supervisor that asks over ssh takes them for dead.",
        cause="no network cable in the management port (enP7s7)",
        fix="use the wired port; or wifi.powersave=2 below [connection] in /etc/NetworkManager/conf.d",
        see=("https://github.com/jschmied/dgx-spark-setup-guide", "https://github.com/guardkit/dgx-spark"),
    ),
    Check("HOST017", WARN, "memlock limit too low for RDMA", memlock_low).about(
        detects="the recipe runs its engine as a process (no container) with RDMA, and `ulimit -l` of the login is "
        "below 1 GiB.",
        why="registering RDMA buffers fails (ibv_reg_mr: Cannot allocate memory), and NCCL ends or falls back to "
        "slow sockets.",
        cause="the system's default limit; containers get theirs from Docker, processes from the login",
        fix="'* - memlock unlimited' in /etc/security/limits.d/99-rdma.conf, then log in again",
        see=("https://docs.nvidia.com/networking/", "https://github.com/luisefigueroa/pulsar-gb10-vllm-stack"),
    ),
    Check("HOST018", INFO, "apport captures core dumps", per_node(sparks, crash_dumps)).about(
        detects="apport is active, and kernel.core_pattern gives it the memory of programs that crash.",
        why="an engine that crashes is then read by apport, page by page, while its memory is still in use: a "
        "restart waits for it. Some want the dumps.",
        cause="Ubuntu's default",
        fix="sudo systemctl disable --now apport   # crashes are in the engine's log all the same",
        see=("https://wiki.ubuntu.com/Apport",),
    ),
    Check("HOST019", INFO, "boot menu is disabled", per_node(sparks, no_boot_menu)).about(
        detects="GRUB_TIMEOUT=0 in a GB10's /etc/default/grub, and a package nvidia-dkms-* is installed.",
        why="a DKMS build that fails half way has left machines without a bootable kernel; without a boot menu "
        "the older kernel cannot be chosen, and recovery needs a stick.",
        cause="Ubuntu hides the menu; a DKMS driver is built again with each kernel",
        fix="GRUB_TIMEOUT=5 in /etc/default/grub, then sudo update-grub",
        see=("https://github.com/DoctorMasterNewb/sparkbase",),
    ),
    Check("HOST020", WARN, "fwupd and libfwupd versions differ", per_node(sparks, fwupd_mismatch)).about(
        detects="the packages fwupd and libfwupd* are installed in different versions on a GB10.",
        why="an update of DGX OS was cut short; the dashboard then hangs and firmware is not updated (libfwupd "
        "version does not match daemon).",
        cause="an update of the system was not finished",
        fix="finish the update",
        see=("https://github.com/thatcooperguy/NVCheckup",),
    ),
    Check("HOST022", INFO, "system locale is not English", per_node(nodes, locale_not_english)).about(
        detects="/etc/default/locale of a DGX OS node sets messages to another language.",
        why="NVIDIA Sync reads apt's words and asks for an update that is already installed. Sparkwright itself "
        "asks with LC_ALL=C.",
        cause="the language chosen when the machine was set up",
        fix="sudo update-locale LC_MESSAGES=en_US.utf8",
        see=("https://github.com/DoctorMasterNewb/sparkbase",),
    ),
    Check("HOST025", WARN, "outdated BIOS on ASUS GX10", per_node(sparks, asus_bios_old)).about(
        detects="the BIOS version of an ASUS GX10 shows a number below 0105. A warning where the NIC's second cage is "
        "in use.",
        why="up to 0104 the second cage runs at half its speed; 0103 added the USB-PD firmware that fixed link "
        "speed and heat. Other makers count their BIOS versions in other ways and are not judged.",
        cause="the machine's firmware was not updated since it was set up; the second cage is slow with it",
        fix=f"{FIRMWARE}; then reboot all nodes with the cable in",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://github.com/guardkit/dgx-spark"),
        status="preview",
    ),
)
