"""Checks of how a node is set up and kept: services, updates, kernel log, limits."""

import re
from collections.abc import Iterator
from itertools import combinations

from sparkwright.checks import reading
from sparkwright.checks.rails import rails_of
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NOT_ASKED, NodeFacts, Unknown
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.unknown import known_or_none
from sparkwright.facts.upkeep import SLEEP_TARGETS
from sparkwright.remote import repair

_DESKTOP = "display-manager.service"
_WEIGHTY_UPDATE = re.compile(r"linux-(image|modules|nvidia)|nvidia|mlnx|fwupd")
_MEMLOCK_ENOUGH = 1 << 20  # KiB
_LIBFWUPD = re.compile(r"libfwupd[0-9]*")
_ENGLISH = ("en", "C", "POSIX")
_BIOS = re.compile(r"GX10DGX\.([0-9]{4})\b.*", re.ASCII)
_GOOD_BIOS = 105
_KERNEL_FAILED = re.compile(r"Oops|\bBUG: |soft lockup|Unable to handle kernel|Kernel panic", re.ASCII)
_DISK = (
    r"(I/O|medium) error.*\bdev (nvme|dm-|md)|nvme.*(timeout, |controller is down|resetting controller)|EXT4-fs error"
)
_PCIE = r"(AER: |PCIe Bus Error: severity=)Uncorrect"
_DISK_OR_PCIE = re.compile(f"{_DISK}|{_PCIE}")
_NO_TIMER = "look for a watchdog timer in the setup of the firmware"
_ARM = "sparkwright check --fix --only HOST026"
_CLOCKS_APART = 2.0
_CLOCK_OFF = 60.0


