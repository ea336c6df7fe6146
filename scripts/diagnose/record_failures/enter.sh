# Sourced before each scenario, in namespaces of its own (mount, net, UTS, IPC, PID): what it starts ends with it.
mount --make-rprivate /
hostname spark-1
ip link set lo up
ip link add eth0 type veth peer name eth0-peer
ip addr add 10.0.0.11/24 dev eth0
ip link set eth0 up
ip link set eth0-peer up
ulimit -c 0
mkdir -p /srv
mount --bind "$WORK" /srv
mount -t tmpfs tmpfs /home
mkdir -p /home/ubuntu
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/sshd
echo 'nameserver 192.168.100.1' > /run/resolv.conf
mount --bind /run/resolv.conf "$(readlink -f /etc/resolv.conf)" 2>/dev/null
printf '127.0.0.1 localhost\n10.0.0.11 spark-1\n' > /run/hosts
mount --bind /run/hosts /etc/hosts
export HOME=/home/ubuntu USER=ubuntu PIP_CONFIG_FILE=/dev/null
unset "${!PIP_FIND@}" "${!PIP_IND@}" "${!PIP_EXTRA@}"
cd /srv

# The command as a user would have typed it, then what it prints.
show() { if [ "$1" = on ]; then echo "\$ ${*:3}"; else echo "\$ $*"; fi; "$@"; }

# wait_for TEXT FILE SECONDS
wait_for() { for _ in $(seq $(($3 * 10))); do grep -qF -- "$1" "$2" 2>/dev/null && return 0; sleep 0.1; done; return 1; }

# listening PORT SECONDS
listening() { for _ in $(seq $(($2 * 10))); do ss -ltnH "sport = :$1" | grep -q . && return 0; sleep 0.1; done; return 1; }

# nodes: two network namespaces with a cable between them; on NUMBER COMMAND...: there, as the host spark-NUMBER.
nodes() {
  for n in 1 2; do ip netns add "n$n"; ip -n "n$n" link set lo up; done
  ip link add f1 netns n1 type veth peer name f2 netns n2
  for n in 1 2; do
    ip -n "n$n" link set "f$n" name enp1s0f0np0
    ip -n "n$n" addr add "192.168.100.1$n/24" dev enp1s0f0np0
    ip -n "n$n" link set enp1s0f0np0 up
  done
  printf '127.0.0.1 localhost\n192.168.100.11 spark-1\n192.168.100.12 spark-2\n' > hosts
  mount --bind hosts /etc/hosts
}
on() { local n=$1; shift; ip netns exec "n$n" unshare -u bash -c 'hostname "$0"; exec "$@"' "spark-$n" "$@"; }

# small SIZE FOLDER: a file system of that size there.
small() { mkdir -p "$2"; mount -t tmpfs -o "size=$1" tmpfs "$2"; }

# limited BYTES COMMAND...: in a memory cgroup (version 1 or 2) of its own.
limited() {
  local bytes=$1 group; shift
  if [ -d /sys/fs/cgroup/memory ]; then
    group=/sys/fs/cgroup/memory/record-$RANDOM; mkdir "$group"; echo "$bytes" > "$group/memory.limit_in_bytes"
  else
    group=/sys/fs/cgroup/record-$RANDOM; mkdir "$group"; echo "$bytes" > "$group/memory.max"
  fi
  sh -c 'echo 0 > "$0/cgroup.procs"; exec "$@"' "$group" "$@"
}
