"""A Ray cluster of exactly the nodes of one launch, and the program that needs it. One rank's program on every node.

    ray_launch.py head   --listen IP --port P --nodes IP,IP --wait S --folder DIR -- vllm serve ...
    ray_launch.py worker --listen IP --port P --head IP     --wait S --folder DIR
    ray_launch.py nodes  IP:P                                prints the cluster's nodes as JSON, once a second

head starts Ray, waits until Ray reports all nodes with a GPU each, and only then runs the program: a
cluster that comes up with one node is named before weights are read. Its exit code is the program's. worker joins, and
ends when the head's Ray is gone. Neither leaves a process or the folder behind. It is self-contained: Python >= 3.10,
nothing but its library and the Ray of its interpreter, whose command line and `ray.nodes()` it uses.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from types import FrameType
from typing import Any

MARK = "SPARKWRIGHT_RAY"
STORE = 1 << 30  # bytes; Ray's default is 30 % of memory, which the model needs
TOKENS_SINCE = (2, 52)  # RAY_AUTH_MODE=token
# Ports from the cluster's own upwards: fixed, so that a firewall can name them and two launches do not meet.
PORTS = (
    "node-manager-port", "object-manager-port", "runtime-env-agent-port", "dashboard-agent-grpc-port",
    "dashboard-agent-listen-port", "metrics-export-port",
)  # fmt: skip
WORKERS = (20, 99)
GONE_AFTER = 20.0  # seconds without the head's port; a refused connection counts five times
_LIBC = ctypes.CDLL(None)


class SignalReceived(Exception):
    """SIGTERM or SIGINT."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="ray_launch.py")
    modes = parser.add_subparsers(dest="mode", required=True)
    for mode in ("head", "worker"):
        one = modes.add_parser(mode)
        one.add_argument("--listen", required=True)
        one.add_argument("--port", type=int, required=True)
        one.add_argument("--wait", type=float, default=240.0)
        one.add_argument("--folder", required=True)
        one.add_argument("--nodes" if mode == "head" else "--head", required=True)
    modes.choices["head"].add_argument("program", nargs="+")
    modes.add_parser("nodes").add_argument("cluster")
    args = parser.parse_args()
    if args.mode == "nodes":
        return watch_nodes(args.cluster)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    # Ray names its processes with setproctitle, which overwrites the environment that clear() looks at.
    os.environ |= {MARK: f"{os.getpid()}.{time.time_ns()}", "SPT_NOENV": "1"}
    _prepare(args.folder)
    try:
        return run_head(args) if args.mode == "head" else worker(args)
    except SignalReceived:
        log_line("stopping")
        return 143
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        clear_folder(args.folder)


def run_head(args: argparse.Namespace) -> int:
    wanted, cluster = args.nodes.split(","), f"{args.listen}:{args.port}"
    ray = start_ray(args, "--head", f"--port={args.port}", "--include-dashboard=false", f"--temp-dir={args.folder}")
    if not complete(ray, cluster, wanted, time.monotonic() + args.wait):
        return 1
    log_line(f"cluster is complete: {len(wanted)} nodes, {len(wanted)} GPUs")
    program = subprocess.Popen(args.program, env={**os.environ, "RAY_ADDRESS": cluster}, preexec_fn=_die_with_parent)
    try:
        return _code(program.wait())
    finally:
        end_process(program, 20.0)


def complete(ray: subprocess.Popen[bytes], cluster: str, wanted: list[str], until: float) -> bool:
    """Waits until all expected nodes are active with a GPU; prints how far it is, and what is missing."""
    last, there = "", dict[str, float]()
    for nodes in report_nodes(cluster, until):
        there = {ip: gpus for ip, gpus in nodes.items() if ip in wanted} if nodes is not None else there
        said = f"{len(there)} of {len(wanted)} nodes active, {sum(there.values()):g} of {len(wanted)} GPUs"
        if said != last:
            log_line(said)
        last = said
        if ray.poll() is not None:
            log_line(f"error: Ray ended on this node with exit code {_code(ray.returncode)} before the cluster was up")
            return False
        if len(there) == len(wanted) and all(gpus >= 1 for gpus in there.values()):
            return True
    missing = [ip for ip in wanted if there.get(ip, 0) < 1]
    log_line(f"error: the cluster did not come up: {last}; missing: {', '.join(missing)}")
    return False


def report_nodes(cluster: str, until: float) -> Iterator[dict[str, float] | None]:
    """The nodes that Ray reports, ip -> GPUs; None each second without news. Ends at `until` (time.monotonic)."""
    news: Queue[dict[str, float]] = Queue()
    words = (sys.executable, __file__, "nodes", cluster)
    with subprocess.Popen(words, stdout=subprocess.PIPE, preexec_fn=_die_with_parent) as asking:
        threading.Thread(target=_lines, args=(asking, news), daemon=True).start()
        try:
            while time.monotonic() < until:
                try:
                    yield news.get(timeout=1.0)
                except Empty:
                    yield None
        finally:
            asking.kill()


def _lines(asking: subprocess.Popen[bytes], news: Queue[dict[str, float]]) -> None:
    for line in asking.stdout or ():
        with contextlib.suppress(ValueError):
            news.put(json.loads(line))


