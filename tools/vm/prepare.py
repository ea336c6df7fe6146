"""`init` on two machines that are as from the box, through reboots and back, as a user makes it. python -m vm.prepare

Exit code 1: a step was not made, did not last over a boot, or --undo left anything in /etc, in the user's home, in
swap, in the kernel's settings or on the ports other than it was. Where the CPU has no virtualization of its own, qemu
computes everything: then it takes twenty minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vm.image import lacking
from vm.pair import Spark, booted
from vm.ubuntu import Ubuntu

PORTS = ("enp1s0f0np0", "enP2p1s0f0np0")
# Files to the byte with mode and owner, links, then what is in force. Copies that passwd's tools keep do not count.
_PLACES = "etc home/spark/.ssh home/spark/.config ! -name '*-' ! -type d"
_SHOWN = f"""cd /; sudo find {_PLACES} -printf '%p %m %u %l\\n' 2>/dev/null | LC_ALL=C sort
sudo find {_PLACES} -type f -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 sudo sha256sum
sed 1d /proc/swaps | cut -d' ' -f1; sysctl vm.overcommit_memory; id -nG spark; systemctl --failed --no-legend --plain
for i in {" ".join(PORTS)}; do cat /sys/class/net/$i/mtu; ip -4 -o addr show dev $i; ip -4 route show dev $i; done
ls -A /run/netplan /run/systemd/network 2>/dev/null | grep sparkwright; ls /var/lib/sparkwright 2>/dev/null; true"""
# What must hold: swap, docker, sysctl, clock, and a 9000-byte frame to the other one by each port.
_HOLDS = """set -e; [ "$(wc -l </proc/swaps)" = 1 ]; docker version >/dev/null
[ "$(sysctl -n vm.overcommit_memory)" = 0 ]; systemctl is-active -q sparkwright-gpu-clock
for a in FAR; do
  n=0; until ping -n -q -c 1 -W 5 -M do -s 8972 $a >/dev/null; do n=$((n+1)); [ $n -lt 20 ]; done
done"""


class StartProof:
    def __init__(self, sparks: Sequence[Spark], folder: Path) -> None:
        self._sparks, self._folder = sparks, folder
        self.failed: list[str] = []

    def run(self) -> None:
        before = self._shown()
        made = self._init("--yes")
        self._say("every step is done", {one["outcome"] for one in made["steps"]} == {"done"}, made["steps"])
        self._say(f"steps: {' '.join(dict.fromkeys(one['code'] for one in made['steps']))}", True)
        self._say("all of it holds", *self._holds())
        self._both("reboot")
        self._say("all of it holds after a reboot", *self._holds())
        again = self._init("--yes")
        self._say("a second run has nothing to do", again["steps"] == [], again["steps"])
        undone = self._init("--undo", "--yes")
        self._say("every step is undone", {one["outcome"] for one in undone["steps"]} == {"done"}, undone["steps"])
        self._say("everything is as before, to the byte", *self._same(before))
        self._both("reboot")
        self._say("and after a reboot", *self._same(before))

    def _init(self, *words: str) -> dict[str, list[dict[str, str]]]:
        where = ["--ssh-config", str(self._folder / "ssh_config"), "--cluster", str(self._folder / "new.yaml")]
        names = [] if "--undo" in words else [one.name for one in self._sparks]
        env = {**os.environ, "HOME": str(self._folder), "NO_COLOR": "1", "SPARKWRIGHT_SUPERVISOR_SCALE": "6"}
        argv = [sys.executable, "-m", "vm.patient", "init", *where, "--json", *words, *names]
        done = subprocess.run(argv, env=env, capture_output=True, text=True)
        print(done.stderr[-3000:], file=sys.stderr)
        found: dict[str, list[dict[str, str]]] = json.loads(done.stdout or '{"steps": []}')
        return found

    def _both(self, what: str) -> None:
        for one in self._sparks:
            getattr(one, what)()

    def _shown(self) -> list[str]:
        return [one.ssh(_SHOWN, timeout=600) for one in self._sparks]

    def _same(self, before: Sequence[str]) -> tuple[bool, list[str]]:
        now = self._shown()
        changed = [
            line for old, new in zip(before, now, strict=True) for line in {*old.split("\n")} ^ {*new.split("\n")}
        ]
        return now == list(before), changed

    def _holds(self) -> tuple[bool, list[str]]:
        trouble = []
        for one, far in zip(self._sparks, (12, 11), strict=False):
            try:
                one.ssh(
                    _HOLDS.replace("FAR", f"192.168.100.{far} 192.168.101.{far}" if len(self._sparks) > 1 else ""),
                    timeout=300,
                )
            except RuntimeError as error:
                trouble.append(str(error))
        return not trouble, trouble

    def _say(self, what: str, shown: bool, why: object = "") -> None:
        print(f"{'shown' if shown else 'NOT SHOWN'}: {what}{'' if shown else f': {why}'}", flush=True)
        self.failed += [] if shown else [what]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="vm.prepare", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/cache/sparkwright-vm-init"), help="of disk and kernel"
    )
    parser.add_argument("--one", action="store_true", help="one machine: all steps but those of the cable")
    asked = parser.parse_args(words)
    if missing := lacking():
        print(f"vm: needs {', '.join(missing)}: apt-get install", file=sys.stderr)
        return 2
    image = Ubuntu(asked.folder)
    image.build()
    with tempfile.TemporaryDirectory() as folder, booted(image, Path(folder), (2,) if asked.one else (1, 2)) as sparks:
        proof = StartProof(sparks, Path(folder))
        proof.run()
    return 1 if proof.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
