# Sent to nodes by network.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: network
# ufw's configuration tells everybody whether it is on; its rules are root's. sudo is asked only then, and never for a
# password.
printf '@@ routes\n'
LC_ALL=C ip -j -4 route 2>/dev/null || LC_ALL=C ip -4 route 2>/dev/null
printf '\n@@ profiles\n'
if command -v nmcli >/dev/null 2>&1; then
  LC_ALL=C timeout 3 nmcli -t -f UUID,DEVICE connection show --active 2>/dev/null | while IFS=: read -r u d; do
    case $d in ''|lo|docker*|br-*|veth*|virbr*|wl*|tun*|tailscale*) continue ;; esac
    m=$(LC_ALL=C timeout 2 nmcli -g connection.id,ipv4.method connection show "$u" 2>/dev/null | tr '\n' '\t')
    printf '%s\t%s\n' "$d" "$m"
  done
fi
printf '@@ netplan\n'
for f in "$R"/etc/netplan/*.yaml "$R"/etc/netplan/*.yml; do
  [ ! -e "$f" ] || stat -c '%a %n' "$f"
done | sed "s| $R/| /|"
printf '@@ ufw\n'
if grep -qis '^ENABLED=yes' "$R/etc/ufw/ufw.conf"; then
  echo enabled
  printf '@@ ufw-rules\n'
  s=; [ "$(id -u)" = 0 ] || s='sudo -n'
  LC_ALL=C $s ufw status verbose 2>/dev/null
fi
printf '@@ firewalld\n'
if command -v firewall-cmd >/dev/null 2>&1; then LC_ALL=C timeout 3 firewall-cmd --get-active-zones 2>/dev/null; fi
printf '@@ nftables\n'
systemctl is-active nftables 2>/dev/null
# The kernel's own switch: `ethtool -s CARD wol g` sets it, and anybody may read it.
printf '@@ cards\n'
for d in "$R"/sys/class/net/*/device; do
  i="${d%/device}"
  [ ! -r "$i/address" ] || printf '%s %s %s\n' "${i##*/}" "$(cat "$i/address")" "$(cat "$d/power/wakeup" 2>/dev/null)"
done
exit 0

#: listeners
if s=$(LC_ALL=C ss -ltnpH 2>/dev/null); then printf '@@ ss\n%s\n' "$s"; exit 0; fi
[ -r "$(at /proc/net/tcp)" ] || exit 1
show tcp "$(at /proc/net/tcp)"
show tcp6 "$(at /proc/net/tcp6)"

#: addresses
printf '@@ ip\n'
LC_ALL=C ip -j addr 2>/dev/null || LC_ALL=C ip addr || exit
printf '@@ speed\n'
grep -sH . /sys/class/net/*/speed
exit 0
