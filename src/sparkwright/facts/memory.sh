# Sent to nodes by memory.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: activity
# No arguments of any process: they may hold keys.
count() { printf '\n@@ %s\n' "$1"; grep -sE '^(pswpin|pswpout|oom_kill) ' "$R/proc/vmstat"; }
count before
[ -n "$R" ] || { sleep "$1" & }
show pressure "$R/proc/pressure/memory"
if [ -z "$R" ]; then
  p=$(LC_ALL=C ps -eo pid=,rss=,user=,unit=,comm= --sort=-rss 2>/dev/null)
  printf '\n@@ processes\n%s\n' "$p" | head -n 24
elif [ -r "$R/proc/ps" ]; then show processes "$R/proc/ps"; fi
wait
count after
exit 0
