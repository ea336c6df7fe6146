"""Two machines and the cable between them: ssh to each on a port of loopback, Ethernet frames in datagrams."""

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vm.machine import CONFIG, free_port, hardware
from vm.ubuntu import CARDS, Ubuntu

# What only makes the boot of an emulated machine longer.
_WITHOUT = ("NetworkManager-wait-online.service", "serial-getty@ttyS0.service", "e2scrub_reap.service")


@dataclass
class Spark:
    """number: 1 or 2. It reboots in place: its disk is as new only for the next process."""

    number: int
    image: Ubuntu
    folder: Path
    port: int
    cable: list[tuple[int, int]]  # (own, far) UDP ports of each function
    more: tuple[str, ...] = ()  # words for qemu
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def name(self) -> str:
        return f"spark-{self.number}"

    def start(self) -> None:
        with (self.folder / f"{self.name}.qemu").open("wb") as log:
            self.process = subprocess.Popen(self._argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _argv(self) -> list[str]:
        words = ["-accel", "kvm", "-cpu", "host"] if hardware() else ["-accel", "tcg,thread=multi", "-cpu", "max"]
        words += ["-m", "1024", "-smp", "2", "-display", "none", "-serial", f"file:{self.folder / self.name}.console"]
        boot = f"root=/dev/vda rw console=ttyS0 panic=-1 apparmor=0 init=/sbin/node-boot node={self.number}"
        boot += "".join(f" systemd.mask={unit}" for unit in _WITHOUT)
        words += ["-kernel", str(self.image.kernel), "-append", boot]
        words += ["-drive", f"file={self.image.root},format=raw,if=virtio,snapshot=on,cache=unsafe"]
        nets = [f"user,hostfwd=tcp:127.0.0.1:{self.port}-:22,restrict=on"]
        for own, far in self.cable:
            nets.append(
                "dgram,"
                + ",".join(
                    f"{side}.type=inet,{side}.host=127.0.0.1,{side}.port={port}"
                    for side, port in (("local", own), ("remote", far))
                )
            )
        for number, (net, mac) in enumerate(zip(nets, CARDS, strict=True)):
            kind, _, rest = net.partition(",")
            words += ["-netdev", f"{kind},id=n{number},{rest}"]
            words += ["-device", f"virtio-net-pci,netdev=n{number},mac={mac}:{self.number:02}"]
        return ["qemu-system-x86_64", *words, *self.more]

    def ssh(self, command: str, timeout: float = 120, check: bool = True) -> str:
        argv = ["ssh", "-F", str(self.folder / "ssh_config"), "-o", "BatchMode=yes", self.name, command]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode:
            raise RuntimeError(f"{self.name}: {command[:80]}: {done.returncode} {(done.stderr or done.stdout)[-800:]}")
        return done.stdout.strip()

    def wait(self, before: str = "", seconds: float = 1500) -> str:
        """Waits until it has booted, another time than before; returns its boot's id."""
        end = time.monotonic() + seconds
        script = "cat /proc/sys/kernel/random/boot_id; systemctl is-system-running --wait >/dev/null 2>&1; true"
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                if (now := self.ssh(script)) != before:
                    return now
            time.sleep(1)
        raise RuntimeError(f"{self.name}: no ssh after {seconds:.0f} s: {self._tail()}")

    def reboot(self) -> None:
        before = self.ssh("cat /proc/sys/kernel/random/boot_id")
        self.ssh("sudo systemctl reboot", check=False)
        self.wait(before)

    def _tail(self) -> str:
        return (self.folder / f"{self.name}.console").read_text(errors="replace")[-1500:]


@contextlib.contextmanager
def booted(
    image: Ubuntu, folder: Path, numbers: Sequence[int] = (1, 2), more: tuple[str, ...] = ()
) -> Iterator[list[Spark]]:
    """Boots the machines; they are off afterwards, whatever becomes of the caller's work."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [(free_port(), free_port()) for _ in range(2)]
    cables = {1: ends, 2: [(far, own) for own, far in ends]}
    sparks = [Spark(number, image, folder, free_port(), cables[number], more) for number in numbers]
    hosts = (CONFIG.format(name=s.name, port=s.port, key=image.key, known=folder / f"known-{s.name}") for s in sparks)
    (folder / "ssh_config").write_text("\n".join(hosts))
    try:
        for one in sparks:
            one.start()
        for one in sparks:
            one.wait()
        yield sparks
    finally:
        for one in sparks:
            if one.process:
                one.process.kill()
                one.process.wait()
