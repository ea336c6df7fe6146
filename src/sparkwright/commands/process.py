"""An engine without Docker: a session leader with a pid file, a log file and an exit file in one folder per rank.

The folder is `<state>/deployments/<deployment>/rank<k>`:
  rank.json   labels, as on a container
  pid         `PID START`: START is field 22 of /proc/PID/stat, so that a reused pid is not taken for ours
  log         stdout and stderr
  exit        exit code, once the engine has ended
  alive       locked (flock) by the leader for as long as it lives: who waits for its end need not look again and again
  secrets.env 0600, sourced before the start
  files/      what RankSpec.files names
  temporary   folders below /tmp that a launcher has made for the rank, one a line
"""

from collections.abc import Sequence

from sparkwright.commands.host import script
from sparkwright.domain.command import Command
from sparkwright.domain.plan import RankSpec

# Every process of a rank carries its folder in SPARKWRIGHT_RANK_DIR, also those that made a session of their own.
# SPT_NOENV keeps it readable: vLLM names its processes with setproctitle, which else overwrites /proc/PID/environ.
# A zombie has ended, however long its parent takes to notice.
FUNCTIONS = r"""
started() { set -- $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null); [ "${1:-Z}" = Z ] || echo "${20}"; }
alive() { [ -s "$1/pid" ] && read -r p s < "$1/pid" && [ "$(started "$p")" = "$s" ]; }
marked() { grep -lzxF "SPARKWRIGHT_RANK_DIR=$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
"""

# The kernel's first choice when memory ends is the engine: what the GPU holds does not count as any process's.
_LEADER = r"""
d="$1"; shift
exec 9>"$d/alive"; flock 9 2>/dev/null
echo "$$ $(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)" > "$d/pid.new" && mv "$d/pid.new" "$d/pid"
if [ -f "$d/secrets.env" ]; then set -a; . "$d/secrets.env"; set +a; fi
ulimit -l unlimited 2>/dev/null
echo 500 2>/dev/null >/proc/self/oom_score_adj
trap : TERM INT HUP
"$@" 9>&- &
c=$!
while :; do wait "$c"; rc=$?; kill -0 "$c" 2>/dev/null || break; done
# The signal that ended the wait may have come with the child's own end: then its code has not been told yet.
wait "$c" 2>/dev/null; own=$?; [ "$own" -eq 127 ] || rc=$own
echo "$rc" > "$d/exit.new" && mv "$d/exit.new" "$d/exit"
"""

_START = (
    FUNCTIONS
    + r"""
d=$(x "$1"); leader="$2"; labels="$3"; shift 3
if alive "$d"; then echo "already running" >&2; exit 9; fi
umask 077; mkdir -p "$d" && rm -f "$d/pid" "$d/exit" && printf %s "$labels" > "$d/rank.json" || exit 1
export SPARKWRIGHT_RANK_DIR="$d" SPT_NOENV=1
setsid sh -c "$leader" rank "$d" "$@" </dev/null >"$d/log" 2>&1 &
b=$!; i=0
while [ ! -s "$d/pid" ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); kill -0 $b 2>/dev/null || i=$((i+30)); done
[ -s "$d/pid" ] || { tail -n 3 "$d/log" >&2; exit 1; }
"""
)

# A leader that holds no lock was started by an earlier version, or has no flock. Once the lock is free there is an exit
# file or there will never be one.
_FOLLOW = (
    FUNCTIONS
    + r"""
d=$(x "$1"); unset SPARKWRIGHT_RANK_DIR; i=0
if alive "$d"; then
  flock -sn "$d/alive" true 2>/dev/null
  if [ $? -eq 1 ]; then i=20; flock -s "$d/alive" true & else (while alive "$d"; do sleep 1; done) & fi; g=$!
  tail -n "$2" -s 0.2 --pid="$g" -f "$d/log" & t=$!
  wait "$g"; wait "$t"
else tail -n "$2" "$d/log" 2>/dev/null; fi
while [ ! -s "$d/exit" ] && [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done
now=$(date +%s.%N)
[ -d "$d" ] || { printf '\036exit gone 0 false %s %s\n' "$now" "$now"; exit 0; }
ended=$(stat -c %.9Y "$d/exit" 2>/dev/null) || ended=$now
printf '\036exit exited %s false %s %s\n' "$(cat "$d/exit" 2>/dev/null || echo 137)" "$ended" "$now"
"""
)

