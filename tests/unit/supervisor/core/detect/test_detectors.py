"""All detectors together: whole stories of healthy and of failing deployments."""

import random
from dataclasses import replace

import pytest

from sparkwright.domain.sample import GpuSample
from sparkwright.supervisor.core.detect.detectors import Detectors
from sparkwright.supervisor.core.detect.setting import Patience
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery
from unit.supervisor.core.detect.figures import (
    GIB,
    IDLE,
    NODES,
    SETTLED,
    START,
    TOTAL,
    WORKING,
    answered,
    cleared,
    detectors,
    ending_faults,
    engine,
    faults,
    sample,
    settled,
    unanswered,
)
from unit.supervisor.core.detect.traces import healthy

XID79 = "NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', GPU has fallen off the bus."


class Traffic:
    """Requests that come, prefill and decode as they like; what an engine would report, every two seconds."""

    def __init__(self, seed: int, busy: float) -> None:
        self.dice, self.busy = random.Random(seed), busy
        self.running = self.tokens = self.prompts = self.finished = self.steps = self.queried = self.hits = 0.0
        self.prefill_left = 0.0
        self.usage = 0.0

    def step(self) -> None:
        if self.running == 0 and self.dice.random() < self.busy:
            self.running = float(self.dice.randint(1, 6))
            self.prefill_left = self.dice.choice([0, 2, 4, 30, 400])
            prompt = 2000.0 * (1 + self.prefill_left)
            self.queried, self.hits = self.queried + prompt, self.hits + prompt * self.dice.uniform(0.2, 0.9)
        elif self.running and self.prefill_left > 0:
            self.prefill_left -= 1
            self.usage += 0.002 if self.prefill_left % 4 == 0 else 0.0
            self.prompts += 9000.0 if self.prefill_left == 0 else 0.0
        elif self.running:
            self.tokens += self.running * self.dice.uniform(20, 80)
            self.steps += 20
            if self.dice.random() < 0.1:
                self.running, self.finished, self.usage = self.running - 1, self.finished + 1, self.usage / 2

    def figures(self) -> dict[str, float]:
        waiting = float(self.dice.randint(0, 40)) if self.running else 0.0
        figures = {"running": self.running, "waiting": waiting, "kv_usage": self.usage, "finished": self.finished}
        figures |= {"generation_tokens": self.tokens, "prompt_tokens": self.prompts, "iterations": self.steps}
        drafted = {"drafts": self.steps, "accepted_tokens": self.steps * 1.7}
        return figures | drafted | {"prefix_queries": self.queried, "prefix_hits": self.hits}


def served(watch: Detectors, seed: int, busy: float, hours: float) -> list[Fault | Cleared]:
    """A healthy deployment: figures every 2 s, samples every 6 s, a canary when it is expected."""
    traffic, told = Traffic(seed, busy), list[Fault | Cleared]()
    levels = {node: healthy(seed + n, ((900.0, 1.5), (2000.0, 0.8)), 14.0) for n, node in enumerate(NODES)}
    words = 0
    for second in range(0, int(hours * 3600), 2):
        at = START + second
        traffic.step()
        told += watch.engine(engine(at, **traffic.figures()), at)
        words += 10**6 if traffic.running else 0
        working = traffic.running > 0
        for node in NODES if second % 6 == 0 else ():
            one = sample(at, WORKING if working else IDLE, levels[node](second), words, stall_full=0.0)
            told += watch.sample(node, one, at)
        if second % 16 == 0 and watch.wants_canary(at):
            told += watch.canary(answered(at, traffic.dice.choice(["one two three", "One, two"])), at + 1)
    return told


@pytest.mark.full
@pytest.mark.parametrize(("seed", "busy"), [(1, 0.9), (2, 0.1)])
def test_hours_of_healthy_service_raise_nothing(seed: int, busy: float) -> None:
    """Long prefills, bursts, pauses, steps of load, noise: not one fault, not even a trouble."""
    watch = detectors()
    for said in ("one two three", "One, two, three"):
        watch.garbage.record(said)
    assert served(watch, seed, busy, 1.2) == []


