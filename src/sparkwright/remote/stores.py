"""The folders of models as asked on a node: whose they are, on what file system, and what a cache has unfinished."""

from collections.abc import Iterable

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

# Only the cache's own folders are looked into, never the snapshots: thousands of links there say nothing of this.
_STORES = r"""
me=$(id -un); n=0
for a in "$@"; do
  n=$((n + 1)); p=$(x "$a"); [ -d "$p" ] || continue
  printf '@@ %s fs\n' "$n"; stat -f -L -c '%T %c %d' -- "$p"
  m=$(df -P -- "$p" 2>/dev/null | tail -n 1); awk -v m="${m##* }" '$2 == m { t = $3 } END { print t }' /proc/mounts
  printf '@@ %s foreign\n' "$n"
  timeout 1 find "$p" -maxdepth 3 ! -user "$me" -printf '%u %p\n' -quit 2>/dev/null
  printf '@@ %s partial\n' "$n"
  timeout 1 find "$p" -maxdepth 3 -path '*/blobs/*' -name '*.incomplete' -printf '%s %P\n' 2>/dev/null | head -n 50
  printf '@@ %s refs\n' "$n"
  for r in "$p"/models--*/refs/main; do
    [ -f "$r" ] || continue
    t=$(cat "$r"; printf .); t="${t%.}"; e="${r%/refs/main}"; s=absent
    [ ! -d "$e/snapshots/$(cat "$r")" ] || s=there
    printf '%s %s %s\n' "${e##*/}" "$s" "$(printf %s "$t" | od -An -c | tr -d ' \n')"
  done
done
printf '@@ end\n'
exit 0
"""


def stores(paths: Iterable[str]) -> Command:
    """Sections `N fs` (type and inodes as stat says, then the mount's type), `N foreign` (OWNER PATH of the first),
    `N partial` (BYTES FILE), `N refs` (ENTRY there|absent TEXT, a newline in it as `\\n`); none for a folder that is
    not there; at last `end`."""
    return script(_STORES, *paths, timeout=10.0)
