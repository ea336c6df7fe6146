# Sent to nodes by kernel.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: release
printf '@@ release\n'; uname -r
show cmdline "$(at /proc/cmdline)"
show os "$(at /etc/os-release)"

#: log
# Lines that differ only in numbers are told once, with how many they were: a driver that leaks writes one in each
# second. An Xid is told by its number. What cannot matter never leaves the node, and no more than 400 kinds of lines.
digest() { LC_ALL=C awk '
  { read++ }
  !/@WORTH@/ || /ommand line: / { next }
  { gsub(/\t/, " "); line = substr($0, 1, 400); key = line
    sub(/^\[ *[0-9.]+\] /, "", key)
    if (match(key, /Xid \([^)]*\): [0-9]+/)) key = substr(key, RSTART, RLENGTH)
    else gsub(/0x[0-9a-fA-F]+|[0-9a-fA-F]*[0-9][0-9a-fA-F]*/, "#", key)
    if (!(key in count)) { if (kinds >= 400) next; order[++kinds] = key; first[key] = line }
    count[key]++; last[key] = line }
  END { print "@@ read"; print read + 0; print "@@ notes"
    for (i = 1; i <= kinds; i++) { k = order[i]; print count[k] "\t" first[k] "\t" last[k] } }'; }
if [ -n "$R" ]; then [ -r "$R/var/log/dmesg" ] && digest <"$R/var/log/dmesg"; exit; fi
some() { case $1 in "@@ read
0
"*) return 1 ;; esac; printf '%s\n' "$1"; exit 0; }
some "$(timeout 4 journalctl -k -q --no-pager -o short-monotonic -n 20000 2>/dev/null | digest)"
some "$(dmesg 2>/dev/null | digest)"
some "$(sudo -n dmesg 2>/dev/null | digest)"
echo 'this user may read neither the journal nor dmesg' >&2; exit 1
