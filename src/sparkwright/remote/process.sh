# Sent to nodes by process.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: functions
# Every process of a rank carries its folder in SPARKWRIGHT_RANK_DIR, also those that made a session of their own.
# SPT_NOENV keeps it readable: vLLM names its processes with setproctitle, which else overwrites /proc/PID/environ.
# A few names at a time, or `ps` would show a grep with all processes of the node.
marked() { (cd /proc && printf '%s\n' [0-9]*/environ | xargs -n 32 grep -lzxF "SPARKWRIGHT_RANK_DIR=$1" 2>/dev/null |
  cut -d/ -f1); }

#: room
# A full disk costs the log, not the rank. /run/user/UID goes with the last session of a user who does not linger, so
# /run/lock comes first; both are open to all, so what lies there under our name must be a folder of ours.
# lent DIR: whether it is one of ours there. spare: a new one. room DIR BYTES. place DIR: makes it, in memory where the
# disk has no room. save FILE TEXT: whole or not at all. drop DIR: removes it and what lies in memory for it.
# tidy DIR: removes the folder above, if it is empty.
lent() {
  case "${1##*/}" in rank.*) ;; *) return 1 ;; esac
  u=$(id -u); [ "${1%/*}" = "/run/lock/sparkwright-$u" ] || [ "${1%/*}" = "/dev/shm/sparkwright-$u" ]
}
spare() {
  for m in /run/lock /dev/shm; do
    m="$m/sparkwright-$(id -u)"; mkdir -m 700 "$m" 2>/dev/null
    [ -d "$m" ] && [ ! -L "$m" ] && [ -O "$m" ] && chmod 700 "$m" && room "$m" 262144 &&
      mktemp -d "$m/rank.XXXXXXXX" && return 0
  done 2>/dev/null; return 1
}
room() { head -c "$2" /dev/zero 2>/dev/null >"$1/.room"; set -- "$1" $?; rm -f "$1/.room"; return "$2"; } 2>/dev/null
place() {
  [ -e "$1" ] || rm -f "$1"
  t=$(readlink "$1") && lent "$t" && return 0
  mkdir -p "$1" 2>/dev/null && room "$1" 4194304 && return 0
  t=$(spare) || { echo "no room for $1: its disk is full, and so are /run/lock and /dev/shm" >&2; return 1; }
  rm -rf "$1"; p="$1"; while [ ! -d "${p%/*}" ]; do p="${p%/*}"; done
  ln -s "$t" "$p" && mkdir -p "$1"
}
aside() {
  [ ! -d "$1/memory" ] || return 0
  t=$(spare) || return
  ln -sn "$t" "$1/memory" 2>/dev/null || { rmdir "$t"; [ -d "$1/memory" ]; }  # the printer and the leader may both come
}
save() {
  { printf '%s\n' "$2" >"$1.new" && mv -f "$1.new" "$1"; } 2>/dev/null && return
  rm -f "$1.new"; aside "${1%/*}" && printf '%s\n' "$2" >"${1%/*}/memory/${1##*/}" && ln -sf "memory/${1##*/}" "$1"
}
drop() {
  for l in "$1/memory" "$1"; do t=$(readlink "$l") && lent "$t" && rm -rf "$t"; done
  rm -rf "$1"
}
tidy() { t=$(readlink "$1") || { rmdir "$1" 2>/dev/null; return; }; lent "$t" && rmdir "$t" 2>/dev/null && rm -f "$1"; }

