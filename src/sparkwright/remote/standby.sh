# Sent to nodes by standby.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: unused
s="$(x "$1")/supervision"; [ -d "$s/@FOLDER@" ] || exit 0
for f in "$s"/*/door/behind; do [ ! -e "$f" ] || exit 0; done
echo unused

#: votes
# Held by the clock since the boot, as the gateway's own process reads it; and the nodes have this one's seal.
h="$(x "$1")"; f="$h/@TERM@"; i=0
while :; do
  boot=$(cat /proc/sys/kernel/random/boot_id); read -r n _ </proc/uptime
  u=$(sed -n 's/.*"until": *\([0-9]*\).*/\1/p' "$f" 2>/dev/null)
  if grep -qsF "\"$boot\"" "$f" && grep -qs '"seal": *[1-9]' "$f" && [ "${u:-0}" -gt "${n%.*}" ]; then exit 0; fi
  [ $i -lt "$2" ] || break
  i=$((i+1)); sleep 1
done
tail -n 3 "$h/log" "$h/services/standby/log" 2>/dev/null; exit 1

#: give_back
h="$(x "$1")"; [ ! -d "$h" ] || : >"$h/@RETURN@"

#: lost
# A head with a role that has no votes, and whose keeper of votes is there to get them.
h="$(x "$1")/supervision/@FOLDER@"; f="$h/@TERM@"; [ -e "$f" ] && [ -e "$h/lock" ] || exit 0
! flock -n "$h/lock" true || exit 0
boot=$(cat /proc/sys/kernel/random/boot_id); read -r n _ </proc/uptime
u=$(sed -n 's/.*"until": *\([0-9]*\).*/\1/p' "$f" 2>/dev/null)
if ! grep -qsF "\"$boot\"" "$f" || [ "${u:-0}" -le "${n%.*}" ]; then echo lost; fi

#: mark
# The ssh settings are those of the role.
umask 077; rm -f "$1/live.json"; ln -sfn ../../../ssh "$1/ssh"
if [ -n "$3" ]; then printf '%s\n' "$3" >"$1/$2"; else rm -f "$1/$2"; fi

#: second
f="$1/door/@SECOND@"; if [ -n "$2" ]; then printf '%s\n' "$2" >"$f"; else rm -f "$f"; fi
[ ! -d "${1%/*}/@FOLDER@" ] || echo role
