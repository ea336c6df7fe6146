"""Faults as somebody who breaks things meets them: each is done for real and taken back, while clients go on asking."""

import asyncio
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpcore

from cluster.drive import NAME
from cluster.drive import SLOW as SLOW_BOOT
from drills.fate import Fate
from drills.outage import PATIENCE
from drills.outage_drill import OutageScene
from drills.traffic import TrafficClient, TrafficLoad
from testbed import harm

Script = Callable[[OutageScene], None]
NEXT = "next"
"""The name of another deployment."""
APART = {"port": 8100, "master_port": 25100, "door": {"port": 8543}, "memory_fraction": 0.3}
FIRST, SECOND = "--master-port 25000", "--master-port 25100"
"""In the command lines of the ranks of the two."""
MIB = 1 << 20


def kill_rank(scene: OutageScene, number: int = 1) -> None:
    scene.ground.signal(scene.ground.nodes[number], "KILL", FIRST)


def second_deployment(scene: OutageScene) -> None:
    """It serves on the same nodes, in containers."""
    recipe = scene.ground.recipe("docker", None, name=NEXT, serving=APART)
    scene.ground.good("up", recipe, "--force", "two deployments side by side")
    scene.until_well(3.0)
    scene.at = time.time()


def kill_next_to_another(scene: OutageScene) -> None:
    """The other one must not be touched."""
    second_deployment(scene)
    ground = scene.ground
    before = ground.ranks(ground.head, SECOND)
    kill_rank(scene)
    scene.until_well()
    scene.check(before and ground.ranks(ground.head, SECOND) == before, "the other deployment was restarted, too")


def kill_of_both(scene: OutageScene) -> None:
    second_deployment(scene)
    scene.ground.signal(scene.ground.worker, "KILL")


def freeze_head(scene: OutageScene) -> None:
    scene.ground.signal(scene.ground.head, "STOP", FIRST)


def kill_unit(which: Callable[[str], bool]) -> Script:
    """Kills a unit of those that `up` has left on the head."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        harm.kill_unit(head, next(filter(which, harm.user_units(head))))

    return script


def noise_before_kill(scene: OutageScene) -> None:
    """Clients' mistakes are answered, and are not the cause of later failures."""
    chat, good = "/chat/completions", {"model": "twin-tiny", "messages": [{"role": "user", "content": "x"}]}
    asked = (
        (401, chat, json.dumps(good), "sk-wrong"),
        (404, "/wrong", json.dumps(good), ""),
        (404, chat, json.dumps(good | {"model": "wrong"}), ""),
        (400, chat, "{broken", ""),
    )
    for expected, path, body, key in asked:
        status, text = post_body(scene, path, body.encode(), key)
        scene.check(
            status == expected and text.startswith("{"), f"{path} {body[:20]}: {status}, not {expected}: {text[:80]}"
        )
    scene.notes.append("before it " + ", ".join(str(one[0]) for one in asked))
    scene.until_well(3.0)
    scene.at = time.time()
    kill_rank(scene)


def post_body(scene: OutageScene, path: str, body: "bytes | Iterator[bytes]", key: str = "") -> tuple[int, str]:
    gateway = scene.ground.gateway
    headers = {"Authorization": f"Bearer {key or gateway.key}", "Content-Type": "application/json"}
    extensions = {"sni_hostname": gateway.name, "timeout": {"connect": 5, "read": PATIENCE, "write": PATIENCE}}
    with httpcore.ConnectionPool(gateway.context) as pool:
        done = pool.request("POST", gateway.url + path, headers=headers, content=body, extensions=extensions)
        return done.status, done.content.decode(errors="replace")


def large_body(scene: OutageScene) -> None:
    for how, body in (("with a length", b"x" * 80 * MIB), ("in chunks", (b"x" * MIB for _ in range(80)))):
        began = time.monotonic()
        status, _ = post_body(scene, "/chat/completions", body)
        scene.check(status == 413, f"80 MB {how}: {status}, not 413")
        scene.notes.append(f"{status} {how} after {time.monotonic() - began:.1f} s")


def send_crowd(scene: OutageScene) -> None:
    """200 clients, each with one request, all at once."""

    async def all_at_once() -> list[float]:
        client = TrafficClient(replace(scene.ground.gateway, patience=60.0), seed=2)
        for _ in range(200):
            client.launch(client.ask(client.body(TrafficLoad(prompt=(20, 60), tokens=(16, 32)))), client.requests)
        await client.settle()
        await client.close()
        scene.client.requests += client.requests
        return [one.ended - one.sent for one in client.requests if one.fate is Fate.ANSWERED]

    took = asyncio.run(all_at_once())
    scene.check(len(took) == 200, f"{200 - len(took)} of 200 clients were not answered")
    scene.notes.append(f"{len(took)} of 200 answered, the last after {max(took, default=0):.0f} s")


