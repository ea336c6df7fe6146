# Sent to nodes by docker.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: follow
# A restart policy that somebody set starts a container again before its end can be seen: its start is another one then.
n="$1" tail="$2"; began=$(docker inspect -f '{{.State.StartedAt}}' "$n" 2>/dev/null)
while :; do
  docker logs -f $tail "$n" 2>&1
  f='{{.State.StartedAt}} {{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.State.FinishedAt}}'
  # A daemon that is away, is ending, or has just begun knows of no container: only one that lists the others twice
  # without it reports that it is gone.
  k=0; until s=$(docker inspect -f "$f" "$n" 2>/dev/null); do
    if l=$(docker ps -aq --filter "name=^/$n\$" 2>/dev/null) && [ -z "$l" ]; then k=$((k+1)); else k=0; fi
    [ $k -lt 2 ] || { s="- gone 0 false now"; break; }
    sleep 1
  done
  now=${s%% *} s=${s#* }
  case "$s" in running*|restarting*) tail="--since 1s"; sleep 0.2 ;; *) break ;; esac
  [ "$now" = "${began:=$now}" ] || { s="restarted unknown false ${s##* }"; break; }
done
ended=$(date -d "${s##* }" +%s.%N) || ended=0
printf '\036exit %s %s %s %s\n' "$3" "${s% *}" "$ended" "$(date +%s.%N)"

#: stop
# What was stopped (SIGSTOP) hears no TERM before it goes on.
g=$1; shift
for n in "$@"; do docker stop -t "$g" "$n" >/dev/null 2>&1 & done
for n in "$@"; do docker kill -s CONT "$n" >/dev/null 2>&1 & done; wait
left=0
for n in "$@"; do
  if [ "$(docker inspect -f '{{.State.Running}}' "$n" 2>/dev/null)" = true ]; then echo "$n"; left=1; fi
done
exit $left

#: remove
for n in "$@"; do
  docker stop -t "$GRACE" "$n" >/dev/null 2>&1 &
done
wait
left=0
for n in "$@"; do
  docker rm -f -v "$n" >/dev/null 2>&1
  if docker inspect "$n" >/dev/null 2>&1; then echo "$n"; left=1; fi
done
exit $left
