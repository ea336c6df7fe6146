# Sent to nodes by board.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: identity
# Only these lines of dgx-release leave the node: the file also holds the machine's serial number.
show hostname "$(at /proc/sys/kernel/hostname)"
show machine-id "$(at /etc/machine-id)"
show boot-id "$(at /proc/sys/kernel/random/boot_id)"
show pid1 "$(at /proc/1/stat)"
show vendor "$R/sys/class/dmi/id/sys_vendor"
show product "$R/sys/class/dmi/id/product_name"
printf '@@ arch\n%s\n@@ user\n%s\n@@ home\n%s\n@@ dgx\n' "$(uname -m)" "$(id -un)" "$HOME"
grep -sE '^DGX_(PLATFORM|OTA_VERSION)=' "$R/etc/dgx-release"
exit 0

#: board
# modeset can be read by root alone; it is asked only where a setting for it was found, and never with a password.
for f in bios_version bios_date ec_firmware_release; do show "$f" "$R/sys/class/dmi/id/$f"; done
printf '\n@@ zones\n'
for z in "$R"/sys/class/thermal/thermal_zone*; do
  read -r n 2>/dev/null <"$z/type" && read -r t 2>/dev/null <"$z/temp" && printf '%s %s\n' "$n" "$t"
done
if [ -d "$R/sys/bus/pci/devices" ]; then
  echo '@@ nvidia'
  for d in "$R"/sys/bus/pci/devices/*; do
    read -r v 2>/dev/null <"$d/vendor" && read -r e 2>/dev/null <"$d/device" || continue
    [ "$v" != 0x10de ] || printf '%s %s:%s\n' "${d##*/}" "${v#0x}" "${e#0x}"
  done
fi
if [ -d "$R/dev" ]; then
  echo '@@ devices'
  for n in "$R"/dev/nvidia*; do [ ! -e "$n" ] || echo "${n##*/}"; done
fi
echo '@@ libcuda'
for l in "$R/usr/lib/aarch64-linux-gnu/libcuda.so.1" "$R/usr/lib/x86_64-linux-gnu/libcuda.so.1"; do
  [ ! -e "$l" ] || { LC_ALL=C stat -Lc %s "$l"; readlink -f "$l"; break; }
done
echo '@@ module'
[ -n "$R" ] || modinfo -F version nvidia 2>/dev/null
echo '@@ drm'
m="$R/sys/module/nvidia_drm/parameters/modeset"
if grep -sHE '^[[:space:]]*options[[:space:]]+nvidia[-_]drm' "$R"/etc/modprobe.d/*.conf; then
  echo '@@ modeset'
  cat "$m" 2>/dev/null || { [ ! -e "$m" ] || sudo -n cat "$m" 2>/dev/null; }
fi
exit 0
