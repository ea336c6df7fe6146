"""The node's clock, who keeps it, how long the node runs and how its last run ended."""

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.host_facts import Times
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, assignments, decimal, not_understood, sections
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


_YES_NO = {"yes": True, "no": False}


def parse(done: Completed) -> Times | Unknown:
    parts = sections(done.stdout)
    if "now" not in parts:
        return not_understood(done, "date")
    sync = dict(assignments(parts.get("sync", "")))
    return Times(
        _number(parts["now"], "date"),
        _number(parts.get("uptime", "").partition(" ")[0], "/proc/uptime"),
        _yes_no(sync, "NTPSynchronized"),
        _yes_no(sync, "NTP"),
        _unclean(parts.get("boots", "")),
    )


def _number(text: str, source: str) -> float | Unknown:
    value = decimal(text)
    return Unknown(text[:80], f"{source} gave no number") if value is None else value


def _yes_no(sync: dict[str, str], name: str) -> bool | Unknown:
    found = _YES_NO.get(sync.get(name, ""))
    return Unknown(sync.get(name, ""), f"timedatectl does not tell {name}") if found is None else found


def _unclean(text: str) -> bool | Unknown:
    """`last -x` is newest first: the boot that runs, and before it a shutdown, or the boot that ended without one."""
    words = [line.split()[0] for line in text.splitlines() if line.startswith(("reboot ", "shutdown "))]
    if len(words) < 2 or words[0] != "reboot":
        return Unknown(text[:80], "last does not tell the boot before this one")
    return words[1] == "reboot"


TIMES: Fact[Times] = Fact(times(), parse)