#: leader
# The kernel's first choice when memory ends is the engine: what the GPU holds does not count as any process's.
# What the rank prints goes through the printer; it has all of it before the exit code is there, for which 10 s are
# waited, unless a process that has outlived the engine still holds the pipe: that is looked for after 0.4 s. `over` has
# the code at once: a server that went into the background answers meanwhile.
d="$1"; shift; umask 077
exec 9>"$d/alive"; flock 9 2>/dev/null
rm -f "$d/out"; mkfifo "$d/out" || exit 1
sh "$d/printer.sh" "$d" <"$d/out" >/dev/null 2>&1 9>&- &
l=$!; exec >"$d/out" 2>&1; rm -f "$d/out"
save "$d/pid" "$$ $(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)"
if [ -f "$d/secrets.env" ]; then set -a; . "$d/secrets.env"; set +a; fi
ulimit -l unlimited 2>/dev/null
echo 500 2>/dev/null >/proc/self/oom_score_adj
trap : TERM INT HUP
(. "$d/environment"; exec "$@") 9>&- &
c=$!
while :; do wait "$c"; rc=$?; kill -0 "$c" 2>/dev/null || break; done
# The signal that ended the wait may have come with the child's own end: then its code has not been told yet.
wait "$c" 2>/dev/null; own=$?; [ "$own" -eq 127 ] || rc=$own
save "$d/over" "$rc"
pipe=$(readlink /proc/$$/fd/1); exec >/dev/null 2>&1; i=0
while [ -n "$(started "$l")" ] && [ $i -lt 500 ]; do
  [ $i -ne 20 ] || [ -z "$(find /proc/[0-9]*/fd -name "[12]" -lname "$pipe" 2>/dev/null)" ] || break
  sleep 0.02; i=$((i+1))
done
save "$d/exit" "$rc"

