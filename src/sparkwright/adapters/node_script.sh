# Sent to nodes by node_script.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: frame
# `watch` reads the connection and, at its end, ends the children of the main shell: `timeout`, which takes the whole
# process group of its command with it. This is how a cancelled call or a closed stream leaves nothing on the node;
# sshd itself ends nothing when a session without a terminal goes away.
# Again and again, and at last the group itself: `timeout` loses a TERM that comes while it starts its command, and a
# call that was cancelled at once left that command alive.
# The command runs in the foreground because a shell makes background jobs deaf to SIGINT.
# `finish` ends what is left of our own process group, or `watch` would hold the session open.
export LC_ALL=C.UTF-8 PATH="$PATH:@SBIN@"
cd "${HOME:-/}" 2>/dev/null
exec 3<&0
watch() {
  cat >/dev/null; trap '' TERM; read -r me _ </proc/self/stat; k=; i=0
  while [ -d /proc/$$ ] && [ $i -lt 100 ]; do
    read -r c </proc/$$/task/$$/children
    for p in $c; do
      [ "$p" != "$me" ] || continue
      case " $k " in *" $p "*) [ $((i % 10)) -eq 0 ] || continue ;; *) k="$k $p" ;; esac
      kill -TERM "$p"; [ $i -lt @KILL@ ] || kill -KILL "-$p"
    done
    sleep 0.05; i=$((i+1))
  done
  for p in $k; do kill -KILL "-$p"; done
}
finish() { printf '@MARK@ %s\n' "$1"; printf '@MARK@ %s\n' "$1" >&2; trap '' TERM; kill -TERM 0; exit 0; }
printf '@MARK@\n'; printf '@MARK@\n' >&2

#: folder
# Shared memory first: facts must come from a node whose disk is full, too.
trap 'test -z "$t" || rm -rf "$t"' EXIT; trap 'exit 1' HUP INT TERM PIPE
t=/dev/shm/@MARK@; mkdir -m 700 "$t" 2>/dev/null ||
{ t="${TMPDIR:-/tmp}/@MARK@"; mkdir -m 700 "$t"; } || { t=; finish 73; }
printf '@MARK@|' >"$t/m"
watch <&3 >/dev/null 2>&1 &

#: put
umask 077; set -e; p=$(x "$1"); n=
case "$p" in /*) ;; *) p="./$p" ;; esac
trap 'test -z "$n" || rm -f "$n"' EXIT
mkdir -p "${p%/*}/"; n="$p.$4"; set -C; cat >"$n"; set +C
test "$(wc -c <"$n")" -eq "$3" || { echo "only $(wc -c <"$n") of $3 bytes arrived" >&2; exit 1; }
chmod "$2" "$n"; mv -fT "$n" "$p"; n=

#: note
# The log may not be writable (disk full, home read-only) and `down` must work all the same: the shell's complaint
# then stands in the command's stderr, and the command runs.
(
umask 077; d=$(x @STATE@); { [ -d "$d" ] || mkdir -p "$d"; } &&
printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" @REST@ >>"$d/audit.log"
) </dev/null 3<&-
