# Sent to nodes by cabling.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: wires
# `wires IF...`: who is at the other end. A ping to all nodes of the link finds their addresses; one to each of them
# makes the kernel note its MAC. Nothing of it needs root or an IPv4 address.
for i in "$@"; do
  (for a in $(LC_ALL=C ping -6 -n -c 2 -W 1 -I "$i" "ff02::1%$i" 2>/dev/null |
      sed -n 's/.* from \(fe80[0-9a-f:]*\).*/\1/p' | sort -u | head -n 64); do
    ping -6 -n -c 1 -W 1 -I "$i" "$a%$i" >/dev/null 2>&1; done) &
done; wait
for i in "$@"; do
  printf '%s mac %s\n' "$i" "$(cat "/sys/class/net/$i/address" 2>/dev/null)"
  LC_ALL=C ip neigh show dev "$i" 2>/dev/null | sed -n "s/.* lladdr \([0-9a-f:]*\).*/$i seen \1/p" | sort -u
  m=none
  if [ -d /run/systemd/netif ] && systemctl is-active -q systemd-networkd 2>/dev/null; then
    m=networkd; ! command -v netplan >/dev/null || m=netplan
  fi
  s=$(LC_ALL=C nmcli -g GENERAL.STATE device show "$i" 2>/dev/null)
  case $s in ''|'10 '*) ;; *) m=nmcli ;; esac
  printf '%s manager %s\n' "$i" "$m"
done
# What must not be touched: interfaces of default routes and of this session, and what they are made of.
set -- ${SSH_CONNECTION:-}
for d in $({ LC_ALL=C ip -4 -o route show default; LC_ALL=C ip -6 -o route show default; } 2>/dev/null |
    sed -n 's/.* dev \([^ ]*\).*/\1/p'; [ -z "${3:-}" ] ||
    LC_ALL=C ip -o addr show 2>/dev/null | awk -v a="${3%%%*}/" 'index($4, a) == 1 { print $2 }'); do
  printf '%s guarded\n' "$d"
  for l in "/sys/class/net/$d"/lower_*; do [ ! -e "$l" ] || printf '%s guarded\n' "${l##*/lower_}"; done
done
exit 0

#: reached
# `reached IF ADDRESS...`: which MAC answers for an IPv4 address on that wire. Needs no root; IPv6 may be off.
while [ "$#" -gt 1 ]; do
  (LC_ALL=C ping -n -q -c 2 -W 1 -I "$1" "$2" >/dev/null 2>&1 || exit 0
    LC_ALL=C ip neigh show "$2" dev "$1" 2>/dev/null | sed -n "s/.*lladdr \([0-9a-f:]*\).*/$1 reached $2 \1/p") &
  shift 2
done; wait

#: raised
# As root, before `hello` and `claimed`: a port that is off, as networkd leaves those without a configuration, is on for
# that time.
off=; for i in "$@"; do
  case $(cat "/sys/class/net/$i/flags" 2>/dev/null) in *[02468aceACE]) off="$off $i"; ip link set dev "$i" up ;; esac
done
trap 'for i in $off; do ip link set dev "$i" down; done' EXIT; trap 'exit 143' TERM INT HUP

#: hello
# `hello IF...` on all nodes at once: frames of our own find who is on the wire, also where no IP is set up. A link takes
# seconds to train.
python3 - "$@" <<'END'
import select, socket, sys, time
KIND, names = 0x88B5, {}  # for local experiments, IEEE 802
for name in sys.argv[1:]:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # of no port before it has its own
    wire.bind((name, KIND))
    names[wire] = name
def dark(name):
    try:
        return open(f"/sys/class/net/{name}/carrier").read() != "1\n"
    except OSError:
        return True
seen, began = set(), time.monotonic()
def enough():
    lit, found = {name for name in names.values() if not dark(name)}, {name for name, _ in seen}
    return time.monotonic() - began > (5 if lit and lit <= found else 12)
while names and not enough():
    for wire in names:
        try:
            wire.send(b"\xff" * 6 + wire.getsockname()[4] + KIND.to_bytes(2, "big") + b"sparkwright".ljust(46, b"\0"))
        except OSError:
            pass
    ready = time.monotonic() + 0.2
    while (left := ready - time.monotonic()) > 0:
        for wire in select.select(list(names), [], [], left)[0]:
            try:
                seen.add((names[wire], wire.recv(2048)[6:12].hex(":")))
            except OSError:  # the port went down
                pass
