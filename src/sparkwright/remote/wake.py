"""Wake-on-LAN: a magic packet from one node to the networks that it is in."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)


def send_magic_packet(mac: str) -> Command:
    """Prints the broadcast addresses to which it was sent. Exit 1: none; nobody answers such a packet."""
    return script(_sh("wake"), mac, timeout=20, changes=f"send a magic packet to {mac}")