def watch_nodes(cluster: str) -> int:
    """Watches the nodes in a process of its own: a driver of Ray takes over signals and logging of its process."""
    import logging

    import ray

    while not ray.is_initialized():
        try:
            ray.init(address=cluster, log_to_driver=False, logging_level=logging.CRITICAL)
        except Exception:
            # Whatever it is: the caller counts the seconds and says what is missing.
            time.sleep(1)
    while True:
        alive: list[dict[str, Any]] = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        sys.stdout.write(json.dumps({n["NodeManagerAddress"]: n["Resources"].get("GPU", 0.0) for n in alive}) + "\n")
        sys.stdout.flush()
        time.sleep(1)


def worker(args: argparse.Namespace) -> int:
    until, cluster = time.monotonic() + args.wait, f"{args.head}:{args.port}"
    log_line(f"waits for the head's Ray at {cluster}")
    while time.monotonic() < until:
        if answers(args.head, args.port) > 0:
            time.sleep(0.5)
            continue
        ray = start_ray(args, f"--address={cluster}")
        if joined(ray, cluster, args.listen, until):
            log_line(f"joined the cluster at {cluster}; what its workers print is in the head's log")
            return outlive(ray, args)
        # An old head that is going down lets nobody of this launch in: its token is another one.
        end_process(ray, 5.0)
    log_line(f"error: no Ray at {cluster} let this node in within {args.wait:g} s")
    return 1


def joined(ray: subprocess.Popen[bytes], cluster: str, own: str, until: float) -> bool:
    for nodes in report_nodes(cluster, until):
        if own in (nodes or ()):
            return True
        if ray.poll() is not None:
            return False
    return False


def outlive(ray: subprocess.Popen[bytes], args: argparse.Namespace) -> int:
    """Stays as long as Ray does on both ends."""
    silent = 0.0
    while ray.poll() is None:
        refused = answers(args.head, args.port)
        silent = silent + refused if refused else 0.0
        if silent > GONE_AFTER:
            log_line("error: the head's Ray is gone; this worker ends")
            return 1
        time.sleep(1)
    log_line(f"error: Ray ended on this node with exit code {_code(ray.returncode)}")
    return _code(ray.returncode) or 1


def answers(address: str, port: int) -> float:
    """0 when somebody listens there, else how many seconds of silence that counts for."""
    try:
        socket.create_connection((address, port), timeout=3).close()
    except ConnectionRefusedError:
        return 5.0
    except OSError:
        return 4.0
    return 0.0


def start_ray(args: argparse.Namespace, *words: str) -> subprocess.Popen[bytes]:
    ports = [f"--{name}={args.port + n}" for n, name in enumerate(PORTS, 1)]
    low, high = (args.port + n for n in WORKERS)
    command = (
        *(sys.executable, "-m", "ray.scripts.scripts", "start", *words, f"--node-ip-address={args.listen}"),
        *("--num-gpus=1", "--num-cpus=2", f"--object-store-memory={STORE}", "--disable-usage-stats", "--block"),
        *(*ports, f"--min-worker-port={low}", f"--max-worker-port={high}"),
    )
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)


def clear_folder(folder: str) -> None:
    """Ends what still carries our mark, then removes Ray's folder unless another node on this machine uses it.

    The shell that leads the rank's session has our words in its own.
    """
    mark = f"{MARK}={os.environ[MARK]}".encode()
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            left = [pid for pid in _pids() if pid != os.getpid() and mark in _read(pid, "environ").split(b"\0")]
            if not left:
                break
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            time.sleep(0.2)
    line = [os.getpid()]  # we, and those that we were started by
    while line[-1] > 1:
        line.append(int((_read(line[-1], "stat").rpartition(b")")[2].split() or (0, 0))[1]))
    if not any(folder.encode() in _read(pid, "cmdline") for pid in _pids() if pid not in line):
        shutil.rmtree(folder, ignore_errors=True)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _prepare(folder: str) -> None:
    """Checks Ray's version, and makes its folder ours alone; somebody else's of that name is not used."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("ray")
    except PackageNotFoundError:
        log_line(f"error: the Python of this rank ({sys.executable}) has no ray: take an image or venv that has it")
        raise SystemExit(1) from None
    if tuple(int(part) for part in found.split(".")[:2]) < TOKENS_SINCE:
        log_line(f"warning: Ray {found} knows no token: its ports are open to everyone who reaches this node")
    path = Path(folder)
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        log_line(f"error: {folder} belongs to somebody else")
        raise SystemExit(1)
    if rank := os.environ.get("SPARKWRIGHT_RANK_DIR"):  # who removes the rank removes this, too, if we are killed
        Path(rank, "temporary").write_text(f"{folder}\n")


def end_process(process: subprocess.Popen[bytes], grace: float) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def log_line(text: str) -> None:
    sys.stdout.write(f"ray: {text}\n")
    sys.stdout.flush()


def _stop(number: int, frame: FrameType | None) -> None:
    raise SignalReceived


def _die_with_parent() -> None:
    _LIBC.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _code(returncode: int) -> int:
    """The exit code as a shell reports it: 128 + signal."""
    return returncode if returncode >= 0 else 128 - returncode


if __name__ == "__main__":
    sys.exit(main())
