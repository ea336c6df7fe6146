"""Faults that an operator met in a trial of two nodes: hung programs, lost files, read-only disks, two people."""

import re
import threading
import time
from collections.abc import Callable

from cluster.drive import NAME, CallResult
from drills.ground import USER
from drills.outage_drill import OutageScene
from drills.outage_faults import Script
from testbed import ContainerNode, harm
from testbed.node import STATE
from testbed.settings import FABRIC_DEVICE

HOME = f"/home/{USER}/{STATE}"
SUPERVISOR = f"sparkwright-supervisor-{NAME}.service"


def wait_until(check: Callable[[], object], seconds: float) -> bool:
    """True if the check became true in time."""
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def stop_supervisor(*then: Script) -> Script:
    """SIGSTOP to its process, then the other faults; nobody continues it but systemd's watchdog."""

    def script(scene: OutageScene) -> None:
        head, before = scene.ground.head, scene.ground.supervisor()
        head.sh(f"kill -STOP {before}")
        for one in then:
            one(scene)
        back = wait_until(lambda: scene.ground.supervisor() not in (0, before), 60.0)
        scene.restored = time.time()
        took = scene.restored - scene.at
        scene.check(back, "systemd has not restarted the supervisor within 60 s")
        log = f"cat {scene.ground.home}/log"  # of a busy machine: it is recorded some seconds later
        wait_until(lambda: "was restarted" in scene.ground.head.sh(log, check=False), 30.0)
        scene.notes.append(f"systemd restarted the supervisor after {took:.0f} s")

    return script


def lose_ca(scene: OutageScene) -> None:
    """The CA's folder is deleted and Caddy is killed; `up` then gives out the new one."""
    ground = scene.ground
    ground.head.sh(f"rm -rf {HOME}/door/ca")
    scene.at = time.time()
    harm.kill_unit(ground.head, next(unit for unit in harm.user_units(ground.head) if "caddy" in unit))
    seen = wait_until(lambda: any("not the one that clients have" in one.text for one in scene.operator.samples), 60.0)
    scene.check(seen, "status never says that clients have another CA")
    done = ground.drive.run("up", ground.recipe("process", None), timeout=180)
    said = done.out + done.err
    scene.check(done.code == 0 and "SUP010" in said and "give every client" in said, f"`up`: {_short(done)}")
    # Clients get the new file
    ground.gateway.context.load_verify_locations(str(ground.folder / "home" / STATE / "keys" / "testbed" / "ca.crt"))
    scene.restored = time.time()
    scene.notes.append("`up` says that clients need the new ca.crt; they get it")


def overwrite_store(scene: OutageScene) -> None:
    """Random bytes in place of the history."""
    names = " ".join(f"{HOME}/store.sqlite{end}" for end in ("", "-wal", "-shm"))
    scene.ground.head.sh(f"for f in {names}; do [ ! -e $f ] || head -c 100000 /dev/urandom >$f; done", user=USER)
    log = f"cat {scene.ground.home}/log"
    wait_until(lambda: "was damaged" in scene.ground.head.sh(log, check=False), 90.0)  # its next write finds it
    time.sleep(12.0)


def reboot_both(scene: OutageScene) -> None:
    threads = [threading.Thread(target=node.reboot) for node in scene.ground.nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scene.restored = time.time()


def reboot_twice(seconds: float) -> Script:
    def script(scene: OutageScene) -> None:
        scene.ground.worker.reboot()
        time.sleep(seconds)
        scene.ground.worker.reboot()
        scene.restored = time.time()

    return script


def small_tmp(node: ContainerNode) -> None:
    node.fill_disk("/tmp", 1 << 40, "16m")
    node.sh("chmod 1777 /tmp")


def duplicate_address(seconds: float) -> Script:
    """The head takes the worker's address on the fabric."""

    def script(scene: OutageScene) -> None:
        ground = scene.ground
        words = f"{ground.worker.spec.fabric}/24 dev {FABRIC_DEVICE}"
        ground.head.sh(f"ip address add {words}")
        done = ground.drive.run("check", timeout=90)
        scene.check(
            f"{ground.worker.spec.fabric} is an address of" in done.out, f"`check` does not name it: {_short(done)}"
        )
        time.sleep(seconds)
        ground.head.sh(f"ip address del {words}")
        scene.restored = time.time()

    return script


def change_expose(scene: OutageScene) -> None:
    """`up` of what serves, with another `serving.expose`: it takes effect or is refused, never half of each."""
    ground = scene.ground
    done = ground.drive.run("up", ground.recipe("process", None, serving={"expose": "loopback"}), timeout=180)
    closed = not _opens(scene)
    scene.check((done.code == 0) == closed, f"exit {done.code}, and the port is {'closed' if closed else 'open'}")
    again = ground.drive.run("up", ground.recipe("process", None), timeout=180)
    scene.check(again.code == 0, f"`up` with the old setting: {_short(again)}")
    scene.restored = time.time()
    scene.notes.append(f"`up` with loopback: exit {done.code}")


def _opens(scene: OutageScene) -> bool:
    text = scene.ground.head.sh("ss -ltnH 'sport = :8443'", check=False)
    return bool(re.search(r"(?:\*|0\.0\.0\.0|\[::\]):8443", text))


def two_people(scene: OutageScene) -> None:
    """A second operator calls `up` of what serves, then `restart`: each ends with a true sentence."""
    ground, second = scene.ground, scene.second()
    done = second.run("up", ground.recipe("process", None), timeout=180)
    scene.check(done.code == 0 and "already serving" in done.out + done.err, f"the second `up`: {_short(done)}")
    key = ground.folder / "second" / "home" / STATE / "keys" / "testbed" / "default.key"
    scene.check(key.exists() or "keys add" in done.out + done.err, "not where the second operator gets a key")
    scene.at = time.time()
    again = second.run("restart", NAME, timeout=180)
    scene.check(again.code == 0, f"the second operator's `restart`: {_short(again)}")
    scene.restored = time.time()
    scene.notes.append(f"the second operator: `up` exit {done.code}, `restart` exit {again.code}")
    second.close()


def _short(done: CallResult) -> str:
    lines = [line.strip() for line in (done.err + done.out).splitlines() if line.strip()] or ["nothing printed"]
    return f"exit {done.code}, {next((line for line in lines if line.startswith('error:')), lines[-1])[:200]}"