def desktop(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    if upkeep and upkeep.active(_DESKTOP):
        yield Found(f"{_DESKTOP} is active; boots to {upkeep.target or 'an unknown target'}")


def may_sleep(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    awake = [u.name for name in SLEEP_TARGETS if upkeep and (u := upkeep.units.get(name)) and u.load == "loaded"]
    if upkeep and awake:
        yield Found(
            f"not masked: {', '.join(awake)}",
            fix=f"sudo systemctl mask {' '.join(awake)}",
            severity=WARN if upkeep.active(_DESKTOP) else INFO,
            repair=repair.mask_fix(facts.node, awake),
        )


def reboot_pending(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    if upkeep and upkeep.reboot_needed:
        weighty = any(_WEIGHTY_UPDATE.match(name) for name in upkeep.reboot_for)
        yield Found(
            f"/run/reboot-required: {', '.join(upkeep.reboot_for[:6]) or 'no package named'}",
            severity=WARN if weighty else INFO,
        )


def automatic_upgrades(facts: NodeFacts) -> Iterator[Found]:
    upkeep, driver = known_or_none(facts.upkeep), reading.driver_package(facts)
    if upkeep and driver and not driver.held and upkeep.active("unattended-upgrades.service"):
        yield Found(
            f"unattended-upgrades is active, {driver.name} {driver.version} is not held",
            fix=f"sudo apt-mark hold {driver.name}   # and unhold it before an update through the DGX Dashboard",
        )


def reached_over_wifi(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    if upkeep and upkeep.wifi:
        saving = upkeep.power_save is True
        state = "on" if saving else "off" if upkeep.power_save is False else "not known"
        yield Found(
            f"default route over {upkeep.wifi}, power saving {state}",
            title="node is reached over Wi-Fi" + (" with power saving" if saving else ""),
            severity=WARN if saving else INFO,
        )


def memlock_low(context: Context) -> Iterator[Found]:
    for facts in reading.machine_nodes(context):
        upkeep = known_or_none(facts.upkeep)
        limit = known_or_none(upkeep.memlock) if upkeep else None
        if (
            limit is not None
            and limit < _MEMLOCK_ENOUGH
            and any(spec.rdma and spec.runtime is Runtime.PROCESS for spec in reading.specs_on(context, facts.node))
        ):
            yield Found(f"ulimit -l: {limit} KiB; expected: unlimited", subject=facts.node)


def crash_dumps(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    pattern = upkeep.sysctls.get("kernel.core_pattern", "") if upkeep else ""
    if upkeep and "apport" in pattern and upkeep.active("apport.service"):
        yield Found(f"kernel.core_pattern = {pattern[:80]}")


def no_boot_menu(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    dkms = next((p for p in known_or_none(facts.packages) or () if p.name.startswith("nvidia-dkms-")), None)
    if upkeep and dkms and upkeep.grub_timeout == 0:
        yield Found(f"GRUB_TIMEOUT=0, {dkms.name} {dkms.version} is installed")


def fwupd_mismatch(facts: NodeFacts) -> Iterator[Found]:
    packages = known_or_none(facts.packages) or ()
    daemon = next((p for p in packages if p.name == "fwupd"), None)
    libraries = [p for p in packages if _LIBFWUPD.fullmatch(p.name)]
    versions = {reading.upstream(p.version) for p in libraries}
    if daemon and libraries and reading.upstream(daemon.version) not in versions:
        library = libraries[-1]
        yield Found(
            f"fwupd {daemon.version}, {library.name} {library.version}",
            fix="sudo apt update && sudo apt install fwupd " + library.name,
        )


def locale_not_english(facts: NodeFacts) -> Iterator[Found]:
    upkeep, identity = known_or_none(facts.upkeep), known_or_none(facts.identity)
    told_language = upkeep.locale if upkeep else ""
    if told_language and identity and known_or_none(identity.ota_version) and not told_language.startswith(_ENGLISH):
        yield Found(f"/etc/default/locale: {told_language}")


def asus_bios_old(facts: NodeFacts) -> Iterator[Found]:
    board = known_or_none(facts.board)
    told = _BIOS.fullmatch(board.bios) if board else None
    if told and int(told[1]) < _GOOD_BIOS:
        yield Found(
            f"bios_version: {told[0]}; expected: GX10DGX.{_GOOD_BIOS:04} or later",
            title=f"outdated BIOS {told[1]} on ASUS GX10",
            severity=WARN if any(rail.port.device.endswith("f1") for rail in rails_of(facts)) else INFO,
        )


def unclean_shutdown(facts: NodeFacts) -> Iterator[Found]:
    times = known_or_none(facts.times)
    if times and times.unclean is True:
        yield Found("last -x: two boots and no shutdown between them")


def watchdog_idle(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    found = known_or_none(upkeep.watchdog) if upkeep else None
    systemd = known_or_none(found.systemd) if found else None
    if not found or systemd is None or found.armed is not False:
        return
    if not (found.device or found.driver):
        yield Found(
            "no /dev/watchdog0, and no timer that is known",
            title="no hardware watchdog",
            fix="in the firmware setup, look for a watchdog timer",
        )
        return
    timer = f"/dev/{found.device} ({found.identity or 'unnamed'})"
    there = timer if found.device else f"driver {found.driver} is not loaded"
    yield Found(
        f"{there}; systemd: RuntimeWatchdogUSec={systemd}",
        fix=_ARM,
        repair=repair.watchdog_fix(facts.node, "" if found.device else found.driver),
    )


def log_unread(facts: NodeFacts) -> Iterator[Found]:
    if isinstance(facts.kernel_log, Unknown) and facts.kernel_log != NOT_ASKED:
        yield Found(facts.kernel_log.raw or facts.kernel_log.why)


def clock_skew(context: Context) -> Iterator[Found]:
    for one, other in combinations(reading.machine_nodes(context), 2):
        first, second = reading.offset(one), reading.offset(other)
        if first is None or second is None:
            continue
        gap, ahead = max((first[0] - second[1], one.node), (second[0] - first[1], other.node))
        if gap >= _CLOCKS_APART:
            yield Found(f"{ahead} is ahead by {gap:.0f} s or more", subject=f"{one.node}, {other.node}")


def clock_unsynchronized(facts: NodeFacts) -> Iterator[Found]:
    times = known_or_none(facts.times)
    if times and times.synchronized is False:
        off = times.ntp is False
        yield Found(
            f"timedatectl: NTPSynchronized=no, NTP={_word(times.ntp)}",
            cause="synchronization is off" if off else "no time server was reached since boot",
            fix="sudo timedatectl set-ntp true"
            if off
            else "timedatectl timesync-status; a firewall may hold back UDP 123",
            repair=repair.ntp_fix(facts.node) if off else None,
        )


def _word(on: bool | Unknown) -> str:
    return "unknown" if isinstance(on, Unknown) else "yes" if on else "no"


def clock_off(facts: NodeFacts) -> Iterator[Found]:
    between = reading.offset(facts)
    gap = max(between[0], -between[1]) if between else 0.0
    if between and gap >= _CLOCK_OFF:
        yield Found(f"{'ahead' if between[0] > 0 else 'behind'} by {gap:.0f} s or more")


def wake_not_armed(context: Context) -> Iterator[Found]:
    """The card of `wake:` is not there, or does not wake its node."""
    for facts in reading.machine_nodes(context):
        node, network = reading.node_of(context, facts.node), known_or_none(facts.network)
        if not (node and node.wake and network and network.cards is not None):
            continue
        card = next((one for one in network.cards if one.mac == node.wake), None)
        listed = ", ".join(f"{one.interface} {one.mac}" for one in network.cards) or "none"
        if card is None:
            yield Found(
                f"wake: {node.wake}; cards: {listed}",
                title="no card has the address to wake the node by",
                fix="write the address of one of these cards into the cluster file",
                subject=facts.node,
            )
        elif not card.armed:
            may = "is switched off" if card.armed is False else "is not offered by the card's driver or the firmware"
            yield Found(
                f"/sys/class/net/{card.interface}/device/power/wakeup: waking {may}",
                fix=f"sudo ethtool -s {card.interface} wol g   # netplan keeps it: `wakeonlan: true`",
                subject=facts.node,
            )


CHECKS = explained(
    __file__,
    Check("HOST011", INFO, "desktop session uses unified memory", reading.per_node(reading.sparks, desktop)),
    Check("HOST012", WARN, "node may suspend", reading.per_node(reading.sparks, may_sleep)),
    Check("HOST013", INFO, "reboot pending after an update", reading.per_node(reading.sparks, reboot_pending)),
    Check(
        "HOST014",
        INFO,
        "unattended upgrades may replace the driver",
        reading.per_node(reading.sparks, automatic_upgrades),
    ),
    Check("HOST016", INFO, "node is reached over Wi-Fi", reading.per_node(reading.sparks, reached_over_wifi)),
    Check("HOST017", WARN, "memlock limit too low for RDMA", memlock_low),
    Check("HOST018", INFO, "apport captures core dumps", reading.per_node(reading.sparks, crash_dumps)),
    Check("HOST019", INFO, "boot menu is disabled", reading.per_node(reading.sparks, no_boot_menu)),
    Check("HOST020", WARN, "fwupd and libfwupd versions differ", reading.per_node(reading.sparks, fwupd_mismatch)),
    Check("HOST022", INFO, "system locale is not English", reading.per_node(reading.machine_nodes, locale_not_english)),
    Check("HOST025", WARN, "outdated BIOS on ASUS GX10", reading.per_node(reading.sparks, asus_bios_old)),
    Check("HOST015", WARN, "kernel oops or lockup since boot", reading.in_kernel_log(_KERNEL_FAILED)),
    Check("HOST021", WARN, "disk or PCIe errors since boot", reading.in_kernel_log(_DISK_OR_PCIE)),
    Check("HOST023", INFO, "previous boot ended uncleanly", reading.per_node(reading.sparks, unclean_shutdown)),
    Check("HOST026", INFO, "hardware watchdog is not armed", reading.per_node(reading.sparks, watchdog_idle)),
    Check("HOST027", WARN, "node cannot be woken", wake_not_armed),
    Check("HOST024", INFO, "kernel log is not readable", reading.per_node(reading.sparks, log_unread)),
    Check("TIME001", WARN, "clock skew between nodes", clock_skew),
    Check("TIME002", WARN, "clock is not synchronized", reading.per_node(reading.machine_nodes, clock_unsynchronized)),
    Check("TIME003", WARN, "clock skew between node and client", reading.per_node(reading.machine_nodes, clock_off)),
)
