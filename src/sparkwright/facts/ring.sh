# Sent to nodes by ring.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: ring
# `ring_begin FOLDER NAME`: `down` removes FOLDER/NAME, and no writer makes it again. `ring SECONDS`: the last minutes of
# this boot on the node's own disk, two files in turn; each record is forced to the disk, for a power cut comes without
# notice. Two processes a record: the shell itself reads the first lines of each file. What cannot be written is left.
# Files of the last boots stay; older ones go.
ring_file=
ring_begin() { umask 077; read -r ring_boot </proc/sys/kernel/random/boot_id || return
  mkdir -p "$1/$2" && ring_file="$1/$2/$ring_boot:$start" || { ring_file=; return; }
  ls -t "$1/$2" 2>/dev/null | sed -n '13,$p' | while IFS= read -r o; do rm -f -- "$1/$2/$o"; done; }
ring() {
  k=0; p=
  while :; do
    [ $((k % 150)) -ne 0 ] || { [ $k -eq 0 ] || mv -f "$ring_file" "$ring_file.1"; printf 'clock %s ' "$(date +%s)"
      cat /proc/uptime; } >>"$ring_file"
    read -r u _ </proc/uptime; r="at $u"
    for f in /proc/meminfo /proc/pressure/memory /sys/class/thermal/thermal_zone*/temp; do i=0
      while [ $i -lt 3 ] && IFS= read -r l; do i=$((i+1)); r="$r
$f:$l"; done <"$f"; done
    printf '%s\n' "$r" >>"$ring_file"
    [ $((k % 15)) -ne 0 ] || LC_ALL=C grep -sHE '^TOTAL_ERR_[A-Z]+ [1-9]' /sys/bus/pci/devices/*/aer_dev_* >>"$ring_file"
    kill -0 "$p" 2>/dev/null || { sync -d "$ring_file" & p=$!; }
    k=$((k+1)); sleep "$1"
  done 2>/dev/null
}
ring_add() { [ -z "$ring_file" ] || printf '%.300s\n' "$1" >>"$ring_file" 2>/dev/null; }
# Kernel lines are bounded by a file of their own.
ring_kernel() { [ -n "$ring_file" ] || return 0; printf '%.300s\n' "$1" >>"$ring_file.k" 2>/dev/null
  m=$((${m:-0}+1)); [ $((m % 200)) -ne 0 ] || mv -f "$ring_file.k" "$ring_file.k1" 2>/dev/null; }

#: last
f="$(x "$1")/ring/$2/$3"
tail -q -c 65536 "$f.1" "$f" 2>/dev/null; tail -q -n 40 "$f.k1" "$f.k" 2>/dev/null; exit 0

#: keep
d="$(x "$1")/ring/$2"; umask 077; [ ! -d "$d" ] || { cat >"$d/of-$3.new" && mv -f "$d/of-$3.new" "$d/of-$3"; }

#: copy
f="$(x "$1")/ring/$2/of-$3"
tail -c 32768 "$f" 2>/dev/null; exit 0
