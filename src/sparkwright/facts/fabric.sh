# Sent to nodes by fabric.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: rdma
# One grep reads the hundreds of small files of all GID tables; a process for each would take seconds. Reading an empty
# slot's attributes fails (-s), its GID reads as all zero (dropped here: it is most of the table).
out=$(LC_ALL=C rdma -j link 2>/dev/null || LC_ALL=C rdma link 2>/dev/null); e=$?
printf '@@ exit\n%s\n@@ rdma\n%s\n' "$e" "$out"
if cd "$R/sys/class/infiniband" 2>/dev/null; then
  printf '@@ sysfs\n'
  LC_ALL=C grep -sH . */ports/*/state */ports/*/phys_state */ports/*/gids/* */ports/*/gid_attrs/types/* \
    */ports/*/gid_attrs/ndevs/* /dev/null | grep -v ':0000:0000:0000:0000:0000:0000:0000:0000$'
  printf '@@ netdevs\n'
  for n in */device/net/*; do [ ! -e "$n" ] || echo "$n"; done
fi
[ "$e" -eq 0 ] || { printf '@@ ibdev2netdev\n'; LC_ALL=C ibdev2netdev 2>/dev/null; }
set -- */ports/*/gid_attrs/types/*
[ -e "$1" ] || { printf '@@ show_gids\n'; LC_ALL=C show_gids 2>/dev/null; }
exit 0