for name, mac in sorted(seen)[:256]:
    print(name, "seen", mac)
END

#: claimed
# `claimed (IF ADDRESS)...`: lines `IF claimed ADDRESS MAC` of machines that have it, asked as RFC 5227 does, once the
# links are up or after 8 seconds.
python3 - "$@" <<'END'
import select, socket, sys, time
ARP, wires = 0x0806, {}
for name, address in zip(sys.argv[1::2], sys.argv[2::2]):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # of no port before it has its own
    wire.bind((name, ARP))
    wires[wire] = name, address
def dark(name):
    try:
        return open(f"/sys/class/net/{name}/carrier").read() != "1\n"
    except OSError:
        return True
began = time.monotonic()
while any(dark(name) for name, _ in wires.values()) and time.monotonic() - began < 8:
    time.sleep(0.1)
claimed, until = {}, time.monotonic() + 1.2
while (left := until - time.monotonic()) > 0:
    for wire, (_, address) in wires.items():
        mac = wire.getsockname()[4]
        head = b"\xff" * 6 + mac + bytes.fromhex("08060001080006040001")
        try:
            wire.send(head + mac + bytes(10) + socket.inet_aton(address))
        except OSError:
            pass
    for wire in select.select(list(wires), [], [], min(left, 0.3))[0]:
        try:
            frame = wire.recv(2048)
        except OSError:
            continue
        if frame[20:22] == b"\0\2" and frame[28:32] == socket.inet_aton(wires[wire][1]):
            claimed.setdefault(wires[wire], frame[22:28].hex(":"))
for (name, address), mac in claimed.items():
    print(name, "claimed", address, mac)
END

#: look
# `look IF ADDRESS MTU ROUTES`...: each as it is wanted, or what is there instead. ROUTES: DEST,GATEWAY with commas.
while [ $# -ge 4 ]; do
  m=$(cat "/sys/class/net/$1/mtu" 2>/dev/null); a=$(LC_ALL=C ip -4 -o addr show dev "$1" 2>/dev/null | awk '{print $4}')
  case " $(echo $a) " in *" $2 "*) a=$2 ;; *) a=$(echo $a) ;; esac
  l="$1 MTU ${m:-unknown} ${a:-no address}"
  for r in $4; do
    g=$(LC_ALL=C ip -4 route show "${r%,*}" dev "$1" 2>/dev/null | sed -n 's/.* via \([0-9.]*\).*/\1/p')
    [ "$g" != "${r#*,}" ] || l="$l $r"
  done
  printf '%s\n' "$l"; shift 4
done

#: apply
# `apply MANAGER SECONDS ROLLBACK COMMANDS IF...`. Armed first: SECONDS later ROLLBACK takes it all back,
# unless it is confirmed. Until then nothing is on the disk that a boot would read. networkd is not root and reads what
# netplan makes: no umask of ours may be in the way.
m=$1; seconds=$2; commands=$4; d=/var/lib/sparkwright/fabric
die() { echo "$1" >&2; exit "${2:-1}"; }
[ ! -e $d/confirmed ] || die "an earlier init has set the fabric up: sparkwright init --undo --step fabric" 3
[ ! -e $d/pending ] || sh $d/rollback.sh now
if [ "$m" = netplan ]; then
  e=$(netplan generate 2>&1) || die "netplan does not accept its own files: $(printf '%s' "$e" | grep . | head -n 3 | tr '\n' ' ')" 4
fi
umask 022; rm -rf $d; mkdir -p $d || exit 1
printf '%s\n' "$3" >$d/rollback.sh; echo "$m" >$d/manager; shift 4; : >$d/ports; : >$d/before
for i in "$@"; do
  echo "$i" >>$d/ports
  printf '%s %s %s\n' "$i" "$(cat "/sys/class/net/$i/mtu")" \
    "$(LC_ALL=C nmcli -g GENERAL.CON-UUID device show "$i" 2>/dev/null)" >>$d/before
  LC_ALL=C ip -4 -o addr show dev "$i" | awk '{print $4}' >"$d/addresses-$i"
done
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >$d/pending
if [ -d /run/systemd/system ]; then
  systemctl reset-failed sparkwright-fabric.service 2>/dev/null; systemctl stop sparkwright-fabric.timer 2>/dev/null
  systemd-run --quiet --collect --unit=sparkwright-fabric --on-active="$seconds" --timer-property=AccuracySec=1s \
    sh $d/rollback.sh timer || die "the rollback could not be armed: nothing is changed"
