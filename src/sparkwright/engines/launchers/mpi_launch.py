"""Starts mpirun's daemon on another node without sshd: an agent there, and the program that mpirun calls here.

    mpi_launch.py head -- mpirun ...                                    rank 0
    mpi_launch.py agent --listen ADDRESS --port PORT [--wait SECONDS]   rank k
    mpi_launch.py rsh --port PORT HOST COMMAND...                       what mpirun calls in place of ssh

Agent and rsh know the key of this launch from SPARKWRIGHT_LAUNCH_KEY. The agent listens on its fabric address only,
proves the key and has it proved (HMAC-SHA256 over both sides' random challenges and the command), then runs one single
command, which must be an Open MPI daemon: `orted` or `prted`, never a shell. Its output goes to both logs. Either side
ends when the other is gone, and the agent leaves no process behind. Python >= 3.10 with nothing but its library.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import hmac
import json
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import BufferedRWPair
from pathlib import Path
from queue import Empty, Queue
from typing import Any

KEY = "SPARKWRIGHT_LAUNCH_KEY"
DAEMONS = ("orted", "prted")
OPERATORS = ";|&<>()`$"
# What mpirun puts before its daemon when its installation has a prefix of its own.
MAY_SET = ("PATH", "LD_LIBRARY_PATH", "OPAL_PREFIX", "PMIX_INSTALL_PREFIX", "PRTE_PREFIX")
GRACE = HANDSHAKE = 10.0  # seconds
LONGEST = 1 << 20


class PeerRefused(Exception):
    """The other side is not who it must be, or asks for what it may not."""


def log_line(text: str) -> None:
    sys.stdout.write(f"mpi: {text}\n")
    sys.stdout.flush()


def make_proof(key: str, role: str, challenges: tuple[str, str], command: str) -> str:
    """role: who proves, so that neither side's proof can be sent back to it."""
    text = json.dumps([role, *challenges, command]).encode()
    return hmac.new(key.encode(), text, hashlib.sha256).hexdigest()


def is_same_proof(ours: str, message: dict[str, Any]) -> bool:
    return hmac.compare_digest(ours.encode(), str(message.get("proof", "")).encode(errors="replace"))


def send_json(stream: BufferedRWPair, message: dict[str, Any]) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def receive(stream: BufferedRWPair) -> dict[str, Any]:
    """One message; empty once the other side is gone. Raises PeerRefused for what is none."""
    try:
        message = json.loads(stream.readline(LONGEST) or b"{}")
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise PeerRefused("does not speak this protocol")
    return message


