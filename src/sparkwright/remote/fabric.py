"""RDMA devices, GIDs and addresses as asked on a node."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

# One grep reads the hundreds of small files of all GID tables; a process for each would take seconds. Reading an empty
# slot's attributes fails (-s), its GID reads as all zero (dropped here: it is most of the table).
_RDMA = """
out=$(LC_ALL=C rdma -j link 2>/dev/null || LC_ALL=C rdma link 2>/dev/null); e=$?
printf '@@ exit\\n%s\\n@@ rdma\\n%s\\n' "$e" "$out"
if cd "$R/sys/class/infiniband" 2>/dev/null; then
  printf '@@ sysfs\\n'
  LC_ALL=C grep -sH . */ports/*/state */ports/*/phys_state */ports/*/gids/* */ports/*/gid_attrs/types/* \\
    */ports/*/gid_attrs/ndevs/* /dev/null | grep -v ':0000:0000:0000:0000:0000:0000:0000:0000$'
  printf '@@ netdevs\\n'
  for n in */device/net/*; do [ ! -e "$n" ] || echo "$n"; done
fi
[ "$e" -eq 0 ] || { printf '@@ ibdev2netdev\\n'; LC_ALL=C ibdev2netdev 2>/dev/null; }
set -- */ports/*/gid_attrs/types/*
[ -e "$1" ] || { printf '@@ show_gids\\n'; LC_ALL=C show_gids 2>/dev/null; }
exit 0
"""
_ADDRESSES = """
printf '@@ ip\\n'
LC_ALL=C ip -j addr 2>/dev/null || LC_ALL=C ip addr || exit
printf '@@ speed\\n'
grep -sH . /sys/class/net/*/speed
exit 0
"""


def rdma() -> Command:
    """Sections `exit` and `rdma` (JSON, or text of an old iproute2), `sysfs` and `netdevs` (path:line, paths below
    /sys/class/infiniband), and as stand-ins `ibdev2netdev` (no rdma) and `show_gids` (no GIDs in sysfs)."""
    return script(_RDMA, timeout=10.0)


def addresses() -> Command:
    """Sections `ip` (JSON, or text of an old iproute2) and `speed` (path:Mb/s, -1 for none)."""
    return script(_ADDRESSES, timeout=10.0)
