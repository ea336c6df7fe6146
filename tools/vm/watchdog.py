"""A machine with a hardware watchdog, frozen on purpose, as a user of `check --fix` sees it. python -m vm.watchdog

Exit code 1: the watchdog is not found, not armed, lost with a boot, does not reset the machine, or --undo leaves it
armed. Where the CPU has no virtualization of its own, qemu computes everything: then it takes ten minutes.
"""

import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.last_seconds import told_of
from sparkwright.domain.sample import Sample
from sparkwright.domain.unknown import Unknown
from sparkwright.facts import sample
from sparkwright.facts.ring import EVERY, last_minutes, parse_ring
from vm.image import lacking
from vm.pair import Spark, booted
from vm.ubuntu import Ubuntu

CARD = ("-device", "i6300esb", "-action", "watchdog=reset")
# The kernel stops where it is and prints nothing more: nobody answers, and nothing starts it again.
FREEZE = "sync; echo 0 | sudo tee /proc/sys/kernel/panic >/dev/null; echo c | sudo tee /proc/sysrq-trigger"
CODE = "HOST026"
STATE = "/home/spark/.local/state/sparkwright"
_SHOWN = """[ "$(cat /sys/class/watchdog/watchdog0/state 2>/dev/null)" != active ] && echo silent
systemctl show -p RuntimeWatchdogUSec; find /etc/systemd ! -type d | LC_ALL=C sort"""


class FreezeProof:
    def __init__(self, spark: Spark, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self.failed: list[str] = []
        (folder / "cluster.yaml").write_text(yaml.safe_dump({"name": "vm", "nodes": [spark.name]}))

    def run(self) -> None:
        before = self._spark.ssh(_SHOWN)
        found = self._call("check")
        self._say("check finds the card without a driver", "i6300esb is not loaded" in _evidence(found), found)
        fixed = self._call("check", "--fix", "--yes", "--only", CODE)
        made = [one["outcome"] for one in fixed.get("changes", ())]
        self._say("check --fix arms it", made == ["done"] and not _evidence(self._call("check")), fixed)
        self._spark.reboot()
        self._say("it is armed after a reboot", self._state() == "active", self._state())
        self._say("an ordinary reboot is no reset", not self._was_reset())
        boot = self._spark.ssh("cat /proc/sys/kernel/random/boot_id")
        began = time.monotonic()
        marker = self._sample().boot
        with self._ring():
            frozen_at = float(self._spark.ssh("date +%s.%N"))
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                self._spark.ssh(FREEZE, timeout=20)
        self._spark.wait(boot)
        took = time.monotonic() - began
        self._say(f"frozen, it is reset and has ssh again after {took:.0f} s", True)
        self._say("its next boot knows that the watchdog did it", self._was_reset())
        last = parse_ring(Completed(0, self._script(last_minutes(STATE, "chat", marker))))
        gap = frozen_at - max((one.at for one in last), default=0.0)
        self._say(f"the ring on its disk ends within {abs(gap):.1f} s of the freeze", abs(gap) < 2 * EVERY + 6, gap)
        print(told_of(self._spark.name, last, 0.0), flush=True)
        self._say("it is armed again", self._state() == "active", self._state())
        undone = self._call("check", "--undo", "--yes", "--only", CODE)
        self._say("check --undo takes it back", self._spark.ssh(_SHOWN) == before, (undone, self._spark.ssh(_SHOWN)))

    def _state(self) -> str:
        return self._spark.ssh("cat /sys/class/watchdog/watchdog0/state", check=False)

    def _was_reset(self) -> bool:
        return self._sample().was_reset

    def _sample(self) -> Sample:
        """A sample of the node, as the supervisor reads it."""
        found = sample.parse(Completed(0, self._script(sample.memory())))
        assert not isinstance(found, Unknown), found
        return found

    def _script(self, command: Command) -> str:
        return self._spark.ssh(shlex.join(command.argv))

    @contextlib.contextmanager
    def _ring(self) -> Iterator[None]:
        """The ring is kept for half a minute and from then on."""
        command = shlex.join(sample.follow(5.0, 2.0, 0.0, STATE, "chat").argv)
        argv = ["ssh", "-F", str(self._folder / "ssh_config"), "-o", "BatchMode=yes", self._spark.name, command]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet) as process:
            time.sleep(30)
            try:
                yield
            finally:
                process.kill()

    def _call(self, *words: str) -> dict[str, Any]:
        env = {**os.environ, "HOME": str(self._folder), "NO_COLOR": "1"}
        where = ["--ssh-config", str(self._folder / "ssh_config"), "--cluster", str(self._folder / "cluster.yaml")]
        argv = [sys.executable, "-m", "vm.patient", *words, *where, "--json"]
        done = subprocess.run(argv, env=env, capture_output=True, text=True)
        print(done.stderr[-2000:], file=sys.stderr)
        found: dict[str, Any] = json.loads(done.stdout or "{}")
        return found

    def _say(self, what: str, shown: bool, why: object = "") -> None:
        print(f"{'shown' if shown else 'NOT SHOWN'}: {what}{'' if shown else f': {why}'}", flush=True)
        self.failed += [] if shown else [what]


def _evidence(checked: Mapping[str, Any]) -> str:
    return next((str(one["evidence"]) for one in checked.get("findings", ()) if one["code"] == CODE), "")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="vm.watchdog", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/cache/sparkwright-vm-init"), help="of disk and kernel"
    )
    asked = parser.parse_args(words)
    if missing := lacking():
        print(f"vm: needs {', '.join(missing)}: apt-get install", file=sys.stderr)
        return 2
    image = Ubuntu(asked.folder)
    image.build()
    with tempfile.TemporaryDirectory() as folder, booted(image, Path(folder), (2,), CARD) as (spark,):
        proof = FreezeProof(spark, Path(folder))
        proof.run()
    return 1 if proof.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
