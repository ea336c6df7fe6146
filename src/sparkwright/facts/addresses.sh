# Sent to nodes by addresses.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: addresses
printf '@@ ip\n'
LC_ALL=C ip -j addr 2>/dev/null || LC_ALL=C ip addr || exit
printf '@@ speed\n'
grep -sH . /sys/class/net/*/speed
exit 0
