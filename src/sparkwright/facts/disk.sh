# Sent to nodes by disk.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: stores
# Only the cache's own folders are looked into, never the snapshots: thousands of links there say nothing of this.
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

#: space
n=0
for a in "$@"; do
  n=$((n + 1)); p=$(x "$a")
  while [ ! -e "$p" ]; do
    case "$p" in */*) p="${p%/*}" ;; *) p=. ;; esac
    [ -n "$p" ] || p=/
  done
  printf '@@ %s\n' "$n"
  LC_ALL=C df -P -B1 -- "$p"
done
