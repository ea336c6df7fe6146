# Sent to nodes by repair.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: set
# The file is read at each boot; what stood in it before is kept beside it for the way back.
set -e; f="$R/etc/sysctl.d/90-sparkwright-$3.conf"; mkdir -p "${f%/*}"
sysctl -q -w "$1=$2"
[ ! -e "$f" ] || cp -p "$f" "$f.before"
printf '# Set by sparkwright check --fix.\n%s = %s\n' "$1" "$2" >"$f"

#: restore
set -e; f="$R/etc/sysctl.d/90-sparkwright-$3.conf"
if [ -e "$f.before" ]; then mv -f "$f.before" "$f"; else rm -f "$f"; fi
sysctl -q -w "$1=$2"

#: clock
set -e; smi=$(command -v nvidia-smi)
printf '%s\n' '[Unit]' 'Description=GPU clock cap, set by sparkwright check --fix' 'After=nvidia-persistenced.service' \
  '' '[Service]' 'Type=oneshot' 'RemainAfterExit=yes' "ExecStart=$smi -lgc 200,$2" "ExecStop=$smi -rgc" \
  '' '[Install]' 'WantedBy=multi-user.target' >"/etc/systemd/system/$1"
systemctl daemon-reload; systemctl enable -q "$1"; systemctl restart "$1"

#: no_clock
set -e; systemctl disable -q --now "$1"; rm -f "/etc/systemd/system/$1"; systemctl daemon-reload

#: look_clock
systemctl is-enabled "$1" 2>/dev/null; systemctl is-active "$1"
sed -n 's/^ExecStart=.* -lgc //p' "/etc/systemd/system/$1" 2>/dev/null

#: no_swap
# Masked under all their names: those of fstab and those of zram generators alike.
set -e; d=/var/lib/sparkwright; mkdir -p $d
systemctl list-units --type=swap --plain --no-legend | cut -d' ' -f1 | grep '\.swap$' >$d/swap
xargs -r systemctl mask -q --now -- <$d/swap; swapoff -a

#: swap
set -e; f=/var/lib/sparkwright/swap; [ -e $f ] || exit 0
xargs -r systemctl unmask -q -- <$f; xargs -r systemctl start -- <$f
rm -f $f; rmdir "${f%/*}" 2>/dev/null || :

#: look_swap
sed 1d /proc/swaps | wc -l

#: watchdog
# The blacklist of Ubuntu keeps drivers of watchdogs from being loaded by themselves; a modprobe by name loads them.
set -e; f=/etc/systemd/system.conf.d/90-sparkwright-watchdog.conf; mkdir -p "${f%/*}"
[ ! -e "$f" ] || cp -p "$f" "$f.before"
printf '%s\n' '# Set by sparkwright.' '[Manager]' "RuntimeWatchdogSec=$1" >"$f"
if [ -n "$2" ]; then
  printf '%s\n' '[Unit]' 'Description=Driver of the hardware watchdog, loaded by sparkwright' 'DefaultDependencies=no' \
    'After=systemd-modules-load.service' '' '[Service]' 'Type=oneshot' 'RemainAfterExit=yes' \
    "ExecStart=$(command -v modprobe) $2" '' '[Install]' 'WantedBy=sysinit.target' \
    >/etc/systemd/system/sparkwright-watchdog.service
  systemctl daemon-reload; systemctl enable -q --now sparkwright-watchdog.service
fi
systemctl daemon-reexec
d=/sys/class/watchdog/watchdog0/state; n=0
until ! [ -e $d ] || grep -qx active $d || [ $n -ge 20 ]; do n=$((n+1)); sleep 1; done

#: no_watchdog
# systemd stops the timer as it gives the device back. One that cannot be stopped (nowayout) would reset the node then,
# so it is answered until the next boot. Until then the driver stays loaded, too.
set -e; f=/etc/systemd/system.conf.d/90-sparkwright-watchdog.conf; u=sparkwright-watchdog.service
if [ -e "$f.before" ]; then mv -f "$f.before" "$f"; else rm -f "$f"; rmdir "${f%/*}" 2>/dev/null || :; fi
grep -qsx 1 /sys/class/watchdog/watchdog0/nowayout || systemctl daemon-reexec
[ -e "/etc/systemd/system/$u" ] || exit 0
systemctl disable -q "$u"; rm -f "/etc/systemd/system/$u"; systemctl daemon-reload

#: look_watchdog
sed -n 's/^RuntimeWatchdogSec=//p' /etc/systemd/system.conf.d/90-sparkwright-watchdog.conf 2>/dev/null
cat /sys/class/watchdog/watchdog0/state 2>/dev/null || {
  case $(systemctl show -p RuntimeWatchdogUSec --value 2>/dev/null) in ''|0|infinity) ;; *) echo active ;; esac; }
