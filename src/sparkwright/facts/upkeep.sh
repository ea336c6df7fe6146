# Sent to nodes by upkeep.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: upkeep
echo '@@ sysctl'
(cd "$R/proc/sys" 2>/dev/null && grep -sH . @SYSCTLS@ /dev/null)
printf '@@ locale\n'; grep -sE '^(LANG|LC_MESSAGES|LC_ALL)=' "$R/etc/default/locale"
printf '@@ grub\n'; grep -sE '^GRUB_TIMEOUT=' "$R/etc/default/grub"
printf '@@ host-keys\n'; cat "$R"/etc/ssh/ssh_host_*_key.pub 2>/dev/null
[ ! -e "$R/run/reboot-required" ] || echo '@@ reboot'
show reboot-for "$R/run/reboot-required.pkgs"
w=; while read -r i d _; do [ "$d" != 00000000 ] || { w=$i; break; }; done <"$(at /proc/net/route)"
# Ubuntu loads no driver of a watchdog by itself: the Arm server timer and QEMU's card are known by their devices.
printf '@@ watchdog\n'; [ ! -e "$R/dev/watchdog0" ] || echo device:watchdog0
[ ! -e "$R/sys/bus/platform/devices/sbsa-gwdt.0" ] || echo driver:sbsa_gwdt
! LC_ALL=C grep -sqx 0x25ab "$R"/sys/bus/pci/devices/*/device || echo driver:i6300esb
(cd "$R/sys/class/watchdog/watchdog0" 2>/dev/null && grep -sH . identity state timeout bootstatus /dev/null)
case $w in wl*) printf '@@ wifi\n%s\n@@ power-save\n' "$w"
  [ -n "$R" ] || LC_ALL=C iw dev "$w" get power_save 2>/dev/null ;;
esac
[ -z "$R" ] || exit 0
printf '@@ memlock\n'; ulimit -l
printf '@@ systemd\n'
LC_ALL=C systemctl show -p RuntimeWatchdogUSec 2>/dev/null
printf '@@ target\n'; LC_ALL=C systemctl get-default 2>/dev/null
printf '@@ units\n'
LC_ALL=C systemctl show -p Names -p LoadState -p ActiveState -p UnitFileState -p StatusText "$@" 2>/dev/null
exit 0

#: packages
# Exit 1 says only that some pattern fits no package.
command -v dpkg-query >/dev/null 2>&1 || exit 127
[ -z "$R" ] || [ -e "$R/var/lib/dpkg/status" ] || exit 1
echo '@@ packages'
LC_ALL=C dpkg-query --admindir="$R/var/lib/dpkg" -W -f "$@" 2>/dev/null
exit 0
