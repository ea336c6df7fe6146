"""Faults after which something must be remembered: last seconds, prompts, weights, slots; and watchers that hang."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

from cluster.drive import NAME
from drills.ground import PORT, DrillGround
from drills.outage_drill import OutageScene
from drills.outage_faults import Script, kill_rank, post_body
from drills.trial_faults import wait_until
from functional.tiny_gguf import write_tiny_gguf
from testbed import harm

CHAT = "/chat/completions"
HEARD, HEARS = "/tmp/told", 8991
GGUF, KV = "/home/spark/models/tiny.gguf", "/home/spark/kv"
LOADS_WITHIN = 150.0
"""Seconds until a relaunch loads on a busy machine: evidence, stop and memory come first."""
SENTENCE = "I should read the file once more before I answer the question. "
LISTENER = """
import http.server, sys
class Listener(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with open(sys.argv[1], "ab") as told:
            told.write(self.rfile.read(int(self.headers["Content-Length"])) + b"\\n")
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Listener).serve_forever()
"""


def cut_power(seconds: float) -> Script:
    """The worker is off at once, without a shutdown, and on again after so long."""

    def script(scene: OutageScene) -> None:
        worker = scene.ground.worker
        worker.power_cut()
        time.sleep(seconds)
        worker.start()
        scene.restored = time.time()

    return script


def stop_unit(which: Callable[[str], bool]) -> Script:
    """SIGSTOP to a unit's process on the head; nobody continues it but systemd's watchdog."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        unit = next(filter(which, harm.user_units(head)))
        before = harm.main_pid(head, unit)
        head.sh(f"kill -STOP {before}")
        ended = wait_until(lambda: harm.main_pid(head, unit) not in (before, "0"), 60.0)
        scene.check(ended, f"{unit} still hangs after 60 s")
        scene.restored = time.time()
        scene.notes.append(f"systemd restarted it after {scene.restored - scene.at:.0f} s")

    return script


def stop_load_guard(scene: OutageScene) -> None:
    """Rank 1 dies; while it loads again, SIGSTOP to the worker's memory guard.

    Of the programs that are sent to a node only the guard forks: its child samples, its parent watches.
    """
    worker = scene.ground.worker
    kill_rank(scene)
    sent = "[p]ython3 -I -S -$"
    found = f"for one in $(pgrep -u spark -f '{sent}'); do pgrep -P $one -f '{sent}'; done"
    seen = wait_until(lambda: worker.sh(found, check=False).strip(), LOADS_WITHIN)
    scene.check(seen, f"no guard was seen on the worker within {LOADS_WITHIN:.0f} s")
    worker.sh(f"kill -STOP $({found})", check=False)
    scene.until_well(3.0, 240.0)


def kept_prompts(scene: OutageScene) -> None:
    """An agent's context is asked for three times; rank 1 dies; the same question once it serves again."""
    context = "You are a careful assistant. " + SENTENCE * 160
    turns = [{"role": "system", "content": context}, {"role": "user", "content": "How many files?"}]
    body = {"model": "twin-tiny", "messages": turns, "max_tokens": 4}

    def ask() -> float:
        began = time.monotonic()
        status, text = post_body(scene, CHAT, json.dumps(body).encode())
        scene.check(status == 200, f"the context is answered with {status}: {text[:80]}")
        return time.monotonic() - began

    first, *_ = [ask() for _ in range(3)]
    time.sleep(3.0)  # kept once its answer is over
    scene.at = time.time()
    kill_rank(scene)
    scene.until_well()
    sent = wait_until(lambda: "kept prompts: " in scene.operator.samples[-1].text, 60.0)
    scene.check(sent, "nothing was sent again within 60 s")
    scene.notes.append(f"an answer with the context after {first:.1f} s the first time, {ask():.1f} s after the kill")


def kept_weights(scene: OutageScene) -> None:
    """The processes that keep the weights outlive rank 1, and the next start maps what they have."""

    def keepers() -> list[list[int]]:
        nodes = scene.ground.nodes
        return [[p.pid for p in node.processes() if "simulator preload" in p.command] for node in nodes]

    before = keepers()
    scene.check(all(before), "no process keeps the weights")
    kill_rank(scene)
    scene.until_well()
    scene.check(keepers() == before, "the processes with the weights were started again")
    mapped = [node.sh("pgrep -a -f '[l]oad-format' | grep -c ipc_cache", check=False) for node in scene.ground.nodes]
    scene.check(all(int(count or 0) for count in mapped), "the ranks do not map the weights")
    scene.notes.append("the same processes keep the weights")


def listen(ground: DrillGround) -> None:
    """A receiver of notifications on the head, and the cluster file that names it."""
    ground.drive.notify = {"channels": [{"form": "ntfy", "url_env": "DRILL_NTFY"}]}
    ground.drive.env["DRILL_NTFY"] = f"http://127.0.0.1:{HEARS}/drill"
    harm.run_unit(ground.head, "listener", "python3", "-c", LISTENER, HEARD, str(HEARS))


def told_of_outage(scene: OutageScene) -> None:
    """Rank 1 dies; the message must say how long it was away, what it was, and that it serves again."""
    head = scene.ground.head
    kill_rank(scene)
    scene.until_well()
    told = wait_until(lambda: "serves again" in head.sh(f"cat {HEARD}", check=False), 30.0)
    text = head.sh(f"cat {HEARD}", check=False).strip()
    scene.check(told, f"no message within 30 s: {text[:120]!r}")
    scene.check("was away for" in text and "rank 1 on spark-2" in text, f"not what it was: {text[:200]!r}")
    scene.check(text.count("serves again") == 1, "it was told more than once")
    scene.notes.append(f"the message: {text.splitlines()[-1][:200] if text else 'none'}")