# What was stopped (SIGSTOP) hears no TERM before it goes on. A leader that has ended can tell nobody to end.
_STOP = (
    FUNCTIONS
    + r"""
grace="$1"; shift; rc=0
for a in "$@"; do
  d=$(x "$a")
  if alive "$d"; then kill -TERM "-$p" 2>/dev/null; continue; fi
  for q in $(marked "$d"); do kill -TERM "$q" 2>/dev/null; done
done
for a in "$@"; do
  d=$(x "$a"); i=0
  for q in $(marked "$d"); do kill -CONT "$q" 2>/dev/null; done
  while [ -n "$(marked "$d")" ] && [ $i -lt $((grace*10)) ]; do sleep 0.1; i=$((i+1)); done
  for q in $(marked "$d"); do kill -KILL "$q" 2>/dev/null; done
  i=0; while [ -n "$(marked "$d")" ] && [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done
  [ -z "$(marked "$d")" ] || { echo "$d: $(marked "$d")"; rc=1; }
done
"""
)

_REMOVE = (
    _STOP
    + r"""
[ $rc -eq 0 ] || exit 1
for a in "$@"; do
  d=$(x "$a")
  while read -r t; do case "${t#/tmp/}" in */*) ;; sparkwright-*) rm -rf "/tmp/${t#/tmp/}" ;; esac; done \
    2>/dev/null < "$d/temporary"
  rm -rf "$d"; rmdir "${d%/*}" 2>/dev/null
done; :
"""
)

LIST = (
    FUNCTIONS
    + r"""
for d in "$(x "$1")"/deployments/*/rank*; do
  [ -f "$d/rank.json" ] || continue
  if alive "$d"; then st=running; elif [ -s "$d/exit" ]; then st="exited $(cat "$d/exit")"; else st="exited 137"; fi
  printf 'rank\t%s\t%s\t%s\t%s\n' "$d" "$st" "$(stat -c %Y "$d/pid" 2>/dev/null)" "$(cat "$d/rank.json")"
done
"""
)


def rank_dir(state: str, deployment: str, rank: int) -> str:
    return f"{state}/deployments/{deployment}/rank{rank}"


def files_dir(directory: str) -> str:
    """Where RankSpec.files lie on the node, for both runtimes."""
    return f"{directory}/files"


def start(spec: RankSpec, directory: str, labels: str) -> Command:
    """Starts the rank and returns once its pid file is there. Exit 9: it runs already."""
    env = [f"{key}={value}" for key, value in spec.env.items()]
    words = ("env", *env, *(spec.entrypoint or ()), *spec.argv)
    return script(_START, directory, _LEADER, labels, *words, timeout=30, changes=f"start {directory}")


def follow(directory: str, tail: int = 0) -> Command:
    """Log lines (the last `tail`, 0: all) as they come; after the end a line as docker.follow gives it."""
    return script(_FOLLOW, directory, str(tail) if tail else "+1")


def logs(directory: str, tail: int) -> Command:
    return script('tail -n "$2" "$(x "$1")/log"', directory, str(tail) if tail else "+1", timeout=60)


def stop(directories: Sequence[str], grace: int) -> Command:
    """TERM, then KILL after `grace` seconds, then verified gone. Keeps the folders. Exit 1 with what still lives."""
    return script(_STOP + "exit $rc", str(grace), *directories, timeout=grace + 30, changes=_changes(directories))


def remove(directories: Sequence[str], grace: int) -> Command:
    """As stop, then removes the folders."""
    return script(_REMOVE, str(grace), *directories, timeout=grace + 30, changes=_changes(directories))


def _changes(directories: Sequence[str]) -> str:
    return f"stop {' '.join(directories)}"