def slow_headers(scene: OutageScene) -> None:
    """100 connections that send a byte of their headers each second."""

    async def one() -> float:
        gateway, began = scene.ground.gateway, time.monotonic()
        host, port = gateway.url.split("/")[2].split(":")
        reader, writer = await asyncio.open_connection(
            host, int(port), ssl=gateway.context, server_hostname=gateway.name
        )
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        try:
            while not writer.is_closing() and time.monotonic() - began < 60:
                writer.write(b"x")
                await writer.drain()
                if await _ended(reader):
                    break
        except (OSError, ssl.SSLError):
            pass
        writer.close()
        return time.monotonic() - began

    async def all_of_them() -> list[float]:
        return list(await asyncio.gather(*(one() for _ in range(100))))

    longest = max(asyncio.run(all_of_them()))
    scene.check(longest < 30, f"a connection that never ends its headers is open for {longest:.0f} s")
    scene.notes.append(f"100 slow connections closed after {longest:.0f} s at most")


async def _ended(reader: asyncio.StreamReader) -> bool:
    """True if the other side ends it within a second."""
    try:
        return not await asyncio.wait_for(reader.read(100), 1.0)
    except TimeoutError:
        return False


def reboot(number: int) -> Script:
    def script(scene: OutageScene) -> None:
        scene.ground.nodes[number].reboot()
        scene.restored = time.time()

    return script


def in_turn(*scripts: Script, service: float) -> Script:
    """One after the other, with so many seconds of service after each but the last."""

    def script(scene: OutageScene) -> None:
        for number, one in enumerate(scripts):
            one(scene)
            if not scene.until_well(service if number + 1 < len(scripts) else 3.0, 60.0 + service):
                scene.notes.append(f"no service after fault {number + 1} of {len(scripts)}")
                return

    return script


def up_next_to_up(scene: OutageScene) -> None:
    """Another operator's `up` while the first one's copies the image to the worker."""
    ground, second = scene.ground, scene.second()
    ground.worker.sh(f"docker image rm --force {ground.testbed.engine_image}")
    first = ground.drive.start("up", ground.recipe("docker", None)).saw("stage")
    done = second.run("up", str(ground.folder / f"{NAME}.yaml"), "--name", NEXT)
    scene.check(done.code == 4, f"exit {done.code}, not 4")
    scene.check("holds the lease for `up" in done.err, f"not who holds the lease: {_short(done.err)}")
    scene.check(first.finish(120).code == 0, "the first `up` does not serve")
    scene.notes.append(f"the second operator: exit {done.code}, {_short(done.err)}")
    second.close()


def down_next_to_up(scene: OutageScene) -> None:
    """Another operator's `down` of the deployment that the first one is starting."""
    ground, second = scene.ground, scene.second()
    first = ground.drive.start("up", ground.recipe("process", SLOW_BOOT))
    _until_ranks(scene)
    done = second.run("down", NAME)
    read = first.finish(90)
    scene.check(done.code == 0, f"`down`: exit {done.code}: {_short(done.err)}")
    scene.check("somebody removed" not in read.err, "wrong words: somebody removed")
    scene.check(re.search(r"(down|stopped|ended) by .*root@", read.err), "not who took it down")
    scene.check("sparkwright down" not in read.err, "its hint is a `down` of what is down")
    left = [words for node in ground.nodes for words in node.leftovers()]
    scene.check(not left, f"left: {'; '.join(left)[:200]}")
    scene.notes.append(f"the first operator: exit {read.code}, {_short(read.err)}")
    second.close()


def _until_ranks(scene: OutageScene, limit: float = 60.0) -> None:
    end = time.monotonic() + limit
    while not all(scene.ground.ranks(node) for node in scene.ground.nodes):
        if time.monotonic() > end:
            raise TimeoutError("the first `up` starts no ranks")
        time.sleep(0.2)


def change_that_fails(scene: OutageScene) -> None:
    """The recipe of what serves, changed, and the change cannot be loaded."""
    recipe = scene.ground.recipe("process", {"SPARKWRIGHT_SIMULATOR_FAULT": "oom@load"})
    done = scene.ground.drive.run("up", recipe, timeout=180)
    scene.restored = time.time()
    scene.check(done.code != 0, "`up` of what fails to load exits 0")
    scene.notes.append(f"`up`: exit {done.code}, {_short(done.err)}")


def replace_by_another(scene: OutageScene) -> None:
    """`up next --replace drill`: another deployment on the same ports."""
    recipe = scene.ground.recipe("process", None, name=NEXT)
    done = scene.ground.drive.run("up", recipe, "--replace", NAME, timeout=180)
    scene.restored = time.time()
    scene.check(done.code == 0, f"`up --replace`: exit {done.code}: {_short(done.err)}")
    scene.operator.name = NEXT if done.code == 0 else NAME
    scene.notes.append(f"`up --replace`: exit {done.code}")


def _short(text: str) -> str:
    """The error, or the last line without one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["nothing printed"]
    return next((line for line in lines if line.startswith("error:")), lines[-1])[:240]
