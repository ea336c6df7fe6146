# Sent to nodes by keepers.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: keepers
# RUNTIME, HANDLE, STATE and the labels as JSON, with a tab between.
for d in "$(x "$1")"/keepers/*/rank*; do
  [ -f "$d/rank.json" ] || continue
  if alive "$d"; then st=running; else st=ended; fi
  printf 'process\t%s\t%s\t%s\n' "$d" "$st" "$(cat "$d/rank.json")"
done
command -v docker >/dev/null 2>&1 || exit 0
ids=$(docker ps -aq --no-trunc --filter label=@LABEL@keeper 2>/dev/null) || exit 0
f='docker{{"\t"}}{{slice .Name 1}}{{"\t"}}{{.State.Status}}{{"\t"}}{{json .Config.Labels}}'
[ -z "$ids" ] || docker inspect --format "$f" $ids 2>/dev/null
exit 0
