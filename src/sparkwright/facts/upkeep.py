"""The setup of a node's system: sysctl values, services, limits, ssh host keys, pending reboots."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

from sparkwright.domain.command import Completed
from sparkwright.domain.host_facts import HardwareWatchdog, Package, Unit, Upkeep
from sparkwright.domain.unknown import NOT_ASKED, Unknown
from sparkwright.facts.fact import Fact, assignments, found_or, not_understood, sections, whole_number
from sparkwright.facts.sample import CARD_RESET
from sparkwright.remote.host import script, script_texts
from sparkwright.remote.repair import CLOCK_UNIT

SLEEP_TARGETS = ("sleep.target", "suspend.target", "hibernate.target", "hybrid-sleep.target")
AVAHI = "avahi-daemon.service"
_SERVICES = (
    "graphical.target display-manager.service earlyoom.service systemd-oomd.service apport.service "
    "unattended-upgrades.service nvidia-persistenced.service"
)
UNITS = (*SLEEP_TARGETS, *_SERVICES.split(), AVAHI, CLOCK_UNIT)
SYSCTLS = (
    "vm/min_free_kbytes vm/swappiness vm/dirty_ratio vm/dirty_background_ratio vm/overcommit_memory "
    "vm/max_map_count vm/nr_hugepages vm/zone_reclaim_mode kernel/dmesg_restrict kernel/core_pattern"
)
_sh = script_texts(__name__, SYSCTLS=SYSCTLS)
DEVICE = "watchdog0"  # that one systemd takes by itself
_NO_LIMIT = "unlimited"
_ON_OFF = {"Power save: on": True, "Power save: off": False}
# Driver, its firmware and kernel modules, the kernel's own name, NIC firmware, firmware updater, NVIDIA's extras.
PATTERNS = (
    "nvidia-driver-* nvidia-firmware-* nvidia-dkms-* nvidia-kernel-* nvidia-fabricmanager* nvidia-nvswitch* "
    "nvidia-drm-options* nvidia-spark* linux-modules-nvidia-* linux-nvidia* libnvidia-compute-* "
    "mlnx-fw-updater* fwupd libfwupd*"
)
_FORMAT = r"${db:Status-Abbrev}\t${Package}\t${Version}\n"
# dpkg's three letters: what is wanted (i, h for hold), what is (i: installed), and an error or a blank.
_ROW = re.compile(r"([a-z])i.\t([a-z0-9][a-z0-9+.-]*)\t(\S+)", re.ASCII)


def parse(done: Completed) -> Upkeep | Unknown:
    """Each part as far as the node reports it; an unknown setting is left out."""
    parts = sections(done.stdout)
    if "sysctl" not in parts:
        return not_understood(done, "sh")
    locale = dict(assignments(parts.get("locale", "")))
    grub = dict(assignments(parts.get("grub", "")))
    text, saving = parts.get("memlock", ""), parts.get("power-save", "")
    return Upkeep(
        sysctls=dict(_sysctls(parts["sysctl"])),
        units=dict(_units(parts.get("units", ""))),
        memlock=None if text == _NO_LIMIT else _number(text, "the shell does not print `ulimit -l`"),
        target=parts.get("target", ""),
        reboot_needed="reboot" in parts,
        reboot_for=tuple(dict.fromkeys(parts.get("reboot-for", "").split())),
        locale=next((locale[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if locale.get(name)), ""),
        grub_timeout=_number(grub.get("GRUB_TIMEOUT", ""), "no GRUB_TIMEOUT in /etc/default/grub"),
        host_keys=tuple(_fingerprints(parts.get("host-keys", ""))),
        wifi=parts.get("wifi", ""),
        watchdog=_watchdog(parts),
        power_save=found_or(_ON_OFF.get(saving), saving[:80], "iw does not report the power saving"),
    )


def _sysctls(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        path, colon, value = line.partition(":")
        if colon:
            yield path.replace("/", "."), " ".join(value.split())


def _units(text: str) -> Iterator[tuple[str, Unit]]:
    """Units by each of their names: display-manager.service is a second name of gdm.service."""
    for block in text.split("\n\n"):
        told = dict(assignments(block))
        state = [told.get(name, "") for name in ("LoadState", "ActiveState", "UnitFileState", "StatusText")]
        for name in told.get("Names", "").split():
            yield name, Unit(name, *state)


_DRIVERS = ("sbsa_gwdt", "i6300esb")


def _watchdog(parts: dict[str, str]) -> HardwareWatchdog | Unknown:
    """The first watchdog of the kernel, and what systemd has been told about it."""
    if "watchdog" not in parts:
        return NOT_ASKED
    said = dict(_sysctls(parts["watchdog"]))
    state, driver = said.get("state", ""), said.get("driver", "")
    systemd = dict(assignments(parts.get("systemd", ""))).get("RuntimeWatchdogUSec")
    return HardwareWatchdog(
        device=DEVICE if said.get("device") == DEVICE else "",
        identity=said.get("identity", "")[:80],
        driver=driver if driver in _DRIVERS else "",
        active=found_or({"active": True, "inactive": False}.get(state), state[:80], "the kernel does not report it"),
        timeout=_number(said.get("timeout", ""), "the kernel does not report it"),
        systemd=found_or(systemd, "", "systemctl does not report RuntimeWatchdogUSec"),
        has_reset=bool((whole_number(said.get("bootstatus", "")) or 0) & CARD_RESET),
    )


def _number(text: str, why: str) -> int | Unknown:
    return found_or(whole_number(text), text[:80], why)


def _fingerprints(text: str) -> Iterator[str]:
    """Fingerprints as `ssh-keygen -l` prints them, sorted: `SHA256:` and base64 without padding."""
    for line in sorted(text.splitlines()):
        words = line.split()
        try:
            blob = base64.b64decode(words[1], validate=True) if len(words) > 1 and words[0].isascii() else b""
        except (binascii.Error, ValueError):
            continue
        if blob:
            yield "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def parse_packages(done: Completed) -> tuple[Package, ...] | Unknown:
    """The packages; () if none of them is installed; Unknown on a system without dpkg."""
    parts = sections(done.stdout)
    if "packages" not in parts:
        return not_understood(done, "dpkg-query")
    rows = (found for found in map(_ROW.fullmatch, parts["packages"].splitlines()) if found)
    return tuple(Package(row[2], row[3], row[1] == "h") for row in rows)


# Section `packages`: state (`ii `, held: `hi `), name, version, parted by tabs.
PACKAGES: Fact[tuple[Package, ...]] = Fact(
    script(_sh("packages"), _FORMAT, *PATTERNS.split(), timeout=10.0), parse_packages
)
# Sections sysctl (path:value), locale, grub, host-keys, reboot, reboot-for, watchdog (name:value), wifi, power-save,
# memlock (KiB), systemd, target, units (systemctl's blocks).
UPKEEP: Fact[Upkeep] = Fact(script(_sh("show", "upkeep"), *UNITS, timeout=10.0), parse)