def test_a_lost_stream_is_unseen_and_no_fault() -> None:
    """Losing ssh to a worker is not losing the worker; with the next sample it is over."""
    watch = detectors()
    watch.sample("spark-2", sample(START), START)
    found = faults(watch.lost("spark-2", START + 1, "connection reset"))
    assert found["unseen"].recovery is Recovery.NONE
    assert found["unseen"].what == "cannot sample spark-2: connection reset"
    assert watch.lost("spark-2", START + 2) == ()
    node = watch.live_node("spark-2")
    assert node is not None
    assert not node.reached
    assert cleared(watch.sample("spark-2", sample(START + 9), START + 9)) == {"unseen"}


def test_the_reason_of_a_lost_stream_is_the_latest_one() -> None:
    """Guards `status` while a node cannot be reached: the connection's end says little, the tries after it name the
    cause, and each is told once."""
    watch = detectors()
    watch.sample("spark-2", sample(START), START)
    told = [watch.lost("spark-2", START + at, why) for at, why in enumerate(["lost", "no key", "no key", "", "no key"])]
    assert [[one.what for one in found if isinstance(one, Fault)] for found in told] == [
        ["cannot sample spark-2: lost"],
        ["cannot sample spark-2: no key"],
        [],
        [],
        [],
    ]


def test_an_unseen_worker_whose_tokens_come_is_left_alone() -> None:
    """Its GPU and its counters are not known for an hour: traffic proves life."""
    watch = detectors()
    watch.lost("spark-2", START)
    for second in range(0, 3600, 2):
        at = START + second
        found = watch.engine(engine(at, running=1.0, generation_tokens=second * 30.0), at)
        found += watch.sample("spark-1", sample(at, WORKING, words=second * 10**6), at) if second % 6 == 0 else ()
        assert faults(found) == {}


def test_grave_lines_of_the_kernel_are_reported_once_and_stay() -> None:
    """The next sample without such a line does not mean that it is over."""
    watch = detectors()
    found = faults(watch.sample("spark-1", sample(START, kernel=(XID79,)), START))
    assert "fixed by a power cycle" in found["xid"].what
    assert watch.sample("spark-1", sample(START + 5), START + 5) == ()
    assert watch.asks().recovery is Recovery.POWER_CYCLE


def test_memory_that_goes_below_the_floors_and_comes_back() -> None:
    """Refuse, let in again, stop: each reported when it begins."""
    watch = detectors(floor=8 * GIB, stop_floor=4 * GIB)
    told = []
    for number, level in enumerate([20, 7, 7, 12, 12, 12, 7, 3, 3]):
        at = START + 5 * number
        found = watch.sample("spark-1", sample(at, available=level * GIB), at)
        told.append((set(faults(found)), cleared(found)))
    assert told == [
        (set(), set()),
        ({"memory-low"}, set()),
        (set(), set()),
        (set(), set()),
        (set(), set()),
        (set(), {"memory-low"}),
        ({"memory-low"}, set()),
        (set(), set()),
        ({"memory-stop"}, set()),
    ]


def test_while_it_does_not_serve_only_machines_are_judged() -> None:
    """Ranks that load take memory at their own pace, one may be far ahead, and nothing answers."""
    watch = detectors(floor=8 * GIB, stop_floor=4 * GIB)
    watch.end()
    for second in range(0, 1200, 5):
        at = SETTLED + second
        found = watch.sample("spark-1", sample(at, available=max(2 * GIB, 100 * GIB - second * GIB)), at)
        found += watch.sample("spark-2", sample(at, available=100 * GIB, stall_full=30.0), at)
        found += watch.engine(None, at) + watch.canary(unanswered(at - 10), at) + watch.tick(at)
        assert found == ()
    assert set(faults(watch.sample("spark-2", sample(at, kernel=(XID79,)), at))) == {"xid"}


