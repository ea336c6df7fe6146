"""Settings of a node's system: sysctl values, services, limits, and what waits for a reboot."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import SHOW, script

SLEEP_TARGETS = ("sleep.target", "suspend.target", "hibernate.target", "hybrid-sleep.target")
AVAHI = "avahi-daemon.service"
UNITS = (
    *SLEEP_TARGETS,
    "graphical.target",
    "display-manager.service",
    "earlyoom.service",
    "systemd-oomd.service",
    "apport.service",
    "unattended-upgrades.service",
    "nvidia-persistenced.service",
    AVAHI,
)
SYSCTLS = (
    "vm/min_free_kbytes",
    "vm/swappiness",
    "vm/dirty_ratio",
    "vm/dirty_background_ratio",
    "vm/overcommit_memory",
    "vm/max_map_count",
    "vm/nr_hugepages",
    "vm/zone_reclaim_mode",
    "kernel/dmesg_restrict",
    "kernel/core_pattern",
)
_UPKEEP = r"""
echo '@@ sysctl'
(cd "$R/proc/sys" 2>/dev/null && grep -sH . @SYSCTLS@ /dev/null)
printf '@@ locale\n'; grep -sE '^(LANG|LC_MESSAGES|LC_ALL)=' "$R/etc/default/locale"
printf '@@ grub\n'; grep -sE '^GRUB_TIMEOUT=' "$R/etc/default/grub"
printf '@@ host-keys\n'; cat "$R"/etc/ssh/ssh_host_*_key.pub 2>/dev/null
[ ! -e "$R/run/reboot-required" ] || echo '@@ reboot'
show reboot-for "$R/run/reboot-required.pkgs"
w=; while read -r i d _; do [ "$d" != 00000000 ] || { w=$i; break; }; done <"$(at /proc/net/route)"
case $w in wl*) printf '@@ wifi\n%s\n@@ power-save\n' "$w"
  [ -n "$R" ] || LC_ALL=C iw dev "$w" get power_save 2>/dev/null ;;
esac
[ -z "$R" ] || exit 0
printf '@@ memlock\n'; ulimit -l
printf '@@ target\n'; LC_ALL=C systemctl get-default 2>/dev/null
printf '@@ units\n'
LC_ALL=C systemctl show -p Names -p LoadState -p ActiveState -p UnitFileState -p StatusText "$@" 2>/dev/null
exit 0
"""


def upkeep() -> Command:
    """Sections sysctl (path:value), locale, grub, host-keys, reboot, reboot-for, wifi, power-save, memlock (KiB),
    target, units (systemctl's blocks)."""
    return script(SHOW + _UPKEEP.replace("@SYSCTLS@", " ".join(SYSCTLS)), *UNITS, timeout=10.0)
