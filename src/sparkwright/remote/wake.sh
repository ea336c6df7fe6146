# Sent to nodes by wake.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: wake
# wake MAC: a magic packet to every network of this node, three times: UDP may be lost. Prints the networks' addresses.
LC_ALL=C ip -4 -o addr show up 2>/dev/null | sed -n 's/.* brd \([0-9.]*\) .*/\1/p' | sort -u |
  "${PYTHON:-python3}" -I -S -c 'import socket, sys, time
packet = b"\xff" * 6 + bytes.fromhex(sys.argv[1].replace(":", "")) * 16
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
sent = set()
networks = sys.stdin.read().split()
for turn in range(3 if networks else 0):
    time.sleep(0.1 * turn)
    for network in networks:
        try:
            link.sendto(packet, (network, 9))
        except OSError as error:
            sys.stderr.write("%s: %s\n" % (network, error.strerror))
        else:
            sent.add(network)
print(" ".join(sorted(sent)))
sys.exit(not sent)' "$1"