def test_a_new_start_begins_again() -> None:
    """A fault of the ranks before it is nothing to it, and may be reported again."""
    watch = detectors()
    for _ in range(2):
        watch.begin(START)
        told = [ending_faults(watch.engine(engine(START + n, running=1.0), START + n)) for n in range(0, 400, 5)]
        assert [set(one) for one in told if one] == [{"frozen"}]


def test_a_supervisor_that_begins_again_does_not_make_the_engine_new() -> None:
    """It served for an hour before: no kernel is compiled any more, and the short patience counts."""
    watch = detectors()
    watch.begin(START, ready=START - 3600.0)
    told = [n for n in range(0, 400, 5) if ending_faults(watch.engine(engine(START + n, running=1.0), START + n))]
    assert len(told) == 1 and 60 < told[0] <= 80


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 40.0])
def test_a_clock_that_is_set_is_no_stillness(jump: float) -> None:
    """NTP after days without a network, a machine that was suspended: a busy engine is left alone, and watched on."""
    watch, at = settled(), SETTLED
    prefill = {"running": 1.0, "kv_usage": 0.4}
    for _ in range(4):
        at += 2
        watch.engine(engine(at, **prefill), at)
    asked, at = at, at + jump
    found = watch.engine(engine(at, **prefill), at) + watch.canary(unanswered(asked), at)
    found += watch.canary(unanswered(asked + 1), at + 1) + watch.tick(at + 2)
    assert faults(found) == {}
    told = []
    for second in range(2, 120, 2):
        told += [second] * bool(ending_faults(watch.engine(engine(at + second, **prefill), at + second)))
    assert len(told) == 1 and 60 < told[0] <= 80


def test_a_wedged_clock_asks_for_a_power_cycle_when_it_comes_down() -> None:
    """The clock is a trouble while it serves, slowly; a relaunch would change nothing."""
    watch = detectors()
    wedged = GpuSample(96.0, 31.0, 9.5, 721.0, 48.0)
    told = set()
    for second in range(0, 60, 5):
        at = SETTLED + second
        told |= set(faults(watch.sample("spark-2", sample(at, wedged), at)))
    assert told == {"clock-wedge"}
    assert watch.asks().recovery is Recovery.POWER_CYCLE
    assert detectors().asks().recovery is Recovery.NONE


