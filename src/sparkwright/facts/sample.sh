# Sent to nodes by sample.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: block
# The marker of a start: the boot id alone stays the same when a system container is started again.
# Looking for compilers opens a file of every process, so it is done for each fourth block.
boot=; read -r boot 2>/dev/null <"$(at /proc/sys/kernel/random/boot_id)"
start=$(sed 's/.*) //' "$(at /proc/1/stat)" 2>/dev/null | cut -d' ' -f20)
reset=0; read -r reset 2>/dev/null <"$R/sys/class/watchdog/watchdog0/bootstatus"
n=0; c=0; w=
compilers() { [ -n "$R" ] || { set -- $(grep -sxhE 'ptxas|cicc|nvcc|ninja|cc1plus' /proc/[0-9]*/comm); c=$#; }; }
block() {
  printf '@@ sample\ntime %s\nboot %s:%s\n' "$(date +%s.%N)" "$boot" "$start"
  LC_ALL=C grep -shE '^([A-Z][A-Za-z_()0-9]*: |Node |(pswpin|pswpout|oom_kill|some|full) )' "$R/proc/meminfo" \
    "$R/proc/vmstat" "$R/proc/pressure/memory" "$R/proc/buddyinfo"
  cd "$R/sys/class/infiniband" 2>/dev/null && { LC_ALL=C grep -sH . */ports/*/counters/port_xmit_data \
    */ports/*/counters/port_rcv_data; cd /; }
  LC_ALL=C grep -m @ADDRESSES@ -sHE '^(up|down)$|^ +\|-- [0-9.]+$' /sys/class/net/*/operstate /proc/net/fib_trie
  [ $((n % 4)) -ne 0 ] || compilers; n=$((n+1))
  [ -z "$w" ] || printf 'disk %s\n' "$(stat -f -c '%a %S' "$w" 2>/dev/null)"
  [ ! -e "$w" ] || [ -w "$w" ] || printf 'unwritable %s %s\n' "$(stat -c '%U %A' "$w")" "$(id -un)"
  printf 'watchdog %s\ncompilers %s\n@@ end\n' "$reset" "$c"
}

#: ask
smi() { LC_ALL=C nvidia-smi -i 0 --query-gpu=@FIELDS@ --format=csv,noheader "$@" 2>&1 |
  while IFS= read -r l; do printf 'gpu %.200s\n' "$l"; ring_add "gpu $l"; done; }
pids() { p=$(LC_ALL=C timeout 20 nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>&1) && printf 'pids %s\n' \
  "$(printf %s "$p" | tr '\n' ' ')"; }
has_gpu() { command -v nvidia-smi >/dev/null 2>&1 || { echo 'gpu! nvidia-smi is not installed'; return 1; }; }

#: gpu
# A driver that does not answer blocks nvidia-smi for minutes: it must never hold up the blocks.
# nvidia-smi that ends (no driver yet, a fault) is asked again.
gpu() { has_gpu || return; while :; do smi -l "$1"; sleep "$1"; done; }
pids_now_and_then() { while command -v nvidia-smi >/dev/null 2>&1; do pids; sleep "$1"; done; }

#: kernel
# Only what any rule looks for leaves the node (facts/kernel.py), never the kernel's command line. As another user
# dmesg can only be ended by itself, so sudo's runs for ten minutes and begins anew. After a hundred lines a pause: a
# driver that writes without end must not fill the line.
told() { LC_ALL=C grep --line-buffered -E '@WORTH@' | { n=0; while IFS= read -r l; do
  case $l in *'ommand line: '*) continue ;; esac
  printf 'kernel %.400s\n' "$l"; ring_kernel "kernel $l"; n=$((n+1)); [ $((n % 100)) -ne 0 ] || sleep 1; done; }; }
kernel() {
  if [ -n "$R" ]; then tail -n 0 -F "$R/var/log/dmesg" 2>/dev/null | told
  elif [ -n "$(timeout 4 journalctl -k -q -n 1 2>/dev/null)" ]; then
    if [ "$1" != 0 ]; then journalctl -k -q -f -o short-iso -n 1000 --since "@$1" 2>/dev/null | told
    else journalctl -k -q -f -o short-iso -n 0 2>/dev/null | told; fi
  elif dmesg >/dev/null 2>&1; then dmesg -W --time-format iso 2>/dev/null | told
  elif sudo -n dmesg >/dev/null 2>&1; then
    while :; do sudo -n timeout 600 dmesg -W --time-format iso 2>/dev/null | told; sleep 1; done
  else echo 'kernel! this user may read neither the journal nor dmesg'; fi
}

#: follow
# Children of the background shells are ended by name: a `journalctl -f` would notice only with its next line. A
# shell that is stopped starts no other one meanwhile; a process that was forked just now may lose a TERM.
ends() {
  trap - EXIT; read -r own </proc/$$/task/$$/children
  for p in $own; do kill -STOP "$p"; c=; read -r c <"/proc/$p/task/$p/children"; kill $c; done; sleep 0.05
  for p in $own; do c=; read -r c <"/proc/$p/task/$p/children"; kill -KILL $c "$p"; done
}
trap 'ends 2>/dev/null' EXIT; trap 'exit 0' HUP INT TERM PIPE
[ -z "$6" ] || [ -n "$R" ] || ring_begin "$w/ring" "$6" 2>/dev/null
[ -z "$ring_file" ] || ring "$7" &
gpu "$2" &
pids_now_and_then "$4" &
kernel "$3" &
while block; do sleep "$1" & wait $!; done

#: stopped
# /proc/PID/stat is `PID (NAME) STATE PARENT ...`; a name may hold brackets and blanks.
stopped() {
  sed -n 's/^\([0-9]*\) (\(.*\)) \([A-Za-z]\) \([0-9]*\) .*/\1 \3 \4 \2/p' /proc/[0-9]*/stat 2>/dev/null |
    awk -v tops=" $1 " '
      { up[$1] = $3; if ($2 == "T") { n = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", n); name[$1] = n } }
      END { for (q in name) { k = q; for (i = 0; i < 99 && k > 1 && !index(tops, " " k " "); i++) k = up[k]
        if (index(tops, " " k " ")) print "stopped", q, name[q] } }'
}

#: container
s=$(docker inspect -f '{{.State.Paused}} {{.State.Pid}}' "$1") || exit 1
case $s in
  true*) echo "paused ${s#* }" ;;
  *" 0") ;;
  *) stopped "${s#* }" ;;
esac

#: of_folder
stopped "$(echo $(marked "$(x "$1")"))"

#: where
w=$(x "$5")
