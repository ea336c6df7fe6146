# Sent to nodes by leftovers.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: leftovers
# leftovers PATTERN RUNTIME HANDLE...: shared memory that the logs of these ranks name. A file that a process has mapped
# or open is in use, whoever that is; of other users' processes only root sees it. Prints HOW, BYTES and the path.
pattern="$1" how="$2"; shift 2
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@" 2>/dev/null; fi; }
used='for p in /proc/[0-9]*; do
  ! grep -qsF "/$1" "$p/maps" && ! ls -l "$p/fd" 2>/dev/null | grep -qF "/$1" || exit 0; done; exit 1'
for h in "$@"; do
  case "$how" in docker) docker logs "$h" 2>&1 ;; *) cat "$(x "$h")/log" 2>/dev/null ;; esac |
    head -c 8388608 | grep -aoE "$pattern"
done | sort -u | while read -r f; do
  [ -f "$f" ] && [ ! -L "$f" ] || continue
  n="$(stat -c %s "$f") $f"
  if [ -O "$f" ] || [ "$(id -u)" = 0 ]; then own=; else own=as_root; fi
  if [ -n "$own" ] && ! as_root true; then echo "left $n"; continue; fi
  if $own sh -c "$used" sh "${f##*/}"; then echo "used $n"
  elif $own rm -f "$f"; then echo "removed $n"
  else echo "left $n"; fi
done
exit 0