def test_a_node_is_shown_with_its_figures() -> None:
    """The node has its figures for status and the exporter; the slope only once it means something."""
    watch = detectors(floor=8 * GIB, stop_floor=4 * GIB)
    assert watch.live_node("spark-1") is None
    for second in range(0, 600, 5):
        at = START + second
        watch.sample("spark-1", sample(at, WORKING, 20 * GIB - second * GIB // 600, kernel_blind="no rights"), at)
    node = watch.live_node("spark-1")
    assert node is not None and node.blind == "no rights"
    assert (node.total, node.gpu_busy, node.gpu_power, node.reached) == (TOTAL, 94.0, 62.0, True)
    assert node.per_hour == pytest.approx(-6 * GIB, rel=0.01)
    assert node.time_left == pytest.approx(11 / 6 * 3600, rel=0.02)


def test_refused_canaries_wait_behind_nobody() -> None:
    """An engine that answers with errors at once is not busy, even so soon after its start."""
    watch = detectors()
    for second in range(2, 60, 2):
        at = START + second
        found = watch.engine(engine(at, running=3.0), at)
        if second % 10 == 0:
            found += watch.canary(type(unanswered(at))(at, None, "HTTP 500", refused=True), at)
        if "frozen" in faults(found):
            break
    assert 20 < second <= 40


def test_patience_scales_with_time() -> None:
    """Drills: a tenth of the time, a tenth of every wait."""
    watch = detectors(patience=Patience().scaled(0.1))
    watch.engine(engine(START), START)
    assert watch.allowance(START + 10).seconds == pytest.approx(max(30.0, 4 * 8192 / 986))
    assert watch.setting.scale == pytest.approx(0.1)


def test_a_read_only_file_system_is_a_trouble_like_a_full_disk() -> None:
    """Guards a disk that the kernel has remounted: the node and what it means are named, and it is over by itself."""
    watch = detectors()
    first = NODES[0]
    now = sample(START + 5, unwritable="read-only file system", disk_free=1 << 40)
    told = faults(watch.sample(first, now, START + 5))
    assert told.keys() == {f"disk-full:{first}"}
    fault = told[f"disk-full:{first}"]
    assert fault.recovery is Recovery.NONE and fault.what.startswith(f"read-only file system on {first}: ")
    assert cleared(watch.sample(first, sample(START + 7, disk_free=1 << 40), START + 7)) == {fault.kind}


def test_a_full_disk_is_a_trouble_of_its_node_whatever_else_is_true() -> None:
    """Guards the line before the fault and during it: with figure and folder, by node, and over when there is room."""
    watch = detectors()
    first, second = NODES[:2]
    told = faults(watch.sample(first, sample(START + 5, disk_free=0), START + 5))[f"disk-full:{first}"]
    assert told.recovery is Recovery.NONE and told.what.startswith(f"disk full on {first}: 0.0 MiB free in ")
    assert faults(watch.sample(second, sample(START + 5, disk_free=8 << 20), START + 5)) == {}
    watch.end()
    assert faults(watch.sample(first, sample(START + 6, disk_free=0), START + 6)).keys() == {told.kind}
    assert cleared(watch.sample(first, sample(START + 7, disk_free=1 << 30), START + 7)) == {told.kind}


def test_a_link_that_goes_down_is_a_trouble_and_stays_known() -> None:
    """Guards the cause of a stall: only ports that had a link, also when it is back before the stall is over."""
    watch = settled()
    at = SETTLED
    for up in (True, False, False, True):
        at += 5
        links = {"enp1s0f0np0": up, "enp1s0f1np1": False}
        found = watch.sample("spark-2", replace(sample(at), links=links), at)
        fault = faults(found).get("link-down:spark-2")
        assert (fault is None) or ("no link on enp1s0f0np0 of spark-2" in fault.what and not up)
    assert "link-down:spark-2" in cleared(found)
    assert watch.seen(SETTLED) == ("link enp1s0f0np0 of spark-2 was down",) and watch.seen(at) == ()


def test_a_fabric_address_that_is_taken_away_is_named_at_once() -> None:
    """Guards the first seconds of a stall: only addresses of the fabric, which the node had, and whose link is up."""
    fabric, other = "192.168.177.12", "172.17.0.1"
    watch = settled(fabric=frozenset({fabric, "192.168.177.11"}))

    def look(at: float, *there: str, up: bool = True) -> tuple[str, bool]:
        seen = replace(sample(at), addresses=frozenset(there), links={"enp1s0f0np0": up})
        found = watch.sample("spark-2", seen, at)
        fault = faults(found).get("address-lost:spark-2")
        return fault.what if fault else "", "address-lost:spark-2" in cleared(found)

    assert look(SETTLED, "127.0.0.1", fabric, other) == ("", False)
    assert look(SETTLED + 1, "127.0.0.1", fabric) == ("", False)
    assert look(SETTLED + 2) == ("", False)  # the kernel's table could not be read
    assert look(SETTLED + 3, "127.0.0.1", up=False) == ("", False)
    what, over = look(SETTLED + 4, "127.0.0.1", other)
    assert what.startswith(f"address {fabric} of spark-2 on the fabric is gone: `ip -br address`") and not over
    assert look(SETTLED + 9, "127.0.0.1", fabric) == ("", True)
