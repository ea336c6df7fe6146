"""Debian packages as asked on a node."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

# Driver, its firmware and kernel modules, the kernel's own name, NIC firmware, firmware updater, NVIDIA's extras.
PATTERNS = (
    "nvidia-driver-*",
    "nvidia-firmware-*",
    "nvidia-dkms-*",
    "nvidia-kernel-*",
    "nvidia-fabricmanager*",
    "nvidia-nvswitch*",
    "nvidia-drm-options*",
    "nvidia-spark*",
    "linux-modules-nvidia-*",
    "linux-nvidia*",
    "libnvidia-compute-*",
    "mlnx-fw-updater*",
    "fwupd",
    "libfwupd*",
)
_FORMAT = r"${db:Status-Abbrev}\t${Package}\t${Version}\n"
# Exit 1 says only that some pattern fits no package.
_PACKAGES = r"""
command -v dpkg-query >/dev/null 2>&1 || exit 127
[ -z "$R" ] || [ -e "$R/var/lib/dpkg/status" ] || exit 1
echo '@@ packages'
LC_ALL=C dpkg-query --admindir="$R/var/lib/dpkg" -W -f "$@" 2>/dev/null
exit 0
"""


def packages() -> Command:
    """Section `packages`: state (`ii `, held: `hi `), name, version, parted by tabs."""
    return script(_PACKAGES, _FORMAT, *PATTERNS, timeout=10.0)
