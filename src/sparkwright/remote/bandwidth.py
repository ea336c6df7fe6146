"""ib_write_bw between two nodes: a server bound to the fabric, and a client that waits for it."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

SECONDS = 3
# Four queue pairs, as it takes to fill a rail. perftest before 24 calls the option that binds --source_ip; -h tells.
_SERVER = r"""
b=--bind_source_ip; ib_write_bw -h 2>&1 | grep -q -e "$b" || b=--source_ip
exec ib_write_bw -d "$1" -x "$2" -p "$3" -D "$4" $b "$5" -q 4 -F --report_gbits 2>&1
"""
_CLIENT = r"""
b=--bind_source_ip; ib_write_bw -h 2>&1 | grep -q -e "$b" || b=--source_ip
i=0
while :; do
  out=$(LC_ALL=C ib_write_bw -d "$1" -x "$2" -p "$3" -D "$4" $b "$5" -q 4 -F --report_gbits "$6" 2>&1); e=$?
  i=$((i + 1))
  case "$out" in *"ouldn't connect to"*) [ $i -ge 12 ] || [ $e -eq 0 ] || { sleep 0.25; continue; } ;; esac
  break
done
printf '%s\n' "$out"; exit $e
"""


def server(device: str, gid: int, port: int, address: str) -> Command:
    """Ends with the test, or when no client comes in time. Listens on `address` alone."""
    return script(_SERVER, device, str(gid), str(port), str(SECONDS), address, timeout=SECONDS + 12.0)


def client(device: str, gid: int, port: int, way: tuple[str, str]) -> Command:
    """way: own address and the server's. Tries for 3 s until the server is there; its table is on stdout."""
    own, there = way
    return script(_CLIENT, device, str(gid), str(port), str(SECONDS), own, there, timeout=SECONDS + 10.0)
