"""Who gets in now: let through, hold for a moment, or refuse with when to come back. Pure: the clock comes in."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

from sparkwright.domain.deployment import DeploymentState
from sparkwright.domain.live import Live
from sparkwright.domain.units import duration
from sparkwright.door.answers import Answer, away, no_key, no_such_path, too_large

HOLD = 10.0
YOUNG = 1.0
STALE = 15.0
CROWD = 256
_API = "/v1/"
_OFTEN, _SOON, _PERSON, _LONGEST = 3, 15, 300, 600
_PASSING = frozenset(
    {
        DeploymentState.DRAINING,
        DeploymentState.BACKING_OFF,
        DeploymentState.STAGING,
        DeploymentState.STARTING,
        DeploymentState.LOADING,
    }
)
_WAITS_FOR_A_PERSON = {
    DeploymentState.FAILED: "it was given up after several starts",
    DeploymentState.NEEDS_REBOOT: "its nodes must be rebooted first",
    DeploymentState.NEEDS_POWER_CYCLE: "a node must be switched off and on first",
    DeploymentState.STOPPED: "it was taken down",
}


@dataclass(frozen=True, slots=True)
class Request:
    """known: a key that opens this door was shown. length: of the body in bytes as announced, None when it is not.

    preflight: a browser's question whether it may ask (CORS).
    """

    path: str
    known: bool
    shown: bool = False
    length: int | None = None
    preflight: bool = False


def refused(request: Request, limit: int) -> Answer | None:
    """What is wrong with the request itself; None when nothing is. limit: bytes of a body.

    A preflight has no key; the engine answers it itself, or says 405.
    """
    if not request.path.startswith(_API) or "/../" in f"{request.path}/":
        return no_such_path()
    if not request.known and not request.preflight:
        return no_key(request.shown)
    if request.length is not None and request.length > limit:
        return too_large(limit)
    return None


@dataclass(frozen=True, slots=True)
class Hold:
    """Ask again soon: it should be back within `seconds`."""

    seconds: float


def admitted(live: Live | None, now: float, held: float, crowd: int = 0) -> Answer | Hold | None:
    """None: let it through. held: seconds that this request has waited; crowd: how many wait now.

    What the supervisor said last counts only while it is fresh: without it the engine is asked, which answers or not.
    """
    if live is None or not fresh(live, now) or not live.refusing:
        return None
    wait = _wait(live, now)
    if crowd <= CROWD and wait is not None and held + wait <= HOLD:
        return Hold(wait)
    return unavailable(live, now)


def fresh(live: Live, now: float) -> bool:
    return abs(now - live.at) <= STALE


def _wait(live: Live, now: float) -> float | None:
    """Seconds until it should be back, for what passes by itself; None when that is too long or nobody knows."""
    if live.phase not in _PASSING:
        return None
    if live.back_at > now:
        return live.back_at - now
    age = now - live.since
    return YOUNG - age if live.back_at == 0 and live.phase is DeploymentState.DRAINING and age < YOUNG else None


def unavailable(live: Live, now: float) -> Answer:
    """Why, since when, what it waits for, and when it should be back."""
    person = _WAITS_FOR_A_PERSON.get(live.phase)
    since = duration(max(now - live.since, 0.0))
    said = f"{live.deployment} is {live.phase.replace('_', ' ')} since {since}"
    why = (live.why or live.reason).rstrip(".")
    back = person or "; ".join(text for text in (waits(live, now), _back(live, now)) if text)
    message = f"{'(simulated) ' if live.simulated else ''}{said}{': ' + why if why else ''}; {back}."
    return away(f"deployment_{live.phase}", message, retry_after(live, now))


def waits(live: Live, now: float) -> str:
    """What it waits for, a deliberate wait with its end; '' for nothing."""
    if live.due > now:
        end = datetime.fromtimestamp(live.due, UTC).strftime("%H:%M:%S UTC")
        return f"{live.awaited or 'back-off'} until {end}"
    return f"waiting for {live.awaited}" if live.awaited else ""


def _back(live: Live, now: float) -> str:
    usual = f"; a start usually takes {duration(live.usual)}" if live.usual else ""
    if live.back_at > now:
        return f"it should be back in about {duration(live.back_at - now)}"
    if 0 < live.back_at < now - HOLD:
        return f"it should have been back {duration(now - live.back_at)} ago{usual}"
    return f"it is not known when it will be back{usual}"


def retry_after(live: Live, now: float) -> int:
    """Whole seconds, never 0: from when it should be back, else a guess by what is wrong."""
    if live.phase in _WAITS_FOR_A_PERSON:
        return _PERSON
    return min(max(ceil(live.back_at - now), 1), _LONGEST) if live.back_at > now else _soon(live)


def _soon(live: Live) -> int:
    """A start of usual length may have begun meanwhile."""
    return min(max(ceil(live.usual), _OFTEN), _SOON) if live.usual else _SOON


def broken(live: Live | None, now: float) -> Answer:
    """The request was let through and the engine gave no answer: what is known of why."""
    if live is not None and fresh(live, now):
        if live.refusing:
            return unavailable(live, now)
        said = f"{live.deployment}: the engine gave no answer just now; its supervisor looks at it."
        return away("engine_unavailable", said, 5)
    silent = f"its supervisor has said nothing for {duration(now - live.at)}" if live else "its supervisor does not run"
    return away("engine_unavailable", f"The engine gave no answer, and {silent}.", _SOON)
