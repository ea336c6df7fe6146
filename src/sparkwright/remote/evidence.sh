# Sent to nodes by evidence.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: kernel
journalctl -k -b -n "$1" -o short-iso --no-pager -q 2>/dev/null && exit 0
dmesg --time-format iso 2>/dev/null | tail -n "$1"

#: versions
uname -snr; cat "$(at /proc/driver/nvidia/version)" 2>/dev/null
exit 0

#: cut
# The beginning tells how it was started, the end why it ended.
cut_out() {
  n=$(wc -c <"$1")
  if [ "$n" -le $(($2 + $3)) ]; then cat "$1"; return; fi
  head -c "$2" "$1"; printf '\n... %s bytes left out ...\n' "$((n - $2 - $3))"; tail -c "$3" "$1"
}

#: process
exec 2>/dev/null; d=$(x "$1"); cut_out "$d/log" "$2" "$3"
[ ! -s "$d/memory/log" ] || cut_out "$d/memory/log" "$2" "$3"

#: docker
# A log of some hundred megabytes is not read whole: the daemon finds its last lines from the end.
t=$(mktemp -p /dev/shm 2>/dev/null || mktemp) || exit 1; trap 'rm -f "$t"' EXIT
docker logs "$1" 2>&1 | head -c "$(($2 + $3 + 1))" >"$t"
if [ "$(wc -c <"$t")" -le $(($2 + $3)) ]; then cat "$t"; exit; fi
head -c "$2" "$t"; printf '\n... some of the log is left out ...\n'
docker logs --tail 50000 "$1" 2>&1 | tail -c "$3"

#: memory
show meminfo "$(at /proc/meminfo)"
show vmstat "$(at /proc/vmstat)"
show pressure "$R/proc/pressure/memory"
show buddyinfo "$(at /proc/buddyinfo)"
printf '\n@@ processes\n'
LC_ALL=C ps -eo pid=,ppid=,stat=,rss=,etimes=,wchan:24=,comm= --sort=-rss 2>/dev/null | head -n 60
exit 0

#: gpu
LC_ALL=C nvidia-smi 2>&1
LC_ALL=C nvidia-smi -q 2>&1 | head -c 60000
exit 0
