"""What goes on in a node's memory now."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import SHOW, script

SECONDS = 0.4
# No arguments of any process: they may hold keys.
_ACTIVITY = r"""
count() { printf '\n@@ %s\n' "$1"; grep -sE '^(pswpin|pswpout|oom_kill) ' "$R/proc/vmstat"; }
count before
[ -n "$R" ] || { sleep "$1" & }
show pressure "$R/proc/pressure/memory"
if [ -z "$R" ]; then
  p=$(LC_ALL=C ps -eo pid=,rss=,user=,unit=,comm= --sort=-rss 2>/dev/null)
  printf '\n@@ processes\n%s\n' "$p" | head -n 24
elif [ -r "$R/proc/ps" ]; then show processes "$R/proc/ps"; fi
wait
count after
exit 0
"""


def activity() -> Command:
    """Sections `before` and `after` (of /proc/vmstat), `pressure`, `processes` (pid, rss KiB, user, unit, name)."""
    return script(SHOW + _ACTIVITY, f"{SECONDS:g}", timeout=10.0)