#: printer
# Takes what the rank prints to its log, so that a full disk is not the engine's: it would end at a print. Once the disk
# is full the lines go to memory, the last megabyte of them, until there is room again. Hears no TERM: it ends with the
# last process that could print. `dd` writes what it has read at once.
d="$1"; trap '' TERM INT HUP; umask 077; export LC_ALL=C; t=$(readlink "$d"); lent "$t" && here=1 || here=
while :; do
  if [ -n "$here" ]; then set -- "$d/log" 1024 1024 ""
  elif room "$d" 1048576; then set -- "$d/log" 4096 16384 "oflag=append conv=notrunc"
  elif aside "$d"; then set -- "$d/memory/log" 1024 1024 ""
  else set -- /dev/null 4096 256 ""; fi
  said=$(dd of="$1" bs="$2" count="$3" $4 2>&1) || continue
  said=${said%% *}; [ $((${said%+*} + ${said#*+})) -eq "$3" ] || exit 0
done

#: scope
# Moves this process, with its environment as it is, out of the group of a system unit. systemd does so after it
# answers, on a busy node seconds later; `start` waits longer than this.
m=org.freedesktop.systemd1; as=; [ "$(id -u)" = 0 ] || as="sudo -n"
if $as busctl -q call $m /org/freedesktop/systemd1 $m.Manager StartTransientUnit "ssa(sv)a(sa(sv))" \
  "sparkwright-rank-$$.scope" fail 2 PIDs au 1 $$ CollectMode s inactive-or-failed 0 >/dev/null 2>&1; then
  j=0; while grep -qE 'sparkwright-(supervisor|standby)-' /proc/self/cgroup && [ $j -lt 80 ]; do sleep 0.05; j=$((j+1)); done
fi

#: start
d=$(x "$1"); shift
if alive "$d"; then echo "already running" >&2; exit 9; fi
umask 077; place "$d" && rm -f "$d/pid" "$d/exit" "$d/over" && printf %s "$labels" > "$d/rank.json" && : > "$d/log" || exit 1
[ -d "$d/memory" ] || rm -f "$d/memory"  # a link into what a reboot has emptied
export SPARKWRIGHT_RANK_DIR="$d" SPT_NOENV=1
s=  # a rank in the supervisor's own group would end with its unit (systemctl kill, out of memory)
case $(cat /proc/self/cgroup 2>/dev/null) in
*/user@*sparkwright-supervisor-*|*/user@*sparkwright-standby-*)
  s="systemd-run --user --scope --quiet --collect --"; $s true 2>/dev/null || s= ;;
*sparkwright-supervisor-*|*sparkwright-standby-*) leader="$scope$leader" ;;
esac
save "$d/leader.sh" "$leader" && save "$d/printer.sh" "$printer" && save "$d/environment" "$environment" || exit 1
setsid $s sh "$d/leader.sh" "$d" "$@" </dev/null >/dev/null 2>&1 &
b=$!; i=0
while [ ! -s "$d/pid" ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); kill -0 $b 2>/dev/null || i=$((i+30)); done
[ -s "$d/pid" ] || { tail -n 3 "$d/log" >&2; exit 1; }

#: printed
# printed DIR TAIL: the log's lines.
printed() {
  { tail -n "$2" "$1/log"; [ ! -s "$1/memory/log" ] || { [ -z "$(tail -c 1 "$1/log")" ] || echo
    tail -n "$2" "$1/memory/log"; }; } 2>/dev/null | tail -n "$2"
}

#: follow
# A leader that holds no lock was started by an earlier version, or has no flock. Once the lock is free there is an exit
# file or there will never be one.
d=$(x "$1"); unset SPARKWRIGHT_RANK_DIR; i=0
if alive "$d"; then
  flock -sn "$d/alive" true 2>/dev/null
  if [ $? -eq 1 ]; then i=20; flock -s "$d/alive" true & else (while alive "$d"; do sleep 1; done) & fi; g=$!
  tail -q -n "$2" -s 0.2 --pid="$g" -F "$d/log" "$d/memory/log" 2>/dev/null & t=$!
  wait "$g"; wait "$t"
else printed "$d" "$2"; fi
while [ ! -s "$d/exit" ] && [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done
now=$(date +%s.%N)
[ -d "$d" ] || { printf '\036exit %s gone 0 false %s %s\n' "$3" "$now" "$now"; exit 0; }
ended=$(stat -c %.9Y "$d/exit" 2>/dev/null) || ended=$now
printf '\036exit %s exited %s false %s %s\n' "$3" "$(cat "$d/exit" 2>/dev/null || echo unknown)" "$ended" "$now"

#: stop
# What was stopped (SIGSTOP) hears no TERM before it goes on. A leader that has ended can tell nobody to end.
# A list lacks what is forked while /proc is read, and what is at its exec just then: all have ended when two lists in a
# row are empty, and what is listed after the grace is killed each time.
grace="$1"; shift; rc=0
for a in "$@"; do
  d=$(x "$a")
  if alive "$d"; then kill -TERM "-$p" 2>/dev/null; continue; fi
  for q in $(marked "$d"); do kill -TERM "$q" 2>/dev/null; done
done
for a in "$@"; do
  d=$(x "$a"); i=0; n=0
  for q in $(marked "$d"); do kill -CONT "$q" 2>/dev/null; done
  while m=$(marked "$d"); if [ -n "$m" ]; then n=0; else n=$((n+1)); fi; [ $n -lt 2 ]; do
    [ $i -lt $((grace*10+100)) ] || { echo "$d: $m"; rc=1; break; }
    [ $i -lt $((grace*10)) ] || for q in $m; do kill -KILL "$q" 2>/dev/null; done
    sleep 0.1; i=$((i+1))
  done
done

#: remove
[ $rc -eq 0 ] || exit 1
for a in "$@"; do
  d=$(x "$a")
  while read -r t; do case "${t#/tmp/}" in */*) ;; sparkwright-*) rm -rf "/tmp/${t#/tmp/}" ;; esac; done \
    2>/dev/null < "$d/temporary"
  drop "$d"; tidy "${d%/*}"
done; :

#: list
for d in "$(x "$1")"/deployments/*/rank*; do
  [ -f "$d/rank.json" ] || continue
  if [ -s "$d/exit" ]; then st="exited $(cat "$d/exit")"; elif [ -s "$d/over" ]; then st="exited $(cat "$d/over")"
  elif alive "$d"; then st=running; else st="exited unknown"; fi
  printf 'rank\t%s\t%s\t%s\t%s\n' "$d" "$st" "$(stat -c %Y "$d/pid" 2>/dev/null)" "$(cat "$d/rank.json")"
done
