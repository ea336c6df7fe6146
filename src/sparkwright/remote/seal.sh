# Sent to nodes by seal.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: file
# $1 state folder, $2 cluster. Number n and node w of the seal; a file that is missing or damaged is number 0.
# The file is written in place and always as long as before: that needs no room on a full disk.
d="$(x "$1")/seals"; f="$d/$2"; umask 077
[ -d "$d" ] || mkdir -p "$d" || exit 1
seen() {
  n=; w=; r=; [ -L "$f" ] || [ ! -f "$f" ] || read -r n w r <"$f" 2>/dev/null
  case "$n" in ""|*[!0-9]*|????????????????*) n=0 ;; esac
  if [ -z "$w" ] || [ -n "$r" ] || [ "$n" -eq 0 ]; then n=0; w=-; fi
}

#: show
seen; printf 'sealed %s %s\n' "$n" "$w"

#: raise
# $3 number, $4 node. Afterwards no command of a lower seal begins here, and none that had begun is under way.
exec 9>>"$f.lock" && flock -w 3 9 || exit 1
seen
if [ "$3" -gt "$n" ]; then
  [ ! -L "$f" ] || rm -f "$f" || exit 1
  printf '%015d %-64s\n' "$3" "$4" 1<>"$f" && sync "$f" && seen && [ "$n" -eq "$3" ] || exit 1
fi
if [ "$n" -ne "$3" ] || [ "$w" != "$4" ]; then printf 'held %s %s\n' "$n" "$w"; exit 0; fi
exec 8>>"$f.busy"; if flock -w 2 8; then echo sealed; else echo busy; fi

#: under
# $3 number, $4 node, then a command, which runs only under that very seal. The shell holds the lock, not the command:
# a rank that it starts lives on.
u=$(umask -S); umask 077; exec 8>>"$f.busy" && flock -s -w 10 8 || { echo "@MARK@ busy" >&2; exit @REFUSED@; }
umask "$u"; seen
if [ "$n" -lt "$3" ]; then echo "@MARK@ behind" >&2; exit @REFUSED@; fi
if [ "$n" -gt "$3" ] || [ "$w" != "$4" ]; then echo "@MARK@ held $n $w" >&2; exit @REFUSED@; fi
shift 4; "$@" 8>&-

#: remove
rm -rf "$(x "$1")/seals"
for l in "${SPARKWRIGHT_LOCK_DIR:-/run/lock}" /tmp; do
  rm -f "$l/sparkwright/vote-"*".$(id -u)" "$l/sparkwright/vote-"*".$(id -u).lock"; done
