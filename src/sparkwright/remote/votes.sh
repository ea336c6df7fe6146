# Sent to nodes by votes.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: file
# $1 file, $2 seconds of a term. Whole seconds, rounded so that a promise lasts a full term at least. Holder h until u.
l="${SPARKWRIGHT_LOCK_DIR:-/run/lock}"; [ -w "$l" ] || l=/tmp
d="$l/sparkwright"; f="$d/$1.$(id -u)"
[ -d "$d" ] || { mkdir "$d" 2>/dev/null && chmod 0777 "$d"; }
umask 077; exec 9>>"$f.lock" && flock -w 2 9 || exit 1
p="$R/proc"; [ -r "$p/uptime" ] || p=/proc
boot=$(cat "$p/sys/kernel/random/boot_id") && read -r n _ <"$p/uptime" && n=${n%.*} || exit 1
keep() { printf '%s %s %s %s\n' "$boot" "$h" "$u" "$c" >"$f.new" && mv -fT "$f.new" "$f" || exit 1; }
b=; h=; u=; c=
[ -L "$f" ] || [ ! -f "$f" ] || read -r b h u c <"$f"
case "$u" in *[!0-9]*|"") b= ;; esac
if [ "$b" != "$boot" ]; then h=-; u=$((n + $2 + 1)); c=-; keep; fi

#: ask
if [ "$h" = "$3" ] || [ "$n" -ge "$u" ]; then h="$3"; u=$((n + $2 + 1)); c="$4"; keep; echo granted; else echo "held $h"; fi

#: look
if [ "$n" -ge "$u" ]; then echo free; else echo "held $h"; fi

#: release
[ "$c" != "$3" ] || { h=-; u=$n; c=-; keep; }
