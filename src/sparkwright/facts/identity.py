"""Which machine this is. The serial number in /etc/dgx-release is never read, so that it can never be logged."""

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Identity, Unknown
from sparkwright.facts.fact import Fact, Plain, assignments, not_understood, sections, whole
from sparkwright.remote.host import SHOW, script

# Only these lines of dgx-release leave the node: the file also holds the machine's serial number.
_IDENTITY = r"""
show hostname "$(at /proc/sys/kernel/hostname)"
show machine-id "$(at /etc/machine-id)"
show boot-id "$(at /proc/sys/kernel/random/boot_id)"
show pid1 "$(at /proc/1/stat)"
show vendor "$R/sys/class/dmi/id/sys_vendor"
show product "$R/sys/class/dmi/id/product_name"
printf '@@ arch\n%s\n@@ user\n%s\n@@ home\n%s\n@@ dgx\n' "$(uname -m)" "$(id -un)" "$HOME"
grep -sE '^DGX_(PLATFORM|OTA_VERSION)=' "$R/etc/dgx-release"
exit 0
"""
_NEEDED = ("hostname", "arch", "user", "home")
_SHAPES = {"hostname": Plain.HOST, "arch": Plain.NAME, "user": Plain.USER, "home": Plain.FOLDER}
_START_FIELD = 22


def identity() -> Command:
    """Sections hostname, machine-id, boot-id, pid1, vendor, product, arch, user, home, dgx."""
    return script(SHOW + _IDENTITY)


def parse(done: Completed) -> Identity | Unknown:
    """machine_id and boot_id are '' on a node that has none (an image before its first boot)."""
    parts = sections(done.stdout)
    if not all(parts.get(name) for name in _NEEDED):
        missing = [name for name in _NEEDED if not parts.get(name)]
        return Unknown(not_understood(done, "sh").raw, f"the node does not tell its {', '.join(missing)}")
    odd = [name for name, kind in _SHAPES.items() if not kind.fits(parts[name])]
    if odd:
        return Unknown(f"{odd[0]}: {parts[odd[0]]!r}"[:200], f"its {odd[0]} cannot be used as it is")
    release = dict(assignments(parts.get("dgx", "")))  # of repeated names the last counts: it is the running OTA
    return Identity(
        hostname=parts["hostname"],
        machine_id=parts.get("machine-id", ""),
        arch=parts["arch"],
        boot_id=parts.get("boot-id", ""),
        user=parts["user"],
        home=parts["home"],
        product=_product(parts),
        dgx_platform=_released(release, "DGX_PLATFORM"),
        ota_version=_released(release, "DGX_OTA_VERSION"),
        pid1_start=_pid1_start(parts.get("pid1", "")),
    )


def _product(parts: dict[str, str]) -> str | Unknown:
    """Vendor and product as the firmware names them: `NVIDIA NVIDIA_DGX_Spark`, `ASUSTeK COMPUTER INC. GX10`."""
    names = " ".join(filter(None, (parts.get("vendor", ""), parts.get("product", ""))))
    return names or Unknown("", "no /sys/class/dmi/id/product_name")


def _released(release: dict[str, str], name: str) -> str | Unknown:
    return release.get(name) or Unknown("", f"no {name} in /etc/dgx-release")


def _pid1_start(stat: str) -> int | Unknown:
    """Field 22 of /proc/1/stat, in clock ticks since boot; the program's name in brackets may hold anything."""
    fields = stat.rpartition(")")[2].split()
    value = whole(fields[_START_FIELD - 3]) if len(fields) > _START_FIELD - 3 else None
    return Unknown(stat[:80], "/proc/1/stat cannot be read") if value is None else value


IDENTITY: Fact[Identity] = Fact(identity(), parse)
