"""Faults of a second trial: what administrators, firewalls, laptops and clients do, and no earlier list has."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import time
from dataclasses import replace

from cluster.drive import NAME
from cluster.drive import SLOW as SLOW_BOOT
from drills.outage_drill import OutageScene
from drills.outage_faults import Script, kill_rank
from drills.trial_faults import HOME, wait_until
from testbed import harm
from testbed.node import STATE


def kill_all_of_user(scene: OutageScene) -> None:
    """`kill -9 -1` of the user on the worker: rank, guard, log taker and ssh sessions at once."""
    scene.ground.worker.sh("pkill -9 -u spark", check=False)


def no_processes(seconds: float) -> Script:
    """The supervisor may start no process more, as at the limit of its user; 3 s later rank 1 dies."""

    def script(scene: OutageScene) -> None:
        head, pid = scene.ground.head, scene.ground.supervisor()
        before = head.sh(f"prlimit --pid {pid} --nproc --noheadings --output SOFT", user="spark").strip()
        head.sh(f"prlimit --pid {pid} --nproc=1:", user="spark")  # root of a container may not
        time.sleep(3.0)
        scene.at = time.time()
        kill_rank(scene)
        time.sleep(seconds)
        head.sh(f"prlimit --pid {pid} --nproc={before}:", check=False, user="spark")
        scene.restored = time.time()

    return script


def empty_keys(scene: OutageScene) -> None:
    """The gateway's list of keys is an empty file; `up` then makes a new key, which clients are given."""
    ground = scene.ground
    ground.head.sh(f": >{HOME}/door/keys.json", user="spark")
    time.sleep(15.0)
    done = ground.drive.run("up", ground.recipe("process", None), timeout=180)
    scene.restored = time.time()
    scene.check(done.code == 0 and "DOOR007" in done.out + done.err, f"`up` exits {done.code}: {done.err[-200:]}")
    key = (ground.folder / "home" / STATE / "keys" / "testbed" / "default.key").read_text().strip()
    ground.gateway, scene.client.gateway = replace(ground.gateway, key=key), replace(scene.client.gateway, key=key)
    scene.restored = time.time()
    scene.notes.append(f"15 s later `up`: exit {done.code}; clients are given its new key")


def break_caddy(scene: OutageScene) -> None:
    """Garbage in Caddy's configuration, and Caddy is killed: it cannot start again until `up`."""
    ground = scene.ground
    ground.head.sh(f"for f in {HOME}/supervision/*/caddy.json {HOME}/door/*/caddy.json {HOME}/*/*/*/caddy.json; "
                   "do [ ! -e $f ] || echo '{\"apps\":' >$f; done", user="spark")  # fmt: skip
    harm.kill_unit(ground.head, next(unit for unit in harm.user_units(ground.head) if "caddy" in unit))


def sleeping_laptop(scene: OutageScene) -> None:
    """The laptop falls asleep in the middle of a swap, and wakes when the old deployment has long been back."""
    ground = scene.ground
    before = ground.ranks(ground.worker)
    call = ground.drive.start("up", ground.recipe("process", SLOW_BOOT))
    swapped = wait_until(lambda: before and not set(before) & set(ground.ranks(ground.worker)), 90.0)
    scene.check(swapped, "the swap never began")
    os.killpg(call.process.pid, signal.SIGSTOP)
    scene.notes.append("the laptop sleeps")
    back = wait_until(lambda: scene.well(4.0, scene.at + 5.0), 150.0)
    scene.check(back, "clients are not served while the laptop sleeps")
    scene.restored = time.time()
    os.killpg(call.process.pid, signal.SIGCONT)
    done = call.finish(240)
    scene.check("Traceback" not in done.err and done.code in (0, 4, 5), f"`up` exits {done.code}: {done.err[-200:]}")
    said = [line for line in done.err.splitlines() if line.startswith("error:")] or ["no error"]
    scene.notes.append(f"awake again, its `up` exits {done.code}: {said[0][:160]}")


def hang_up(count: int, waves: int) -> Script:
    """Clients that reset their connection in the middle of a stream, wave after wave."""

    async def one(scene: OutageScene) -> None:
        gateway = scene.ground.gateway
        host, port = gateway.url.split("/")[2].split(":")
        body = json.dumps(
            {"model": gateway.model, "stream": True, "max_tokens": 400, "messages": [{"role": "user", "content": "x"}]}
        ).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {gateway.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            reader, writer = await asyncio.open_connection(
                host, int(port), ssl=gateway.context, server_hostname=gateway.name
            )
            writer.write(head.encode() + body)
            await asyncio.wait_for(reader.read(200), 10.0)
            writer.transport.abort()

    async def wave(scene: OutageScene) -> None:
        await asyncio.gather(*(one(scene) for _ in range(count)))

    def script(scene: OutageScene) -> None:
        for _ in range(waves):
            asyncio.run(wave(scene))
        few = wait_until(lambda: _under_way(scene) <= 4, 20.0)
        scene.check(few, f"{_under_way(scene):.0f} requests still run 20 s after their clients left")
        scene.notes.append(f"{count * waves} clients left; {_under_way(scene):.0f} requests run afterwards")

    return script


def _under_way(scene: OutageScene) -> float:
    """Requests that the engine runs, by the supervisor; the prober's are among them."""
    live = json.loads(scene.ground.head.sh(f"cat {scene.ground.home}/live.json"))
    engine = live.get("engine") or {}
    return float(engine.get("running") or 0) + float(engine.get("waiting") or 0)


def rename_head(scene: OutageScene) -> None:
    """The head has another hostname; then its supervisor and Caddy are killed, and start again under that name."""
    head = scene.ground.head
    before = head.sh("hostname").strip()
    head.sh("hostname renamed-by-dhcp")
    for unit in harm.user_units(head):
        if "caddy" in unit or f"supervisor-{NAME}" in unit:
            harm.kill_unit(head, unit)
    time.sleep(15.0)
    head.sh(f"hostname {before}")
    scene.restored = time.time()
