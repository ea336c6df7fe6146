# Sent to nodes by nic.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: nic
# 0x15b3 is Mellanox' vendor number, class 0x02.... a network controller. One grep reads every small file of a kind.
marker="$R$1"; shift; tools="$*"
if cd "$R/sys/bus/pci/devices" 2>/dev/null; then
  printf '@@ pci\n'
  set -- $(grep -slx 0x15b3 */vendor)
  for v in "$@"; do d="${v%/vendor}"
    grep -qs '^0x02' "$d/class" && grep -sH . "$d/class" "$d/current_link_speed" "$d/current_link_width"
  done
fi
printf '@@ devices\n'
if cd "$R/sys/class/infiniband" 2>/dev/null; then
  grep -sH . */fw_ver */ports/1/rate */ports/1/counters/link_downed */ports/1/counters/symbol_error \
    */ports/1/counters/port_rcv_errors */ports/1/hw_counters/out_of_sequence */ports/1/hw_counters/packet_seq_err \
    */ports/1/hw_counters/local_ack_timeout_err /dev/null
fi
printf '@@ bonds\n'
cd "$R/sys/class/net" 2>/dev/null && grep -sH . */bonding/slaves /dev/null
[ -n "$R" ] && [ ! -d "$R/dev" ] || printf '@@ verbs\n'
for v in "$R"/dev/infiniband/uverbs*; do [ ! -e "$v" ] || echo "${v##*/}"; done
printf '@@ marker\n'
[ ! -e "$marker" ] || echo armed
printf '@@ tools\n'
for t in $tools; do ! command -v "$t" >/dev/null 2>&1 || echo "$t"; done
exit 0
