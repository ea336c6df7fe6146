"""The real command, as a user calls it: a process of its own, with a cluster file and recipes made for the test."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from functional.command import COLD, run_warm
from patience import CALL, PATIENCE
from testbed import ContainerNode, NodeProcess, Testbed

SPARKWRIGHT = (str(Path(sys.executable).parent / "sparkwright"),)
RUNTIMES = ("docker", "process")
# They change no node, so the next test needs no reset.
READ_ONLY = ("status", "plan", "logs", "recipes", "explain", "incidents list", "incidents show", "keys list")
NAME = "drill"
ENDING = 60.0  # seconds
LABELS = ("deployment", "rank", "recipe-hash")
QUICK = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0"}
# About eight seconds of boot: enough to do something meanwhile.
SLOW = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.12", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "0"}
# About four.
BRISK = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.06", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "0"}


@dataclass(frozen=True, slots=True)
class CallResult:
    """One call: exit code, stdout, stderr, seconds."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"exit {self.code} after {self.seconds:.1f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Call:
    """A running call, in a process group of its own as a shell would make it; on a terminal of its own with `tty`."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, tty: bool = False) -> None:
        self._began = time.monotonic()
        self._texts = {"out": bytearray(), "err": bytearray()}
        self._terminal = -1
        self.process = self._on_terminal(argv, env, cwd) if tty else self._on_pipes(argv, env, cwd)
        self._readers = [threading.Thread(target=self._read, args=pair) for pair in self._sources(tty)]
        for reader in self._readers:
            reader.start()

    def _on_pipes(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )

    def _on_terminal(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> "subprocess.Popen[bytes]":
        self._terminal, inner = pty.openpty()

        def own() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        try:
            return subprocess.Popen(
                argv, stdin=inner, stdout=inner, stderr=inner, env=env, cwd=cwd, start_new_session=True, preexec_fn=own
            )
        finally:
            os.close(inner)

    def _sources(self, tty: bool) -> list[tuple[int, str]]:
        if tty:
            return [(self._terminal, "err")]
        assert self.process.stdout and self.process.stderr
        return [(self.process.stdout.fileno(), "out"), (self.process.stderr.fileno(), "err")]

    def _read(self, source: int, name: str) -> None:
        with contextlib.suppress(OSError):  # a terminal whose last program has gone says EIO
            while chunk := os.read(source, 65536):
                self._texts[name] += chunk

    @property
    def err(self) -> str:
        return self._texts["err"].decode(errors="replace")

    def saw(self, text: str, timeout: float = PATIENCE) -> "Call":
        """Waits until stderr holds the text."""
        end = time.monotonic() + timeout
        while text not in self.err:
            assert self.process.poll() is None, f"it ended before {text!r} was seen\n{self.finish()}"
            assert time.monotonic() < end, f"{text!r} was not seen in {timeout} s\n{self.kill()}"
            time.sleep(0.01)
        return self

    def interrupt(self) -> "Call":
        """Ctrl-C: SIGINT to the whole foreground group."""
        if self._terminal >= 0:
            os.write(self._terminal, b"\x03")
        else:
            os.killpg(self.process.pid, signal.SIGINT)
        return self

    def type(self, line: str) -> "Call":
        """Types a line at the terminal of its own."""
        os.write(self._terminal, f"{line}\n".encode())
        return self

    def kill(self) -> CallResult:
        """SIGKILL, to this process only: nothing can be put right by it."""
        self.process.kill()
        return self.finish()

    def finish(self, timeout: float = CALL) -> CallResult:
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        seconds = time.monotonic() - self._began
        for reader in self._readers:
            reader.join(60)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1
        return CallResult(code, self._texts["out"].decode(errors="replace"), self.err, seconds)


@dataclass
class CommandDriver:
    """`sparkwright` with one cluster file, one ssh config and one home."""

    folder: Path
    testbed: Testbed
    env: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    simulated: bool = False  # the cluster file says so: real engines' recipes are then marked, too
    node_env: dict[str, str] = field(default_factory=dict)  # of every call on the nodes
    notify: dict[str, Any] = field(default_factory=dict)  # of the cluster file
    supervise: bool = False  # `up` leaves a supervisor and a gateway
    standby: str = ""  # of the cluster file
    calls: list[Call] = field(default_factory=list)

    @property
    def cluster(self) -> Path:
        env = {"env": self.node_env} if self.node_env else {}
        nodes = [
            {"name": n.name, "ssh": f"{self.users[n.name]}@{n.name}" if n.name in self.users else n.name, **env}
            for n in self.testbed.nodes
        ]
        mark: dict[str, Any] = {"simulated": True} if self.simulated else {}
        mark |= {"notify": self.notify} if self.notify else {}
        mark |= {"standby": self.standby} if self.standby else {}
        return self._write("cluster.yaml", {"name": "testbed", "nodes": nodes, **mark})

    def recipe(self, runtime: str, env: Mapping[str, str] = QUICK, **changes: Any) -> str:
        """A recipe of the simulator; changes replace whole top-level keys, or are merged into mappings,
        where None takes a key out."""
        engine = {"name": "simulator", "version": "0.21.0", "runtime": runtime}
        if runtime == "docker":
            engine |= {"image": self.testbed.engine_image, "image_note": "made by the tests"}
        else:
            engine |= {"venv": "/opt/sparkwright"}
        tree: dict[str, Any] = {
            "name": NAME,
            "title": "A drill",
            "model": {"id": "sparkwright/twin-tiny", "served_name": "twin-tiny", "size": "2GiB", "simulated": True},
            "engine": engine,
            "nodes": 2,
            "parallelism": {"tp": 2},
            "serving": {"context": 32768, "sequences": 8, "batched_tokens": 2048, "memory_fraction": 0.8},
            "env": dict(env),
        }
        for key, value in changes.items():
            merged = {**tree[key], **value} if isinstance(tree.get(key), dict) else value
            tree[key] = {k: v for k, v in merged.items() if v is not None} if isinstance(merged, dict) else merged
        return str(self._write(f"{NAME}.yaml", tree))

    def _write(self, name: str, tree: object) -> Path:
        path = self.folder / name
        path.write_text(yaml.safe_dump(tree, sort_keys=False))
        return path

    def _words(self, verb: str, words: Sequence[str]) -> list[str]:
        if verb not in READ_ONLY:
            self.testbed.mark(changed=True)
        where = ("--cluster", str(self.cluster), "--ssh-config", str(self.testbed.ssh_config))
        alone = ("--no-supervise",) if verb == "up" and not self.supervise else ()
        return [*verb.split(), *where, *words, *alone]

    def _environ(self, env: Mapping[str, str] | None) -> dict[str, str]:
        (self.folder / "home").mkdir(exist_ok=True)
        home = {"HOME": str(self.folder / "home"), "TERM": "xterm", "COLUMNS": "400"}
        return {**os.environ, **home, **self.env, **(env or {})}

    def start(self, verb: str, *words: str, tty: bool = False, env: Mapping[str, str] | None = None) -> Call:
        """A process of its own: for signals, terminals, and what happens meanwhile."""
        call = Call((*SPARKWRIGHT, *self._words(verb, words)), self._environ(env), self.folder, tty)
        self.calls.append(call)
        return call

    def run(self, verb: str, *words: str, env: Mapping[str, str] | None = None, timeout: float = CALL) -> CallResult:
        """A fork of the warm command: see `functional.warm`."""
        if COLD:
            return self.start(verb, *words, env=env).finish(timeout)
        began = time.monotonic()
        done = run_warm(self._words(verb, words), self._environ(env), self.folder, seconds=timeout)
        return CallResult(*done, time.monotonic() - began)

    def good(self, verb: str, *words: str, env: Mapping[str, str] | None = None) -> CallResult:
        done = self.run(verb, *words, env=env)
        assert done.code == 0, str(done)
        return done

    def shown(self) -> dict[str, Any]:
        """The only deployment in `status`; exit 1 for a trouble there, such as memory pressure on a busy machine."""
        done = self.run("status", "--json")
        assert done.code in (0, 1), str(done)
        (one,) = done.json["deployments"]
        found: dict[str, Any] = one
        return found

    def close(self) -> None:
        for call in self.calls:
            if call.process.poll() is None:
                call.process.kill()
            call.finish()


def containers(node: ContainerNode) -> list[dict[str, Any]]:
    """`docker inspect` of everything there."""
    ids = node.sh("docker ps --all --quiet --no-trunc").split()
    found: list[dict[str, Any]] = json.loads(node.sh(f"docker inspect {' '.join(ids)}")) if ids else []
    return found


def _twins(node: ContainerNode) -> list[NodeProcess]:
    """Not what only carries their words: docker-init, the session's leader."""
    found = [p for p in node.processes() if "-m sparkwright.simulator serve" in p.command]
    return [p for p in found if p.command.split()[0].rpartition("/")[2].startswith("python")]


def engines(node: ContainerNode) -> list[str]:
    """Command lines of the simulator's ranks that run, in containers or not."""
    return [p.command for p in _twins(node)]


def running(nodes: Sequence[ContainerNode]) -> dict[str, list[str]]:
    """The identity of one start of the ranks: container ids or engine pids."""
    return {n.name: n.sh("docker ps --quiet --no-trunc").split() or [str(p.pid) for p in _twins(n)] for n in nodes}


def assert_clean(nodes: Sequence[ContainerNode]) -> None:
    """Asserts that nothing is left; the follower of a log ends after the log's process, on a busy machine a few seconds
    later."""
    end = time.monotonic() + ENDING
    while (left := [f"{n.name}: {one}" for n in nodes for one in n.leftovers()]) and time.monotonic() < end:
        time.sleep(0.5)
    assert not left, "\n".join(left[:20])


def assert_stopped(nodes: Sequence[ContainerNode]) -> None:
    """No engine runs and no lease is held; evidence may be there."""
    assert {n.name: engines(n) for n in nodes} == {n.name: [] for n in nodes}
    assert [n.name for n in nodes if read_lease(n)] == []


def read_lease(node: ContainerNode) -> str:
    return node.sh("cat /run/lock/sparkwright/lease 2>/dev/null", check=False)


@contextlib.contextmanager
def slowed(node: ContainerNode, program: str, seconds: float, when: str = "*") -> Iterator[None]:
    """Makes `program` on the node wait before it does anything while open, if its words match the sh pattern `when`."""
    with _waiting_first(node, program, f"sleep {seconds}", when):
        yield


@contextlib.contextmanager
def hold_program(node: ContainerNode, program: str, when: str = "*") -> Iterator[None]:
    """Makes `program` on the node wait until this is closed, if its words match the sh pattern `when`."""
    with _waiting_first(node, program, 'while [ -e "$0" ]; do sleep 0.1; done', when):
        yield


@contextlib.contextmanager
def _waiting_first(node: ContainerNode, program: str, wait: str, when: str) -> Iterator[None]:
    real = node.sh(f"command -v {program}")
    assert real != f"/usr/local/bin/{program}", "a shim is where the slow one would"
    text = f'#!/bin/sh\ncase "$*" in {when}) {wait} ;; esac\nexec {real} "$@"\n'
    node.write(f"/usr/local/bin/{program}", text, mode="755")
    try:
        yield
    finally:
        node.sh(f"rm -f /usr/local/bin/{program}")


def lift_memlock(node: ContainerNode) -> None:
    """dockerd's limits as on a GB10 (taken back by the next reset); here the machine may not raise them."""
    pid = node.sh("pidof dockerd").split()[0]
    node.write(f"/opt/fixtures/proc/{pid}/limits", "Max locked memory         unlimited            unlimited   bytes\n")
