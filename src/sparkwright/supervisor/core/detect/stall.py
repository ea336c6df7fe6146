"""A service that gives nothing, as its state shows it: within seconds, long before anything may be stopped for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sparkwright.domain.facts import Memory
from sparkwright.domain.live import LiveEngine
from sparkwright.domain.units import GIB, counted, duration, gib
from sparkwright.supervisor.core.detect.canary import Canary
from sparkwright.supervisor.core.detect.gpu import Doing, GpuWatch
from sparkwright.supervisor.core.detect.setting import Setting
from sparkwright.supervisor.core.detect.stuck import Allowance, Life, of_a_prompt, of_a_step
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import STALLED, Recovery

# Figures come every one or two seconds; a decode step takes a fraction of one.
_QUIET, _SILENT = 3.0, 5.0
# Of what a relaunch waits for, where it is not known whether the GPUs compute.
_STEPS = 0.5
# Where the planned speed is not known: an assumed step of 8,192 prompt tokens at 1,400 a second.
_UNKNOWN = 6.0
# Requests in flight at the gateway of which the engine reports none may be uploads: a probe that waits so long, too,
# shows that they are not.
_PROBED = 1.5
# A reading of a GPU is about the second before it.
_READ_LATE = 1.0
_UNEXPLAINED = 1.0


@dataclass
class Stall:
    """The watch for a stall. since: time of the last sign of life, or of the first request after it; 0 without a stall.

    reported: when the engine's figures came last. busy: since when there is work, 0 without any. flights: requests that
    the gateway has sent to the engine and that are not answered yet; flying: since when there are any, 0 without.
    """

    setting: Setting
    since: float = 0.0
    reported: float = 0.0
    busy: float = 0.0
    flights: int = 0
    flying: float = 0.0
    _deaf: bool = False
    _what: str = ""

    def begin(self, at: float) -> None:
        self.since, self.reported, self.busy, self.flying, self._deaf = 0.0, at, 0.0, 0.0, False

    def gateway(self, flights: int, at: float) -> None:
        self.flights, self.flying = flights, (self.flying or at) if flights else 0.0

    def unexplained(self, life: Life, canary: Canary, at: float) -> bool:
        """True if requests are in flight, the engine reports none, and no canary was sent since its last output."""
        quiet = self.flying and not has_work(life.last) and at - max(life.worked, self.flying) >= _UNEXPLAINED
        return bool(quiet) and canary.asked <= max(canary.traffic, self.flying)

    def look(self, life: Life, canary: Canary, gpus: Mapping[str, GpuWatch], at: float) -> Fault | None:
        """A trouble until something moves: work that has gone with its clients is no recovery."""
        self._load(life, canary, at)
        if life.worked > self.since or (self._deaf and self.reported > self.since):
            self.since, self._deaf = 0.0, False
        self.since = self.since or self._begun(life, gpus, at)
        if not self.since:
            return None
        self._what = self.seen(life, at)
        return Fault(at, STALLED, self._what, Recovery.NONE, since=self.since)

    def seen(self, life: Life, at: float) -> str:
        """The sentence about work that gives nothing; '' without any, or in the first moments."""
        since = self.since or self._quiet_since(life)
        if not since or at - since < _QUIET:
            return ""
        silent = life.last is not None and at - self.reported >= _SILENT
        also = ", and the engine answers nothing, not even its figures" if silent else ""
        return f"{self._work(life.last)}no token for {duration(at - since)}{also}"

    def excuse(self, life: Life, gpus: Mapping[str, GpuWatch]) -> Allowance:
        """The time for which one step of a prompt may show nothing: none if no GPU computes meanwhile, as long as a
        relaunch waits if all do. Our own question alone waits for somebody's first step at most."""
        after = self._quiet_since(life) + _READ_LATE
        doing = [gpu.doing if gpu.read_at > after else Doing.UNKNOWN for gpu in gpus.values()]
        if doing and not {Doing.WORKING, Doing.UNKNOWN} & set(doing):
            return Allowance(0.0, "no GPU computes")
        if life.last is None or life.last.kv_usage is None:
            return of_a_prompt(self.setting)
        part = 1.0 if has_work(life.last) else 0.5
        if not self.setting.step_seconds:
            return Allowance(part * _UNKNOWN, "how long a step takes is not known")
        if set(doing) == {Doing.WORKING}:
            return of_a_step(self.setting)
        usual = ", twice what it takes at the expected speed" if part == 1.0 else " at the expected speed"
        why = f"a step of {self.setting.batched:,} prompt tokens{usual}"
        return Allowance(part * _STEPS * self.setting.step_seconds, why)

    def over(self, since: float, at: float) -> Cleared:
        """The end of a stall that began at `since`, for the history."""
        return Cleared(at, STALLED, since, self._what)

    def lost(self, life: Life, at: float) -> float:
        """The time since which clients get nothing, for the present fault."""
        return self.since or self._quiet_since(life) or at

    def _begun(self, life: Life, gpus: Mapping[str, GpuWatch], at: float) -> float:
        quiet, step = self._quiet_since(life), self.excuse(life, gpus).seconds
        # A web server that shows a KV usage is a process beside its engine: no step of that one holds up its answers.
        own = life.last is not None and life.last.kv_usage is not None
        if life.last is not None and at - self.reported >= max(_SILENT, 0.0 if own else step):
            self._deaf = True
            return min(self.reported, quiet or self.reported)
        return quiet if quiet and at - quiet >= max(_QUIET, step) else 0.0

    def _load(self, life: Life, canary: Canary, at: float) -> None:
        """Requests that run or wait, or one of our own without an answer."""
        own = [when for when in (canary.pending, canary.failed_since) if when]
        own += [self.flying] if self.flying and own and at - min(own) >= _PROBED else []
        since = min([*own, *([at] if has_work(life.last) else [])], default=0.0)
        self.busy = min(self.busy or since, since)

    def _quiet_since(self, life: Life) -> float:
        return max(life.worked, self.busy) if self.busy else 0.0

    def _work(self, live: LiveEngine | None) -> str:
        """The work as the engine last reported it, else as the gateway counts it."""
        running, waiting = int((live and live.running) or 0), int((live and live.waiting) or 0)
        if not running and not waiting:
            flying = f"{counted(self.flights, 'request')} in flight at the gateway, none reported by the engine, "
            return flying if self.flying else ""
        return f"{counted(running, 'request')} running, " + (f"{waiting} waiting, " if waiting else "")


