"""A magic packet on a real wire: two ends of a veth pair in a network name space, captured at the far end."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparkwright.facts.network import NETWORK
from sparkwright.remote.wake import send_magic_packet

MAC = "48:b0:2d:00:00:01"
CAPTURE = """
import json, socket, subprocess, sys
def ip(words): subprocess.run(["ip", *words.split()], check=True)
ip("link set lo up")
ip("link add here type veth peer name there")
ip("link set here up")
ip("link set there up")
ip("addr add 10.99.0.1/24 brd + dev here")
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
wire.bind(("there", 0))
wire.settimeout(20)
done = subprocess.run(json.loads(sys.argv[1]), capture_output=True, text=True)
frames = []
while len(frames) < 3 and done.returncode == 0:
    frame = wire.recv(2048)
    if frame[23] == 17:
        frames.append(frame.hex())
print(json.dumps([done.returncode, done.stdout, done.stderr, frames]))
"""
ALONE = "import json, subprocess, sys; d = subprocess.run(json.loads(sys.argv[1]), capture_output=True, text=True); \
print(json.dumps([d.returncode, d.stdout, d.stderr, []]))"


def in_name_space(program: str) -> tuple[int, str, str, list[str]]:
    argv = json.dumps(list(send_magic_packet(MAC).argv))
    words = ["unshare", "--net", sys.executable, "-c", program, argv]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if "unshare" in done.stderr or not shutil.which("ip"):
        pytest.skip(f"no network name space: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    code, out, err, frames = json.loads(done.stdout)
    return code, out, err, frames


def test_the_packet_is_on_the_wire() -> None:
    """Six bytes of 0xff and sixteen times the address, to everybody of that network: what a card waits for."""
    code, out, err, frames = in_name_space(CAPTURE)
    assert (code, out) == (0, "10.99.0.255\n"), err
    wanted = b"\xff" * 6 + bytes.fromhex(MAC.replace(":", "")) * 16
    for frame in map(bytes.fromhex, frames):
        assert frame[:6] == b"\xff" * 6, "a broadcast of the link"
        assert frame.endswith(wanted) and frame[36:38] == (9).to_bytes(2, "big")
    assert len(frames) == 3


def test_a_node_without_a_network_says_so() -> None:
    """Exit 1, so that another node is asked."""
    code, out, _, _ = in_name_space(ALONE)
    assert (code, out) == (1, "\n")


def test_cards_and_their_switch_are_read(tmp_path: Path) -> None:
    """The kernel's own files, as any user may read them: armed, off, and a card that cannot."""
    net = tmp_path / "sys/class/net"
    for name, mac, switch in (("enP7s7", MAC.upper(), "enabled"), ("wlP9s9", "48:b0:2d:00:00:02", "disabled")):
        (net / name / "device/power").mkdir(parents=True)
        (net / name / "address").write_text(f"{mac}\n")
        (net / name / "device/power/wakeup").write_text(f"{switch}\n")
    (net / "enp1s0f0np0/device").mkdir(parents=True)
    (net / "enp1s0f0np0/address").write_text("48:b0:2d:00:00:03\n")
    (net / "lo").mkdir()
    done = subprocess.run(
        NETWORK.command.argv,
        capture_output=True,
        text=True,
        check=False,
        env={"SPARKWRIGHT_SYSROOT": str(tmp_path), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    from sparkwright.domain.command import Completed

    found = NETWORK.read(Completed(done.returncode, done.stdout, done.stderr))
    cards = {one.interface: (one.mac, one.armed) for one in found.cards or ()}  # type: ignore[union-attr]
    assert cards == {
        "enP7s7": (MAC, True),
        "wlP9s9": ("48:b0:2d:00:00:02", False),
        "enp1s0f0np0": ("48:b0:2d:00:00:03", None),
    }
