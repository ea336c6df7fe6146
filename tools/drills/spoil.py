"""The form of most faults: something spoils a node, other faults follow, and something takes it back."""

import time
from collections.abc import Callable

from cluster.drive import NAME
from drills.outage_drill import OutageScene
from drills.outage_faults import Script
from testbed import ContainerNode

HEAD, WORKER = 0, 1
SESSIONS = "pkill -f '[s]shd.*: spark' || :"
"""A shell line: ssh sessions of the user end, so that everybody has to log in anew."""
NodeWork = str | Callable[[ContainerNode], object]
"""A shell line of root's, or what a test may do to a node."""


def spoil_node(
    node: int,
    harm: NodeWork,
    *then: Script,
    cure: NodeWork = "",
    seconds: float = 0.0,
    before: float = 0.0,
    early: bool = False,
    proof: str = "",
) -> Script:
    """`harm` spoils a node, `before` seconds later other faults follow, and `cure` takes it back after `seconds` more.

    cure: '' if nobody takes it back. early: clients lose something by `harm` itself, so that times count from there.
    proof: a shell line that shows, just before the cure, that the fault took hold; exit 0 if it did.
    """

    def script(scene: OutageScene) -> None:
        at = scene.ground.nodes[node]
        try:
            do_work(at, harm)
            time.sleep(before)
            if then and not early:
                scene.at = time.time()
            for one in then:
                one(scene)
            time.sleep(seconds)
            if proof:
                note_proof(scene, at, proof)
        finally:
            if cure:
                do_work(at, cure)
                scene.restored = time.time()

    return script


def note_proof(scene: OutageScene, node: ContainerNode, proof: str) -> None:
    done = node.exec(["sh", "-c", proof], check=False)
    said = " ".join((done.stdout + done.stderr).split())[:160]
    scene.check(done.returncode == 0, f"the fault did not take hold: {said}")
    scene.notes.append(f"took hold: {said}")


def do_work(node: ContainerNode, work: NodeWork) -> object:
    return node.sh(work) if isinstance(work, str) else work(node)


def give_restart(scene: OutageScene) -> None:
    """A person gives `restart`, which may be refused: what counts is what becomes of the clients."""
    done = scene.ground.drive.run("restart", NAME, timeout=240)
    scene.restored = time.time()
    said = [line for line in done.err.splitlines() if line.startswith("error:")] or ["no error"]
    scene.check("Traceback" not in done.err, f"`restart`: {done.err[-200:]}")
    scene.notes.append(f"`restart`: exit {done.code}, {said[0][:160]}")


def cure_by_up(scene: OutageScene, seconds: float) -> None:
    """A person gives the same `up` after so many seconds."""
    time.sleep(seconds)
    if scene.well(3.0):
        scene.notes.append("clients are served before anybody does anything")
    done = scene.ground.drive.run("up", scene.ground.recipe("process", None), timeout=240)
    scene.restored = time.time()
    scene.check(done.code == 0, f"`up` exits {done.code}: {done.err[-200:]}")
    scene.notes.append(f"{seconds:.0f} s later `up`: exit {done.code}")


def cured_by_up(harm: Script, seconds: float) -> Script:
    """The fault, and a person who gives the same `up` after so many seconds."""

    def script(scene: OutageScene) -> None:
        harm(scene)
        cure_by_up(scene, seconds)

    return script
