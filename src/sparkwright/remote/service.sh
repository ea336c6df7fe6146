# Sent to nodes by service.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: units
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
linger() { [ -e "/var/lib/systemd/linger/$(id -un)" ]; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
ctl() { if [ "$1" = user ]; then shift; systemctl --user "$@"; else shift; as_root systemctl "$@"; fi; }
units() { if [ "$1" = user ]; then echo "$HOME/.config/systemd/user"; else echo /etc/systemd/system; fi; }

#: detached
orphan() {
  c=$(cat "$1/child" 2>/dev/null) && rm -f "$1/child" || return 0
  case "$(readlink "/proc/$c/cwd")/" in "${1%/services/*}"/*) ;; *) return 0 ;; esac
  kill -TERM "$c" 2>/dev/null; i=0
  while [ -n "$(started "$c")" ] && [ $i -lt 150 ]; do sleep 0.1; i=$((i+1)); done
  [ -z "$(started "$c")" ] || kill -KILL "$c" 2>/dev/null
}
stop() {
  alive "$1" || { orphan "$1"; return 0; }
  kill -TERM "$p" 2>/dev/null; i=0
  while alive "$1" && [ $i -lt 150 ]; do sleep 0.1; i=$((i+1)); done
  ! alive "$1" || { kill -KILL "-$p" 2>/dev/null; sleep 0.2; }
  rm -f "$1/pid"
}

#: whole
# `whole FOLDER DIGEST`: a name alone proves nothing after a power cut; the digest is the manifest's own.
whole() (cd "$1" 2>/dev/null && [ "$(sha256sum MANIFEST 2>/dev/null | cut -c1-16)" = "$2" ] &&
  sha256sum -c --status MANIFEST 2>/dev/null)

#: answers
# `answers SECONDS`: this user's systemd does, or does within that time where it begins or ends just now: after a boot,
# or on a busy node, a login is let in before it has begun.
answers() {
  k=0; until systemctl --user show-environment >/dev/null 2>&1; do
    [ $k -lt $(($1 * 5)) ] || return 1
    case "$(systemctl show -P ActiveState "user@$(id -u).service" 2>/dev/null)" in *ing|active) ;; *) return 1 ;; esac
    sleep 0.2; k=$((k+1))
  done
}

#: seat
# The first of these that is new enough. A home that is not the account's own is not where its systemd looks.
printf '@@ user\n%s\n@@ state\n%s\n@@ python\n' "$(id -un)" "$(x "$1")"
new='import sys, _ssl, _sqlite3, importlib.util as u; sys.exit(sys.version_info < (3, 11) or not u.find_spec("asyncio"))'
d="$(x "$1")"; shift
for n in "$@"; do
  p=$(command -v "$n" 2>/dev/null) || continue
  if "$p" -I -S -c "$new" 2>/dev/null; then echo "good $p"; break; fi
  echo "old $("$p" --version 2>&1 | head -n 1)"
done
printf '@@ addresses\n%s\n@@ manager\n' "$(hostname -I 2>/dev/null)"
if [ ! -d /run/systemd/system ]; then echo "no systemd runs here"
elif [ "$(getent passwd "$(id -u)" | cut -d: -f6)" != "$HOME" ]; then echo "$HOME is not the account's own home"
else
  if [ "$(id -u)" != 0 ] && answers 15; then echo user
  elif as_root true 2>/dev/null; then echo system; fi
  ! linger || echo lingers
fi
printf '@@ runtimes\n'; for r in "$d"/runtime/*; do ! whole "$r" "${r##*/}" || echo "${r##*/}"; done
printf '@@ environment\n'; env | grep -E '^(PATH|LD_LIBRARY_PATH)=.'; exit 0

#: reach
set -- ${SSH_CONNECTION:-}
a="${3:-127.0.0.1}"; p="${4:-22}"
printf '@@ user\n%s\n@@ addresses\n%s %s\n' "$(id -un)" "$a" "$(hostname -I 2>/dev/null)"
printf '@@ port\n%s\n@@ keys\n' "$p"
cat /etc/ssh/ssh_host_*_key.pub 2>/dev/null || ssh-keyscan -T 3 -p "$p" "$a" 2>/dev/null | cut -d' ' -f2-
exit 0

#: linger
linger && exit 0
loginctl enable-linger 2>/dev/null || as_root loginctl enable-linger "$(id -un)" || exit 1
d="$(x "$1")"; mkdir -p "$d" && : > "$d/lingering"
i=0; until answers 30 || [ $i -ge 25 ]; do sleep 0.2; i=$((i+1)); done
linger

#: unpack
# Under a lock where the file system has them; what a power cut has left there goes. The whole file system is synced,
# which may wait for what a download beside it writes: one sync for each of 1,700 files took four times as long.
d="$(x "$1")/runtime"; mkdir -p "$d" && chmod 700 "$d" && cd "$d" || exit 1
exec 9<.; flock -E 9 -w 150 9; [ $? != 9 ] || { echo "$d is locked by another process since 150 s" >&2; exit 1; }
! whole "$2" "$2" || exit 0
rm -rf .[0-9a-f]*; t=$(mktemp -d ".$2.XXXXXX") || exit 1
trap 'rm -rf "$t"' EXIT; trap 'exit 143' TERM INT HUP
cat >"$t/@ARCHIVE@" && tar -xzf "$t/@ARCHIVE@" -C "$t" && whole "$t" "$2" && sync -f "$t" || exit 1
rm -rf "$2" && mv -T "$t" "$2" && sync .

#: restore
# Runs before a program of ours: files that a failing disk, a person or a power cut has damaged come back from the
# archive next to them.
r="$1"; cd "$r" && exec 9<. || exit; flock -w 30 9; ! whole . "${r##*/}" || exit 0
echo "sparkwright: files in $r are damaged, and are restored from its archive" >&2
tar -xzf @ARCHIVE@ && whole . "${r##*/}" || echo "sparkwright: they cannot be restored: the same sparkwright up does" >&2

#: install
m="$1"; name="$2"; u="$(units "$m")/$name"
if printf %s "$3" | cmp -s - "$u" && ctl "$m" is-active -q "$name"; then echo same; exit 0; fi
if [ "$m" = user ]; then mkdir -p "${u%/*}" && printf %s "$3" > "$u"
else printf %s "$3" | as_root tee "$u" >/dev/null; fi
ctl "$m" daemon-reload && ctl "$m" enable -q "$name" && ctl "$m" restart "$name"

#: leader
d="$1"; home="$2"; shift 2
echo "$$ $(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)" > "$d/pid.new" && mv "$d/pid.new" "$d/pid"
over=; c=
trap 'over=1; [ -z "$c" ] || kill -TERM "$c" 2>/dev/null' TERM INT HUP
while [ -z "$over" ] && [ -d "$home" ]; do
  if [ -e "$d/paused" ]; then sleep 0.2; continue; fi
  (. "$d/environment"; exec "$@") & c=$!
  echo "$c" > "$d/child"
  while kill -0 "$c" 2>/dev/null; do wait "$c"; done
  rm -f "$d/child"; c=
  [ -n "$over" ] || sleep 1
done

#: detach
home="$1"; d="$home/services/$2"; mark="$3"; cwd="$4"; mask="$5"; shift 5
if alive "$d" && [ "$(cat "$d/mark" 2>/dev/null)" = "$mark" ]; then rm -f "$d/paused"; echo same; exit 0; fi
stop "$d"; mkdir -p "$d" "$cwd" && chmod 700 "$d" && cd "$cwd" || exit 1
rm -f "$d/pid" "$d/paused" "$d/child"; printf %s "$mark" > "$d/mark"
printf %s "$leader" > "$d/leader.sh"; printf %s "$environment" > "$d/environment" || exit 1
chmod 600 "$d/environment"; umask "$mask"
env -i HOME="$HOME" PATH="$PATH" USER="$(id -un)" LOGNAME="$(id -un)" LANG=C.UTF-8 \
  setsid sh "$d/leader.sh" "$d" "$home" "$@" </dev/null >"$d/log" 2>&1 &
i=0; while [ ! -s "$d/pid" ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
[ -s "$d/pid" ]

#: write
umask 077; h="$(x "$1")"; mkdir -p "$h" && chmod 700 "$h" && t=$(mktemp "$h/.$2.XXXXXX") || exit 1
trap 'rm -f "$t"' EXIT; trap 'exit 143' TERM INT HUP
cat > "$t" && [ "$(wc -c < "$t")" -eq "$3" ] || exit 1
[ -z "$4" ] || rm -f "$h/state.json" "$h/figures.json" "$h/live.json" "$h/request.json"
! cmp -s "$t" "$h/$2" || exit 0
[ ! -s "$h/$2" ] || cp "$h/$2" "$h/$2.bak"
sync "$t" && mv -f "$t" "$h/$2" && sync "$h"

#: send
# A link is made or refused in one step: of two who ask at the same time, one waits.
h="$(x "$1")/supervision/$2"; f="$h/request.json"; [ -f "$h/desired.json" ] || exit 3
umask 077; t=$(mktemp "$f.XXXXXX") || exit 1
trap 'rm -f "$t"' EXIT; trap 'exit 143' TERM INT HUP
cat > "$t" || exit 1
replaces() { grep -qsE '"ask": *"replace"' "$f"; }
i=0; until ln "$t" "$f" 2>/dev/null; do
  [ -e "$f" ] || [ $i -lt 25 ] || exit 1
  if replaces && [ -n "$3" ]; then mv -f "$t" "$f"; exit; fi
  if [ $i -ge 25 ] || replaces; then
    m=$(stat -c %Y "$f" 2>/dev/null) && r=$(head -c 65536 "$f" 2>/dev/null) || continue
    printf '%s\n%s\n' "$(($(date +%s) - m))" "$r"; exit 9
  fi
  sleep 0.2; i=$((i+1))
done

#: alive
# A zombie has ended, however long its parent takes to notice. Who lives and has not reported yet is waited for: on a
# node that is busy, or under an emulator, the first start of the program takes minutes.
lives() { s=; { read -r s <"/proc/$1/stat"; } 2>/dev/null; case "${s##*) }" in Z*|"") return 1 ;; esac; }
# Its process, by whoever keeps it running: another one later means that the first has ended.
program() {
  c=$(cat "$1/services/supervisor/child" 2>/dev/null) || c=$(mine "$1" | while read -r m u; do case "$u" in
    sparkwright-supervisor-*) ctl "$m" show -p MainPID --value "$u" ;; esac; done 2>/dev/null)
  [ "${c:-0}" = 0 ] || ! lives "$c" || echo "$c"
}
now() { read -r s _ </proc/uptime; s=${s%.*}; }  # like all here, it starts no program: it is asked ten times a second
now; t=$s; first=; while :; do
  p=; { read -r p <"$1/lock"; } 2>/dev/null
  [ -z "$p" ] || ! lives "$p" || ! grep -qs "\"pid\": $p\b" "$1/live.json" || exit 0
  now; s=$((s - t))
  if [ $s -ge "$2" ]; then
    now=$(program "$1"); first="${first:-$now}"
    [ -n "$now" ] && [ "$now" = "$first" ] || break
    [ $s -lt "$3" ] || { echo "process $now lives, and has not reported in $s s"; exit 2; }
  fi
  sleep 0.1
done
tail -n 3 "$1/log" "$1/services/supervisor/log" 2>/dev/null; exit 1

#: mine
# Units are ours when they name the folder; a detached service is below it.
mine() { for m in user system; do for u in "$(units $m)"/sparkwright-*.service; do
  ! grep -qxF "@MARK@ $1" "$u" 2>/dev/null || printf '%s %s\n' "$m" "${u##*/}"; done; done; }

#: copy
# The standby's copy of a deployment: `end_copy FOLDER` ends its supervisor, which is not started again until it may.
copy_of() { printf %s "$(x "$1")/supervision/_standby/state/supervision/$2"; }
end_copy() {
  [ -d "$1" ] || return 0
  : >"$1/paused"
  [ -e "$1/lock" ] && ! flock -n "$1/lock" true || return 0
  echo was; c=$(cat "$1/lock" 2>/dev/null)
  case "$(tr '\0' ' ' <"/proc/$c/cmdline" 2>/dev/null)" in
    *"/supervision/_standby/state/supervision/${1##*/} "*) kill -TERM "$c" 2>/dev/null
      flock -w 20 "$1/lock" true || kill -KILL "$c" 2>/dev/null ;;
  esac
}