def has_work(live: LiveEngine | None) -> bool:
    return live is not None and ((live.running or 0) > 0 or (live.waiting or 0) > 0)


# Split models differ by a few GiB between ranks, an embedding or a draft model: half is no split.
_PART, _LEAST = 0.5, 16 * GIB


@dataclass
class Uneven:
    """Nodes of one deployment compared: they hold the same, so one that holds far less has not loaded.

    After a reboot containers have been seen up but waiting for a rank that never came, with 9 GB in use where 79 GB
    were loaded elsewhere. lasting: seconds that it must be so: ranks that end give their memory back one after the
    other.
    """

    lasting: float
    since: float = 0.0

    def look(self, memories: Mapping[str, Memory], at: float) -> Fault | None:
        found = uneven(memories, at)
        self.since = (self.since or at) if found else 0.0
        return found if found and at - self.since >= self.lasting else None


def uneven(memories: Mapping[str, Memory], at: float) -> Fault | None:
    """A fault if one node uses far less memory than the others, by MemTotal - MemAvailable."""
    used = {node: memory.total - memory.available for node, memory in memories.items()}
    if len(used) < 2:
        return None
    node, least = min(used.items(), key=lambda pair: pair[1])
    others = median(value for name, value in used.items() if name != node)
    if least >= _PART * others or others - least < _LEAST:
        return None
    what = f"{node} uses {gib(least)} where the others use {gib(others)}: its rank may not have loaded"
    told = tuple(f"{name}: {gib(value)} in use" for name, value in used.items())
    return Fault(at, "rank-uneven", what, Recovery.NONE, told)


@dataclass
class FabricWatch:
    """RDMA counters that do not move while tokens come: the ranks use sockets instead.

    since: when tokens began to come without any traffic; 0 when that is not so.
    """

    setting: Setting
    since: float = 0.0

    def look(self, life: Life, counted: Sequence[str], at: float) -> Fault | None:
        """counted: nodes whose counters can be read. `frozen` has these counters as one of its own signs."""
        if not self.setting.rdma or self.setting.world < 2 or not counted:
            return None
        stale = self.setting.patience.stale
        silent = [node for node in counted if at - life.carried(node) > stale]
        works = at - life.proved < stale / 2
        if not works or not silent:
            self.since = 0.0
            return None
        self.since = self.since or at
        if at - self.since < stale:
            return None
        what = f"tokens come, but nothing goes over the RDMA ports of {', '.join(silent)}: the ranks use slow sockets"
        return Fault(at, "rdma-still", what, Recovery.NONE, ("port_xmit_data and port_rcv_data do not move",))