else
  setsid sh -c "sleep $seconds; exec sh $d/rollback.sh timer" </dev/null >/dev/null 2>&1 &
fi
trap '[ $? = 0 ] || sh $d/rollback.sh now' EXIT
sh -ec "$commands" >/dev/null

#: settled
# `settled WANTED LOOK (IF ADDRESS MTU ROUTES)...`: networkd takes a moment.
w=$1; l=$2; shift 2; n=0
until s=$(sh -c "$l" sparkwright "$@"); [ "$s" = "$w" ]; do
  n=$((n+1)); [ $n -lt 100 ] || { echo "after 10 s: $s" >&2; exit 1; }; sleep 0.1
done

#: rollback
# As a program of its own on the node: `rollback.sh timer|now`. Whoever moves `pending` away has decided. It leaves files,
# addresses and MTUs as `apply` found them.
d=/var/lib/sparkwright/fabric
case $1 in
timer) mv $d/pending $d/rolling 2>/dev/null || exit 0 ;;
now) [ -e $d/manager ] || exit 0; mv $d/pending $d/rolling 2>/dev/null
  systemctl stop sparkwright-fabric.timer 2>/dev/null ;;
esac
m=$(cat $d/manager); p=$(cat $d/ports)
case $m in
nmcli)
  while read -r i _ u; do
    nmcli connection delete "sparkwright-$i" >/dev/null 2>&1
    [ -z "$u" ] || nmcli --wait 15 connection up "$u" >/dev/null 2>&1
  done <$d/before ;;
netplan) rm -f /run/netplan/90-sparkwright.yaml /etc/netplan/90-sparkwright.yaml; netplan generate ;;
networkd) for i in $p; do rm -f /run/systemd/network/05-sparkwright-$i.network /etc/systemd/network/05-sparkwright-$i.network; done ;;
esac
case $m in netplan|networkd) networkctl reload; networkctl reconfigure $p 2>/dev/null ;; esac
while read -r i mtu _; do
  [ -e "/sys/class/net/$i" ] || continue
  for a in $(LC_ALL=C ip -4 -o addr show dev "$i" | awk '{print $4}'); do
    grep -qxF "$a" "$d/addresses-$i" || ip addr del "$a" dev "$i"; done
  for a in $(cat "$d/addresses-$i"); do ip addr add "$a" dev "$i" 2>/dev/null; done
  [ "$(cat "/sys/class/net/$i/mtu")" = "$mtu" ] || ip link set dev "$i" mtu "$mtu"
done <$d/before
rm -rf $d; rmdir /var/lib/sparkwright 2>/dev/null; exit 0

#: confirm
# `confirm TOKEN`: what a peer has read over the new path. From here on it lasts over boots.
d=/var/lib/sparkwright/fabric
[ "$(cat $d/pending 2>/dev/null)" = "$1" ] || { echo "it has been rolled back already" >&2; exit 1; }
mv $d/pending $d/confirmed || exit 1
systemctl stop sparkwright-fabric.timer 2>/dev/null
set -e
case $(cat $d/manager) in
nmcli) for i in $(cat $d/ports); do nmcli connection modify "sparkwright-$i" connection.autoconnect yes; done ;;
netplan) mkdir -p /etc/netplan; mv /run/netplan/90-sparkwright.yaml /etc/netplan/; netplan generate ;;
networkd) mkdir -p /etc/systemd/network; mv /run/systemd/network/05-sparkwright-*.network /etc/systemd/network/ ;;
esac
sync

#: prove
# `prove SSH_FOLDER PEER BYTES (IF PEER_ADDRESS)...`: jumbo frames over each port, then the token from the peer itself.
f=$1; n=$2; b=$3; shift 3
while [ $# -ge 2 ]; do
  i=0; until LC_ALL=C ping -n -q -c 1 -W 1 -M "do" -s "$b" -I "$1" "$2" >/dev/null 2>&1; do
    i=$((i+1)); [ $i -lt 8 ] || { echo "$n at $2 does not answer a frame of $((b+28)) bytes from $1" >&2; exit 1; }
  done
  t=$(ssh -F "$f/ssh/config" -o HostName="$2" -o ControlPath=none -o ConnectTimeout=5 -- "$n" \
    cat /var/lib/sparkwright/fabric/pending 2>&1 </dev/null) || { echo "$n by ssh at $2: $t" | tail -n 1 >&2; exit 1; }
  shift 2
done
printf '%s\n' "$t"
