"""Faults of a seventh trial: used-up ports and quotas, slow disks, silent engines, and what people delete or stop."""

import contextlib
import os
import resource
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from drills.fifth_faults import USER_MANAGER
from drills.outage_drill import OutageScene
from drills.outage_faults import Script, kill_rank
from drills.spoil import note_proof
from drills.trial_faults import HOME
from testbed import ContainerNode, harm
from testbed.caddy import AT as CADDY_AT

# All ports that programs of the node may connect from, bound by one program: none is left for anybody else.
FIRST_PORT, LAST_PORT = 50000, 50255
HOLD_PORTS = f"""
import socket, time
held = []
for port in range({FIRST_PORT}, {LAST_PORT} + 1):
    one = socket.socket()
    try:
        one.bind(("", port))
    except OSError:
        continue
    held.append(one)
time.sleep(600)
"""
NO_PORT = (
    'python3 -c \'import socket, errno; s = socket.socket(); e = s.connect_ex(("127.0.0.1", 22)); '
    'print("a new connection of the head:", errno.errorcode.get(e, e)); raise SystemExit(e != errno.EADDRNOTAVAIL)\''
)
CLIENTS = 10_000
EMPTY = """
import http.server
class Empty(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if self.command == "POST" else "text/plain")
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_POST = do_GET
http.server.ThreadingHTTPServer(("127.0.0.1", 8999), Empty).serve_forever()
"""
TO_EMPTY = "iptables -t nat {} OUTPUT -o lo -p tcp --dport 8000 -j REDIRECT --to-ports 8999"
QUOTA_US, PERIOD_US = 3000, 100_000
FSYNC_S = 2.0
TOLD_OF_MEMORY = "grep -h -i -m 3 -e 'cannot allocate' -e MemoryError -e 'supervisor was restarted'"


def exhaust_ports(seconds: float) -> Script:
    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        enter = ["nsenter", "-t", str(head.outer_pid()), "-n", "sh", "-c"]
        path = "/proc/sys/net/ipv4/ip_local_port_range"
        before = subprocess.run([*enter, f"cat {path}"], capture_output=True, text=True, check=True).stdout.strip()
        try:
            harm.run_unit(head, "ports", "python3", "-c", HOLD_PORTS)
            time.sleep(5.0)  # they are all its own before others must use them
            subprocess.run([*enter, f"echo {FIRST_PORT} {LAST_PORT} >{path}"], check=True)
            scene.at = time.time()
            note_proof(scene, head, NO_PORT)
            time.sleep(seconds)
            note_proof(scene, head, NO_PORT)
        finally:
            subprocess.run([*enter, f"echo {before} >{path}"], check=True)
            head.sh("systemctl stop testbed-ports", check=False)
            scene.restored = time.time()

    return script


def gateway_pids(node: ContainerNode) -> list[int]:
    """Caddy and the key check, as this machine knows them."""
    units = [unit for unit in harm.user_units(node) if "caddy" in unit or "door" in unit]
    return [node.outer_pid(int(pid)) for unit in units if (pid := harm.main_pid(node, unit)) not in ("", "0")]


def starve_gateway(seconds: float) -> Script:
    """Caddy and the key check together get 3 % of a core, by a control group of this machine."""

    def script(scene: OutageScene) -> None:
        pids = gateway_pids(scene.ground.head)
        with limited(pids) as group:
            scene.at = time.time()
            time.sleep(seconds)
            told = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
            stopped, periods = int(told["nr_throttled"]), int(told["nr_periods"])
            scene.check(stopped > periods / 10, f"the fault did not take hold: {told}")
            scene.notes.append(f"took hold: throttled in {stopped} of {periods} periods of 0.1 s")
        scene.restored = time.time()

    return script


