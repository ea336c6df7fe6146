"""A node's clock, and when it was started."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import SHOW, script

_TIMES = r"""
printf '@@ now\n'; date +%s.%N
show uptime "$R/proc/uptime"
[ -z "$R" ] || exit 0
printf '\n@@ sync\n'; LC_ALL=C timeout 3 timedatectl show -p NTP -p NTPSynchronized 2>/dev/null
printf '@@ boots\n'; LC_ALL=C last -x -n 12 reboot shutdown 2>/dev/null
exit 0
"""


def times() -> Command:
    """Sections `now` (seconds since the epoch), `uptime`, `sync` (timedatectl), `boots` (last)."""
    return script(SHOW + _TIMES, timeout=10.0)
