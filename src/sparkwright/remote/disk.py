"""df as asked on a node."""

from collections.abc import Iterable

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

_SPACE = """
n=0
for a in "$@"; do
  n=$((n + 1)); p=$(x "$a")
  while [ ! -e "$p" ]; do
    case "$p" in */*) p="${p%/*}" ;; *) p=. ;; esac
    [ -n "$p" ] || p=/
  done
  printf '@@ %s\\n' "$n"
  LC_ALL=C df -P -B1 -- "$p"
done
"""


def space(paths: Iterable[str]) -> Command:
    """Sections `1`, `2`, ... with df's table, in bytes, of each path or of its first parent that exists."""
    return script(_SPACE, *paths, timeout=10.0)