@contextlib.contextmanager
def limited(pids: Sequence[int]) -> Iterator[Path]:
    """A control group (version 1) with a quota, with these processes in it; it is gone afterwards."""
    rows = [line.split(":", 2) for line in Path(f"/proc/{pids[0]}/cgroup").read_text().splitlines()]
    above = Path("/sys/fs/cgroup/cpu") / next(path for _, names, path in rows if "cpu" in names.split(",")).lstrip("/")
    group = above / "drill-quota"
    group.mkdir()
    (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield group
    finally:
        for _ in range(50):  # a process may fork just then
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (above / "cgroup.procs").write_text(pid)
            with contextlib.suppress(OSError):
                group.rmdir()
            if not group.exists():
                break
            time.sleep(0.1)


def delete_caddy(seconds: float) -> Script:
    """Its program is deleted while it runs, and it is killed; later the program is there again."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        unit = next(one for one in harm.user_units(head) if "caddy" in one)
        head.sh(f"mv {CADDY_AT} {CADDY_AT}.kept")
        try:
            scene.at = time.time()
            harm.kill_unit(head, unit)
            time.sleep(seconds)
            shown = f"{USER_MANAGER} show {unit} -p SubState -p ExecMainStatus -p NRestarts"
            note_proof(scene, head, f"su spark -c '{shown}'; ! pidof caddy")
        finally:
            head.sh(f"mv {CADDY_AT}.kept {CADDY_AT}")
            scene.restored = time.time()

    return script


def open_connections(seconds: float) -> Script:
    """One client opens 10,000 connections, says nothing, and opens another for each that is closed."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, CLIENTS + 2000)), hard))
        host, port = scene.ground.gateway.url.split("/")[2].split(":")
        watch = selectors.DefaultSelector()
        most, end = 0, time.monotonic() + seconds

        def one_more() -> None:
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex((host, int(port)))
            watch.register(one, selectors.EVENT_READ)

        try:
            while time.monotonic() < end:
                for _ in range(min(200, CLIENTS - len(watch.get_map()))):
                    one_more()
                for key, _ in watch.select(0.05):
                    watch.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
                if len(watch.get_map()) >= CLIENTS and not most:
                    most = int(head.look(f"ss -Htn state established sport = :{port} | wc -l"))
        finally:
            for key in list(watch.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]
            watch.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            scene.restored = time.time()
        scene.check(most > CLIENTS / 2, f"the fault did not take hold: {most} connections at once")
        scene.notes.append(f"took hold: {most} connections at once, as the head counts them")

    return script


def silence_engine(seconds: float) -> Script:
    """A program in the engine's place on the head answers 200 to everything, with no byte."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        harm.run_unit(head, "empty", "python3", "-c", EMPTY)
        time.sleep(1.0)
        head.sh(TO_EMPTY.format("-I"))
        try:
            scene.at = time.time()
            time.sleep(2.0)
            note_proof(
                scene, head, "curl -s -m 3 -w '%{http_code}, %{size_download} bytes' http://127.0.0.1:8000/v1/models"
            )
            time.sleep(seconds - 2.0)
        finally:
            head.sh(TO_EMPTY.format("-D"))
            head.sh("systemctl stop testbed-empty", check=False)
            scene.restored = time.time()

    return script


def no_memory(seconds: float) -> Script:
    """The supervisor may have no more memory than it has now (RLIMIT_AS); then rank 1 dies."""

    def script(scene: OutageScene) -> None:
        head, pid = scene.ground.head, scene.ground.supervisor()
        size = head.sh(f"awk '/^VmSize/ {{printf \"%.0f\", $2 * 1024}}' /proc/{pid}/status")
        head.sh(f"prlimit --pid {pid} --as={size}:", user="spark")
        try:
            scene.at = time.time()
            kill_rank(scene)
            time.sleep(seconds)
            note_proof(
                scene,
                head,
                f"{TOLD_OF_MEMORY} {scene.ground.home}/log",
            )
        finally:
            head.sh(f"prlimit --pid {pid} --as=unlimited:", check=False, user="spark")
            scene.restored = time.time()

    return script


def slow_disk(seconds: float) -> Script:
    """Each fsync of supervisor and key check takes 2 s longer, by strace; meanwhile rank 1 dies."""

    def script(scene: OutageScene) -> None:
        ground = scene.ground
        pids = [ground.head.outer_pid(ground.supervisor()), *gateway_pids(ground.head)]
        report = ground.folder / "strace"
        inject = f"inject=fsync,fdatasync:delay_exit={int(FSYNC_S * 1e6)}"
        words = ["strace", "-f", "-qq", "-o", str(report), "-e", "trace=fsync,fdatasync", "-e", inject]
        tracer = subprocess.Popen(
            [*words, *(word for pid in pids for word in ("-p", str(pid)))], stderr=subprocess.DEVNULL
        )
        try:
            time.sleep(2.0)
            scene.at = time.time()
            kill_rank(scene)
            time.sleep(seconds)
        finally:
            os.kill(tracer.pid, signal.SIGINT)
            tracer.wait()
            scene.restored = time.time()
        slow = report.read_text(errors="replace").count("(DELAYED)")
        scene.check(slow, "the fault did not take hold: no call was delayed")
        scene.notes.append(f"took hold: {slow} calls, each {FSYNC_S:.0f} s late")

    return script


def stop_gateway(node: ContainerNode) -> None:
    """`systemctl --user stop`, which is no failure: systemd starts nothing again."""
    node.sh(f"{USER_MANAGER} stop 'sparkwright-caddy-*' 'sparkwright-door-*'", user="spark")


def delete_units(node: ContainerNode) -> None:
    """A tool for dotfiles takes our units away."""
    folder = "/home/spark/.config/systemd/user"
    node.sh(f"find {folder} -name 'sparkwright-*' -delete; {USER_MANAGER} daemon-reload", user="spark")


UNITS = f"su spark -c '{USER_MANAGER} list-units --all --plain --no-legend \"sparkwright-*\"' | cut -c1-70"
STILL_STOPPED = f"{UNITS}; ! pidof caddy"
NO_FILES = "! ls /home/spark/.config/systemd/user/sparkwright-* 2>&1"
HIDE_KEYS = f"find {HOME}/door/ca -type f -exec chmod 000 {{}} +"
HIDDEN = f"find {HOME}/door/ca -type f -printf '%m %f ' | grep '^0 '"
MOUNTS = "for d in /run /run/lock /run/user/1000; do mountpoint -q $d || continue; "
FULL_RUN = MOUNTS + (
    "n=$(df -B1 --output=avail $d | tail -n 1 | tr -d ' '); [ $n -lt 3000000000 ] || continue; "
    "fallocate -l $n $d/theirs || head -c $n /dev/zero >$d/theirs; done; :"
)
ROOM_IN_RUN = MOUNTS + "rm -f $d/theirs $d/probe; done"
RUN_IS_FULL = "df -k --output=target,avail /run /run/user/1000 | tail -n 2; ! head -c 8192 /dev/zero >/run/probe"
ONE_WAY = "for d in {devices}; do iptables {word} OUTPUT -o $d -j DROP; done"
DROPPED = "iptables -L OUTPUT -v -n -x | awk '/DROP/ {n += $1} END {print n, \"packets dropped\"; exit !n}'"
BUSES = "echo system: $(pidof -s dbus-daemon), user: $(pgrep -u spark -f dbus-daemon | tr '\\n' ' ')"
RESTART_USERS_BUS = f"su spark -c '{USER_MANAGER} restart dbus'"
RESTART_BUS = f"{{ {BUSES}; systemctl restart dbus; {RESTART_USERS_BUS}; sleep 1; {BUSES}; }} >/tmp/buses 2>&1"
BUS_WAS_RESTARTED = "cat /tmp/buses; [ $(sort -u /tmp/buses | wc -l) -gt 1 ]"
HUNG_TOOL = "p=$(command -v nvidia-smi); mv $p $p.kept; printf '#!/bin/sh\\nexec sleep 1000\\n' >$p; chmod 755 $p"
TOOL_AGAIN = "p=$(command -v nvidia-smi); mv -f $p.kept $p; pkill -f '^sleep 1000' || :"
TOOL_HANGS = "timeout 3 nvidia-smi -L; [ $? = 124 ] && echo nvidia-smi gives nothing in 3 s"
