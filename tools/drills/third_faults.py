"""Faults of a third trial: shells, packages, networks and strangers that no earlier list has."""

import asyncio
import contextlib
import ssl
import time

from drills.outage_drill import OutageScene
from drills.outage_faults import Script, kill_rank
from drills.trial_faults import HOME
from testbed import harm

SHELL = "/home/spark/.bashrc"
GUESSES, GUESSERS = 2000, 20


def talkative_shell(scene: OutageScene) -> None:
    """The worker's shell prints a greeting, also to programs; then rank 1 dies."""
    worker = scene.ground.worker
    worker.sh(f"touch {SHELL} && cp -p {SHELL} {SHELL}.kept && sed -i '1i echo WELCOME to spark-2, 3 updates' {SHELL}")
    worker.sh("pkill -f '[s]shd.*: spark' || :")
    time.sleep(3.0)
    scene.at = time.time()
    kill_rank(scene)
    scene.until_well(limit=60.0)
    worker.sh(f"mv {SHELL}.kept {SHELL}")


def no_python(seconds: float) -> Script:
    """An upgrade takes the head's python3 away, and the supervisor is killed meanwhile."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        path = head.sh("readlink -f $(command -v python3)").strip()
        head.sh(f"mv {path} {path}.upgrading; kill -9 {scene.ground.supervisor()}")
        time.sleep(seconds)
        head.sh(f"mv {path}.upgrading {path}")
        scene.restored = time.time()

    return script


def no_names(seconds: float) -> Script:
    """The head loses its default route and its resolver, as behind a home router that restarts."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        route = head.sh("ip route show default | head -n 1").strip()
        head.sh(f"ip route del {route} || :; cat /etc/resolv.conf >/root/resolv; : >/etc/resolv.conf")
        time.sleep(seconds)
        head.sh(f"ip route add {route} || :; cat /root/resolv >/etc/resolv.conf")
        scene.restored = time.time()

    return script


def prune_images(scene: OutageScene) -> None:
    """`docker system prune` on both nodes while containers serve, then rank 1 dies."""
    for node in scene.ground.nodes:
        node.sh("docker system prune --all --force", timeout=120)
    scene.at = time.time()
    kill_rank(scene)


def reexecute(scene: OutageScene) -> None:
    """An upgrade of systemd: the system's and the user's manager begin anew, and logind is restarted."""
    head = scene.ground.head
    head.sh("systemctl daemon-reexec; systemctl restart systemd-logind")
    head.sh("XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user daemon-reexec", user="spark")
    scene.restored = time.time()


def guess_keys(scene: OutageScene) -> None:
    """A stranger tries one key after the other, twenty connections at a time."""
    answers = asyncio.run(_guesses(scene))
    scene.restored = time.time()
    wrong = {code: count for code, count in answers.items() if code not in (401, 429)}
    scene.check(not wrong, f"keys that nobody has get {wrong}")
    scene.notes.append(f"{sum(answers.values())} guesses, answered {answers}")


async def _guesses(scene: OutageScene) -> dict[int, int]:
    gateway = scene.ground.gateway
    host, port = gateway.url.split("/")[2].split(":")
    answers: dict[int, int] = {}

    async def stranger(first: int) -> None:
        for number in range(first, GUESSES, GUESSERS):
            code = 0
            with contextlib.suppress(OSError, ssl.SSLError, TimeoutError, IndexError):
                reader, writer = await asyncio.open_connection(
                    host, int(port), ssl=gateway.context, server_hostname=gateway.name
                )
                head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-{number:06}\r\n"
                writer.write(f"{head}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode())
                line = await asyncio.wait_for(reader.readline(), 25.0)
                code = int(line.split()[1])
                writer.transport.abort()
            answers[code] = answers.get(code, 0) + 1

    await asyncio.gather(*(stranger(first) for first in range(GUESSERS)))
    return answers


def garbage_recipe(scene: OutageScene) -> None:
    """The user's recipe file is garbage, and `restart` is given: what serves has its own copy."""
    ground = scene.ground
    for path in ground.drive.folder.glob("*.yaml"):
        if path.name != "cluster.yaml":
            path.write_text("name: [unclosed\n")
    done = ground.drive.run("restart", "drill", timeout=180)
    scene.restored = time.time()
    scene.check(done.code == 0, f"`restart` exits {done.code}: {done.err[-200:]}")
    scene.notes.append(f"`restart`: exit {done.code}")


def lose_runtime_folder(scene: OutageScene) -> None:
    """A cleaner empties the user's /run folder of our sockets on the head; then a person gives `restart`."""
    ground = scene.ground
    removed = ground.head.sh(f"find {HOME} /run/user/ -name '*.sock' -path '*sparkwright*' -print -delete", check=False)
    scene.notes.append(f"{len(removed.split())} sockets removed")
    time.sleep(10.0)
    done = ground.drive.run("restart", "drill", timeout=240)
    scene.restored = time.time()
    scene.notes.append(f"10 s later `restart`: exit {done.code} {done.err.strip().splitlines()[-1:]}")
    if done.code:
        done = ground.drive.run("up", ground.recipe("process", None), timeout=240)
        scene.restored = time.time()
        scene.check(done.code == 0, f"`up` exits {done.code}: {done.err[-200:]}")
        scene.notes.append(f"`up`: exit {done.code}")


def kill_caddy_and_key_check(scene: OutageScene) -> None:
    """Both programs of the gateway at once, by the kernel's memory killer: SIGKILL to all but the supervisor."""
    for unit in harm.user_units(scene.ground.head):
        if "supervisor" not in unit:
            harm.kill_unit(scene.ground.head, unit)
