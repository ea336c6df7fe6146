"""What of a rank does not run although it has not ended."""

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import Halt
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, not_understood, whole
from sparkwright.remote import process
from sparkwright.remote.host import script

# /proc/PID/stat is `PID (NAME) STATE PARENT ...`; a name may hold brackets and blanks.
_STOPPED = r"""
stopped() {
  sed -n 's/^\([0-9]*\) (\(.*\)) \([A-Za-z]\) \([0-9]*\) .*/\1 \3 \4 \2/p' /proc/[0-9]*/stat 2>/dev/null |
    awk -v tops=" $1 " '
      { up[$1] = $3; if ($2 == "T") { n = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", n); name[$1] = n } }
      END { for (q in name) { k = q; for (i = 0; i < 99 && k > 1 && !index(tops, " " k " "); i++) k = up[k]
        if (index(tops, " " k " ")) print "stopped", q, name[q] } }'
}
"""
_CONTAINER = r"""
s=$(docker inspect -f '{{.State.Paused}} {{.State.Pid}}' "$1") || exit 1
case $s in
  true*) echo "paused ${s#* }" ;;
  *" 0") ;;
  *) stopped "${s#* }" ;;
esac
"""


def in_container(name: str) -> Command:
    """Lines `stopped PID NAME`, or `paused PID`; none where all of it runs. Exit 1: there is no such container."""
    return script(_STOPPED + _CONTAINER, name, timeout=20)


def in_folder(directory: str) -> Command:
    """The same of the processes that carry the rank's folder, and of their children."""
    return script(f"{process.FUNCTIONS}{_STOPPED}" + 'stopped "$(echo $(marked "$(x "$1")"))"', directory, timeout=20)


def halts(runtime: Runtime, handle: str) -> Fact[tuple[Halt, ...]]:
    """handle: the container's name, or the folder of the processes."""
    asked = in_container if runtime is Runtime.DOCKER else in_folder
    return Fact(asked(handle), parse)


def parse(done: Completed) -> tuple[Halt, ...] | Unknown:
    """The lowest PID first."""
    if not done.ok:
        return not_understood(done, "looking at a rank's processes")
    found = filter(None, map(_halt, done.stdout.splitlines()))
    return tuple(sorted(found, key=lambda one: one.pid))


def _halt(line: str) -> Halt | None:
    word, _, rest = line.partition(" ")
    number, _, name = rest.partition(" ")
    pid = whole(number)
    if pid is None or word not in ("stopped", "paused"):
        return None
    return Halt(pid, "".join(c if c.isprintable() else "?" for c in name), paused=word == "paused")