def endless_answer(scene: OutageScene) -> None:
    """A model that says one sentence for ever, streamed; the same words once are no loop."""
    for times, ends in ((400, True), (1, False)):
        order = f"Reply with exactly this and nothing else: {SENTENCE * times}"
        body = {"model": "twin-tiny", "messages": [{"role": "user", "content": order}], "max_tokens": 16000}
        status, text = post_body(scene, CHAT, json.dumps(body | {"stream": True}).encode())
        scene.check(status == 200, f"{status}: {text[:80]}")
        events = text.count("data: {")
        looped = "repeated itself" in text and '"length"' in text
        scene.check(looped is ends, f"{times} times: {events} events, {'ended' if looped else 'not ended'}")
        scene.notes.append(f"the sentence {times} x: {events} events, {'ended with a note' if looped else 'whole'}")


# The real llama.cpp, with a model of random weights


def put_model(ground: DrillGround) -> None:
    """The model, and a disk of its own for the engine's cache."""
    ground.head.put(GGUF, write_tiny_gguf(ground.folder / "tiny.gguf").read_bytes())
    mount_cache(ground)


def mount_cache(ground: DrillGround) -> None:
    ground.head.fill_disk(KV, 1 << 40, "256m")  # all of it is left


def _saved(scene: OutageScene, since: float = 0.0) -> bool:
    """True if the slot was saved after that time (epoch seconds): an engine that rests saves empty slots, too."""
    return bool(scene.ground.head.sh(f"find {KV} -name slot-0.bin -newermt @{since:.3f}", check=False))


def kill_llama(scene: OutageScene) -> None:
    """SIGKILL to the engine, not to the shell that leads its session."""
    running = [p for p in scene.ground.head.processes() if "llama_server" in p.command]
    found = [p.pid for p in running if not re.search(r"^(/bin/)?sh |/leader\.sh ", p.command)]
    scene.ground.head.sh(f"kill -KILL {' '.join(map(str, found))}")


def kept_slots(scene: OutageScene) -> None:
    """The slots are saved when the engine rests; it dies; the next start gets them back."""
    body = {"model": "twin-tiny", "messages": [{"role": "user", "content": SENTENCE * 16}], "max_tokens": 4}
    post_body(scene, CHAT, json.dumps(body).encode())
    answered = time.time()
    scene.check(wait_until(lambda: _saved(scene, answered), 60.0), "no slot was saved within 60 s")
    scene.at = time.time()
    kill_llama(scene)
    scene.until_well()
    told = re.compile(r"[1-9][\d,]* tokens restored after the start")
    back = wait_until(lambda: told.search(scene.operator.samples[-1].text), 60.0)
    scene.check(back, "nothing was restored within 60 s")


def lose_cache_disk(scene: OutageScene) -> None:
    """The disk of the engine's cache is gone for a while."""
    head = scene.ground.head
    scene.check(wait_until(lambda: _saved(scene), 60.0), "no slot was saved within 60 s")
    scene.at = time.time()
    head.sh(f"umount -l {KV}")
    named = wait_until(lambda: "contexts are not kept there" in scene.operator.samples[-1].text, 60.0)
    scene.check(named, "status does not name it within 60 s")
    mount_cache(scene.ground)
    scene.restored = time.time()


def kill_without_cache_disk(scene: OutageScene) -> None:
    """The engine dies while the disk of its cache is gone; the disk comes back once it serves again."""
    head = scene.ground.head
    scene.check(wait_until(lambda: _saved(scene), 60.0), "no slot was saved within 60 s")
    head.sh(f"umount -l {KV}")
    scene.at = time.time()
    kill_llama(scene)
    scene.until_well()
    told = wait_until(lambda: "was started without it" in scene.operator.samples[-1].text, 60.0)
    scene.check(told, "status does not name it within 60 s")
    words = " ".join(one.command for one in head.processes() if "llama_server" in one.command)
    scene.check("--slot-save-path" not in words, "the engine was given the folder")
    mount_cache(scene.ground)


def garbled_start(scene: OutageScene) -> None:
    """`up` of a model that speaks no language: it serves, and says so."""
    ground = scene.ground
    put_model(ground)
    done = ground.drive.run("up", ground.recipe("process", None, **LLAMA), timeout=240)
    scene.check(done.code == 1, f"`up` exits {done.code}, not 1")
    scene.check("its answers are garbled" in done.out + done.err, "`up` does not call the answers garbled")
    scene.notes.append(f"`up`: exit {done.code}, serves, but its answers are garbled")
    ground.gateway = ground.probe()
    scene.client.gateway = ground.gateway
    body = {"model": "twin-tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
    status, _ = post_body(scene, CHAT, json.dumps(body).encode())
    scene.check(status == 200, f"a client gets {status}, not 200")
    shown = ground.drive.run("status", NAME)
    scene.check("garbled" in shown.out, f"status does not say so: {shown.out[:200]}")
    scene.notes.append(f"a client: {status}; `status`: exit {shown.code}, degraded")


LLAMA: dict[str, Any] = {
    "engine": {"name": "llama-cpp", "version": "2026.10.11549"},
    "model": {"id": None, "size": None, "simulated": None, "path": GGUF},
    "nodes": 1,
    "parallelism": {"tp": None},
    "serving": {"context": 4096, "sequences": 2, "batched_tokens": 512, "memory_fraction": None},
    "flags": {"n-gpu-layers": 0},
}
LLAMA_ON_DISK = LLAMA | {
    "serving": {**LLAMA["serving"], "coherence": False, "disk_cache": KV, "disk_cache_size": "1 GiB"}
}
ENDING_LOOPS = {"serving": {"door": {"port": PORT, "end_loops": True}}}