#: pause
t="$(copy_of "$1" "$2")"; end_copy "$t"
h="$(x "$1")/supervision/$2"
[ -d "$h" ] || { [ ! -d "$t" ] || printf 'nonce %s\n' "$(cat "$t/nonce" 2>/dev/null)"; exit 0; }
mine "$h" | while read -r m u; do case "$u" in
  sparkwright-supervisor-*) ! ctl "$m" is-active -q "$u" || echo was; ctl "$m" stop "$u" ;; esac; done
d="$h/services/supervisor"
if alive "$d" && [ ! -e "$d/paused" ]; then
  echo was; : > "$d/paused"; c=$(cat "$d/child" 2>/dev/null); [ -z "$c" ] || kill -TERM "$c" 2>/dev/null; i=0
  while [ -e "$d/child" ] && [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done
  [ ! -e "$d/child" ] || kill -KILL "$c" 2>/dev/null
fi
printf 'nonce %s\n' "$(cat "$h/nonce" 2>/dev/null)"

#: ended
# A gateway goes with the last deployment behind it.
S="$(x "$1")"
ended() {
  mine "$1" | while read -r m u; do
    echo was; ctl "$m" disable -q --now "$u"; f="$(units "$m")/$u"
    if [ "$m" = user ]; then rm -f "$f"; else as_root rm -f "$f"; fi
    ctl "$m" daemon-reload; ctl "$m" reset-failed "$u" 2>/dev/null
  done
  for d in "$1"/services/*/; do [ ! -d "$d" ] || { echo was; stop "${d%/}"; }; done
}
unused_gateways() {
  for g in "$S"/supervision/_gateway-*/; do g="${g%/}"; [ -d "$g" ] || continue
    grep -qsxF "${g##*-}" "$S"/supervision/*/door/behind || { ended "$g"; rm -rf "$g"; }; done
}

#: unused
unused_gateways

#: remove
h="$S/supervision/$2"; tag="$3"; t="$(copy_of "$1" "$2")"
rm -f "$h/desired.json" "$t/desired.json"
ended "$h"; end_copy "$t"
rm -rf "$S/ring/$2" "$S/door/$2.prompts.key" "$t"; rmdir "$S/ring" 2>/dev/null
if grep -qsF " $tag" "$HOME/.ssh/authorized_keys"; then rewrite "$tag" "" || exit 1; fi
[ ! -e "$h" ] || { echo was; rm -rf "$h"; }
[ ! -e "$h" ] || exit 1
unused_gateways
[ "$2" != _standby ] || rm -f "${SPARKWRIGHT_LOCK_DIR:-/run/lock}/sparkwright/vote-"*".$(id -u)" \
  "${SPARKWRIGHT_LOCK_DIR:-/run/lock}/sparkwright/vote-"*".$(id -u).lock"
# The ssh connections of the supervisor and of the console.
for n in "$h" "$h/console" "$t"; do
  c="/tmp/sparkwright-$(id -u)-$(printf %s "$n" | sha256sum | cut -c1-12)"
  for s in "$c"/*; do [ ! -S "$s" ] || ssh -F /dev/null -S "$s" -O exit gone 2>/dev/null; done; rm -rf "$c"; done
rmdir "$S/supervision" 2>/dev/null
for r in "$S"/runtime/*/; do r="${r%/}"; [ -d "$r" ] || continue
  grep -qsxF "${r##*/}" "$S"/supervision/*/runtime || rm -rf "$r"; done
[ -n "$(ls "$S/runtime" 2>/dev/null)" ] || rm -rf "$S/runtime"
if [ ! -d "$S/supervision" ] && [ -e "$S/lingering" ]; then
  rm -f "$S/lingering"; loginctl disable-linger 2>/dev/null || as_root loginctl disable-linger "$(id -un)"; fi
exit 0

#: taken
tail -c 262144 "$(x "$1")/audit.log" 2>/dev/null | grep -aE " disarm $2: (down|replaced by [^ ]+)$" | tail -n 1 | cut -c 1-300
printf 'now %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"

#: resume
h="$(x "$1")/supervision/$2"
mine "$h" | while read -r m u; do case "$u" in sparkwright-supervisor-*) ctl "$m" start "$u" ;; esac; done
rm -f "$h/services/supervisor/paused" "$(copy_of "$1" "$2")/paused"