def daemon_words(command: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The words and environment of mpirun's shell command. Raises PeerRefused for anything but its daemon."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    at = next((i for i, word in enumerate(words) if Path(word).name in DAEMONS), -1)
    # Contact addresses and node lists hold `;` inside quotes: without a shell they are only text.
    tail = words[at:-1] if words[-1:] == [")"] else words[at:]
    if at < 0 or any(word and not word.strip(OPERATORS) for word in tail):
        raise PeerRefused(f"asked for something that is not {' or '.join(DAEMONS)}: {command[:120]}")
    env = dict(environment)
    for name, value in (match.groups() for word in words[:at] if (match := re.fullmatch(r"([A-Z_]+)=(.*)", word))):
        if name in MAY_SET:
            env[name] = re.sub(r"\$(\w+)", lambda m: env.get(m[1], ""), value)
    return tail, env


def next_to_us(environment: dict[str, str]) -> dict[str, str]:
    """A venv's programs call `python3` and each other by name."""
    return {**environment, "PATH": f"{Path(sys.executable).parent}:{environment.get('PATH', os.defpath)}"}


def run_agent(key: str, address: str, port: int, wait: float) -> int:
    """Exit code of the daemon; 1 when none was ever asked for."""
    environment = next_to_us({name: value for name, value in os.environ.items() if name != KEY})
    heads: Queue[tuple[socket.socket, str, tuple[list[str], dict[str, str]]]] = Queue()

    def consider(connection: socket.socket, peer: str) -> None:
        try:
            heads.put((connection, peer, admit_peer(connection, key, environment)))
        except (PeerRefused, OSError) as error:
            log_line(f"agent refused {peer}: {error}")
            connection.close()

    with socket.create_server((address, port), backlog=16) as listener:
        log_line(f"agent waits for the head on {address}:{port}")
        threading.Thread(target=callers, args=(listener, consider), daemon=True).start()
        try:
            connection, peer, (words, env) = heads.get(timeout=wait)
        except Empty:
            log_line(f"agent: no head came within {wait:g} s; see the log of rank 0")
            return 1
        listener.shutdown(socket.SHUT_RDWR)
    log_line(f"agent joined: {peer} starts {Path(words[0]).name}")
    return run(connection, words, env)


def callers(listener: socket.socket, consider: Callable[[socket.socket, str], None]) -> None:
    """Each in a thread of its own, so that a silent one keeps nobody waiting; until the listener is shut."""
    with suppress(OSError):
        while True:
            connection, (peer, _) = listener.accept()
            threading.Thread(target=consider, args=(connection, peer), daemon=True).start()


def admit_peer(connection: socket.socket, key: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Raises PeerRefused, having sent the other side the reason."""
    connection.settimeout(HANDSHAKE)
    stream = connection.makefile("rwb")
    mine = secrets.token_hex(32)
    send_json(stream, {"challenge": mine})
    asked = receive(stream)
    command, theirs = str(asked.get("command", "")), str(asked.get("challenge", ""))
    try:
        if not is_same_proof(make_proof(key, "head", (mine, theirs), command), asked):
            raise PeerRefused("it does not know the key of this launch")
        found = daemon_words(command, environment)
    except PeerRefused as error:
        send_json(stream, {"refused": str(error)})
        raise
    send_json(stream, {"proof": make_proof(key, "agent", (mine, theirs), command)})
    return found


def run(connection: socket.socket, words: list[str], env: dict[str, str]) -> int:
    """The daemon, for as long as the head holds the connection."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    keep_alive(connection)
    stream = connection.makefile("rwb")
    try:
        child = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
    except OSError as error:
        log_line(f"agent: {words[0]} cannot be started: {error}")
        send_json(stream, {"refused": f"{words[0]} cannot be started there: {error}"})
        return 127
    signal.signal(signal.SIGTERM, lambda *_: end_child(child))
    signal.signal(signal.SIGINT, lambda *_: end_child(child))
    threading.Thread(target=watch_child, args=(stream, child), daemon=True).start()
    assert child.stdout
    for line in child.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        send_message(stream, {"out": line.decode(errors="replace")})
    code = child.wait()
    kill_orphans()
    log_line(f"agent: {Path(words[0]).name} ended with exit code {code}")
    send_message(stream, {"exit": code})
    return code if code >= 0 else 128 - code


def keep_alive(connection: socket.socket) -> None:
    """A head whose machine is gone sends nothing: asked every 10 s, it counts as gone after about a minute."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 4)):
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def send_message(stream: BufferedRWPair, message: dict[str, Any]) -> None:
    """Reports to the head, if it still listens: `watch_child` ends the daemon otherwise."""
    with suppress(OSError):
        send_json(stream, message)


def watch_child(stream: BufferedRWPair, child: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        stream.read(1)
    if child.poll() is None:
        log_line("agent: the head is gone; ending the daemon")
        end_child(child)


def end_child(child: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
    """TERM, so that the daemon ends its own children; KILL after a while."""
    with suppress(ProcessLookupError):
        if child.poll() is None:
            os.killpg(child.pid, number)
            killer = threading.Timer(GRACE, end_child, (child, signal.SIGKILL))
            killer.daemon = True
            killer.start()


def kill_orphans() -> None:
    """Kills what the daemon left: as subreaper this process is the parent of every orphan."""
    while True:
        try:
            found, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not found:
            for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.05)


def run_rsh(key: str, port: int, host: str, command: str, wait: float) -> int:
    """The daemon's exit code; 1 when the agent cannot be reached, refuses, or is gone."""
    try:
        connection = connect_agent(host, port, wait)
    except OSError as error:
        log_line(f"rank on {host} cannot be reached on port {port} after {wait:g} s: {error}")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # the connection's end is the message
    stream = connection.makefile("rwb")
    try:
        theirs, mine = str(receive(stream).get("challenge", "")), secrets.token_hex(32)
        send_json(
            stream, {"challenge": mine, "command": command, "proof": make_proof(key, "head", (theirs, mine), command)}
        )
        answer = receive(stream)
        if "refused" in answer:
            raise PeerRefused(f"refused: {answer['refused']}")
        if not is_same_proof(make_proof(key, "agent", (theirs, mine), command), answer):
            raise PeerRefused("something else listens there: it does not know the key of this launch")
        log_line(f"daemon starts on {host}")
        keep_alive(connection)
        while message := receive(stream):
            if "refused" in message:
                raise PeerRefused(str(message["refused"]))
            if "exit" in message:
                return int(message["exit"]) & 0xFF
            sys.stdout.write(str(message.get("out", "")))
            sys.stdout.flush()
        log_line(f"agent on {host} is gone: its rank has ended")
        return 1
    except (PeerRefused, OSError) as error:
        log_line(f"agent on {host}: {error}")
        return 1


def connect_agent(host: str, port: int, wait: float) -> socket.socket:
    """The agent's container may still be starting. Raises OSError after `wait` seconds."""
    deadline = time.monotonic() + wait
    while True:
        try:
            return socket.create_connection((host, port), timeout=HANDSHAKE)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mpi_launch.py", description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    roles.add_parser("head").add_argument("command", nargs=argparse.REMAINDER)
    for name in ("agent", "rsh"):
        roles.add_parser(name).add_argument("--port", type=int, required=True)
        roles.choices[name].add_argument("--wait", type=float, default=300.0)
    roles.choices["agent"].add_argument("--listen", required=True)
    roles.choices["rsh"].add_argument("host")
    roles.choices["rsh"].add_argument("command", nargs=argparse.REMAINDER)
    given, key = parser.parse_args(argv), os.environ.get(KEY, "")
    if not key:
        log_line(f"{KEY} is not set: this program is started by sparkwright only")
        return 2
    if given.role == "head":
        words = given.command[given.command[:1] == ["--"] :]
        try:
            os.execvpe(words[0], words, next_to_us(dict(os.environ)))  # becomes mpirun
        except OSError as error:
            log_line(f"{words[0]} cannot be started: {error}")
            return 127
    if given.role == "agent":
        return run_agent(key, given.listen, given.port, given.wait)
    return run_rsh(key, given.port, given.host, " ".join(given.command), given.wait)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
