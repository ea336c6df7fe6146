"""Processes of a rank that have not ended and do not run: stopped by a signal, or paused with their container.

Asked only when an engine stands still: a process that is stopped is the one thing that proves at once that no kernel is
being compiled. A debugger's own stop (`t`) is not told: it is somebody's work. Of a container only what descends from
its first process counts: `docker exec` starts others in it, and a shell's Ctrl-Z stops those.
"""

from sparkwright.domain.command import Command
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
