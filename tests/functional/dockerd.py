"""A Docker daemon of the tests' own: its data, socket and processes below one folder, no network touched."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from functional import tiny_base
from patience import PATIENCE


def obstacle() -> str:
    """The reason why no daemon can be started here; '' if one can."""
    if os.geteuid() != 0:
        return "a Docker daemon of the tests' own needs root"
    lacking = [name for name in ("dockerd", "docker", "containerd", "runc") if not shutil.which(name)]
    return f"a Docker daemon of the tests' own needs {', '.join(lacking)}" if lacking else ""


BASE = "tests/base:1"


def skipped() -> pytest.MarkDecorator:
    """Marks modules that need a daemon and an image to begin with."""
    why = obstacle() or tiny_base.obstacle()
    return pytest.mark.skipif(bool(why), reason=why)


@contextmanager
def running(repository: Path) -> "Iterator[Dockerd]":
    """A daemon that holds the tests' base image; its entrypoint fails: nobody may depend on it."""
    with tempfile.TemporaryDirectory(prefix="swd") as folder:
        daemon = Dockerd(Path(folder) / "d")
        try:
            daemon.start()
            change = ("--change", 'ENTRYPOINT ["/bin/false"]')
            daemon.docker("import", *change, "-", BASE, stdin=tiny_base.base_image(repository))
            yield daemon
        finally:
            daemon.stop()


@dataclass
class Dockerd:
    """folder: short, for a socket's path has at most 107 characters."""

    folder: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/sock"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = ["--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec"]
        paths += ["--pidfile", f"{self.folder}/pid", "--host", self.host]
        quiet = ["--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false", "--log-level=warn"]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(["dockerd", *paths, *quiet], stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + PATIENCE
        while self.call("version").returncode:
            log_text = (self.folder / "log").read_text()[-2000:]
            assert self.process.poll() is None and time.monotonic() < end, f"dockerd does not come up:\n{log_text}"
            time.sleep(0.1)

    def call(self, *words: str, stdin: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
        environ = {**os.environ, "DOCKER_HOST": self.host}
        return subprocess.run(["docker", *words], input=stdin, env=environ, capture_output=True)

    def docker(self, *words: str, stdin: bytes | None = None) -> str:
        done = self.call(*words, stdin=stdin)
        assert done.returncode == 0, f"docker {' '.join(words)}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
