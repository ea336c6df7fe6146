"""An incident in the order in which its owner asks: the cause with its proof and its doubt, what happened, what to do.

`sparkwright incidents show` and the console's page render the same story.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkwright.domain.diagnosis import CONFIDENT
from sparkwright.domain.incident import CHANGED, Incident, IncidentEvent
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.units import duration
from sparkwright.domain.values import dataclass

NO_CAUSE = "none that is known"
_LONG, _PROOFS, _DOUBTS = 400, 3, 4
_MEDIUM = 0.6
_OF_A_LOG = re.compile(r"rank \d+ on [^:]{1,255}: ")
_STEPS = {
    "draining (stop)": "new requests are refused, all ranks are stopped",
    "starting (launch)": "all ranks are launched again",
    "loading (watch)": "the ranks load",
    "ready": "ready: a real token came",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of the time line. offset: `+2.0 s` after the incident began."""

    offset: str
    text: str


@dataclass(frozen=True, slots=True)
class IncidentStory:
    """sureness: '' where no diagnosis was saved. proof: the lines that the cause was found by.

    doubts: what the diagnosis could not determine; settle: commands that would. noted: (word, line): evidence of the
    detector that the proof does not repeat; a rank's last log line is named as that. steps: for a person, `steps_word`
    says when.
    """

    cause: str
    code: str
    sureness: str
    proof: tuple[str, ...]
    doubts: tuple[str, ...]
    settle: tuple[str, ...]
    what: str
    changed: str
    detected: str
    moments: tuple[Moment, ...]
    end: str
    steps: tuple[str, ...]
    steps_word: str
    noted: tuple[tuple[str, str], ...]


def story_of(incident: Incident, diagnosis: Mapping[str, Any] | None) -> IncidentStory:
    """diagnosis: as the supervisor saved it, or as `diagnose --json` has it; None without one."""
    # Inside a whole examination (`diagnose --json`) or bare; another version's text counts as none
    found = (diagnosis or {}).get("diagnosis") or diagnosis or {}
    found = found if isinstance(found, Mapping) else {}
    causes = [one for one in _listed(found.get("causes")) if isinstance(one, Mapping)]
    first: Mapping[str, Any] = causes[0] if causes else {}
    named = bool(causes or incident.cause)
    proof = tuple(_proof(one) for one in _listed(first.get("proof"))[:_PROOFS])
    doubts = tuple(shortened(str(one)) for one in _listed(found.get("untold"))[:_DOUBTS])
    steps = first.get("fix")
    return IncidentStory(
        cause=str(first.get("title") or incident.cause or NO_CAUSE),
        code=str(first.get("code") or incident.code) if named else "",
        sureness=_sureness(first.get("confidence")),
        proof=proof,
        doubts=doubts,
        settle=tuple(map(str, _listed(found.get("collect"))[:_DOUBTS])) if doubts else (),
        what=incident.what,
        changed=shortened(incident.changed.removeprefix(f"{CHANGED} ")),
        detected=_detected(incident),
        moments=tuple(_moments(incident)),
        end=_end(incident),
        steps=tuple(map(str, _listed(steps) or incident.fix)) if named else (),
        # What the supervisor is at, or has done, nobody else need do.
        steps_word="by hand" if incident.is_open or incident.serving_at > 0 else "fix",
        noted=tuple(_noted(line) for line in incident.evidence if not any(line in one for one in proof)),
    )


def _noted(line: str) -> tuple[str, str]:
    """Nothing ties the last line of a rank's log to the cause."""
    return "last log" if _OF_A_LOG.match(line) else "evidence", shortened(line)


def shortened(line: str, most: int = _LONG) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _proof(proof: Any) -> str:
    """`source:line  text`; what the supervisor observed itself has no file to name."""
    if not isinstance(proof, Mapping):
        return shortened(str(proof))
    source, number, text = str(proof.get("source", "")), proof.get("number", ""), shortened(str(proof.get("text", "")))
    return text if source.startswith("the ranks' ends") else f"{source}:{number}  {text}"


def _sureness(confidence: Any) -> str:
    if not isinstance(confidence, int | float):
        return ""
    word = "certain" if confidence >= CONFIDENT else "likely" if confidence >= _MEDIUM else "possible"
    return f"{word}, {confidence:.0%}"


def _detected(incident: Incident) -> str:
    """The time until detection, as text: a drained deployment has a known fault."""
    found = next((event.at for event in incident.events if event.kind == DeploymentState.DRAINING), 0.0)
    return f"detected {duration(found - incident.opened_at)} later" if found >= incident.opened_at + 1.0 else ""


def _moments(incident: Incident) -> Iterator[Moment]:
    """The moments without the fault's own sentence, which is printed once. What the clock was set by is no time."""
    steps = 0.0
    for event in incident.events:
        steps += event.step
        if event.kind != CHANGED:
            offset = max(0.0, event.at - steps - incident.opened_at)
            yield Moment(f"+{duration(offset)}", _told(event, incident.what))


def _told(event: IncidentEvent, what: str) -> str:
    text = event.text if event.text.startswith(event.kind) else f"{event.kind}: {event.text}".removesuffix(": ")
    bare = text.removesuffix(what).removesuffix("starting again: ").removesuffix(": ") if what else text
    return _STEPS.get(bare, bare)


def _end(incident: Incident) -> str:
    if incident.unwatched_at:
        after = duration(max(incident.unwatched_at - incident.opened_at, 0.0))
        return f"its supervisor was stopped {after} after it began; nothing watches it: the same sparkwright up does"
    if incident.is_open:
        return "it is being worked on, or its supervisor is gone: sparkwright status"
    away = f", clients got nothing for {incident.away_text}" if incident.away_text else ""
    why = " (the head was rebooted meanwhile, and its calendar may have been set)" if incident.away_word else ""
    return f"{incident.outcome}{away}{why}"
