"""Supervisors that a standby starts while it has the votes, and the knowledge that they take over from the head's."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from sparkwright.adapters.artifacts import write
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.service import Service
from sparkwright.domain.standby import INHERITED, NEEDS_HEAD, PAUSED
from sparkwright.domain.values import replace
from sparkwright.supervisor.children import Children
from sparkwright.supervisor.core.state import State

STATE, FIGURES, NONCE = "state.json", "figures.json", "nonce"
COPIED = (STATE, FIGURES, NONCE)
"""Files of a supervisor that the head keeps copying: its memory, its figures, and the name that its leases have."""
CALIBRATIONS = "calibrations"
_NOT_OURS = ("outage:", "process:")
"""Figures that name an incident or a process of the head."""


class Successors:
    """The supervisors of the deployments that can do without the head. words: the command, without its folder."""

    def __init__(self, tree: Path, words: tuple[str, ...], notice: Callable[[str], None]) -> None:
        self._tree, self._words, self._notice = tree, words, notice
        self._run: dict[Path, Children] = {}

    async def follow(self) -> None:
        """Starts those that are wanted and do not run; ends those that nobody wants any more."""
        wanted = set(self._wanted()) if self._words else set()
        for home in self._run.keys() - wanted:
            await self._run.pop(home).stop()
        for home in sorted(wanted - self._run.keys()):
            inherit(home, self._notice)
            self._notice(f"{home.name}: supervised from here")
            program = Service("supervisor", (*self._words, str(home)), cwd=str(home), private=False)
            self._run[home] = Children((program,), self._notice)
            self._run[home].start()

    async def end(self) -> None:
        for home in list(self._run):
            await self._run.pop(home).stop()

    def _wanted(self) -> Iterator[Path]:
        for path in self._tree.glob("supervision/*/desired.json"):
            if not any((path.parent / mark).exists() for mark in (NEEDS_HEAD, PAUSED)):
                yield path.parent


def inherit(home: Path, notice: Callable[[str], None]) -> None:
    """Takes up what the head's supervisor knew last, once: what this one has written since is newer.

    Without it, or if it cannot be read, the supervisor goes on from what runs.
    """
    with suppress(OSError):
        (home / "live.json").unlink(missing_ok=True)
    for name in COPIED:
        path = home / INHERITED / name
        try:
            text = path.read_bytes()
            path.unlink()
            write(home / name, _own(name, text))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, Unreadable) as error:
            notice(f"warning: {path} cannot be taken over: {error}")


def _own(name: str, text: bytes) -> bytes:
    """The same without what is the head's own: numbers of incidents are counted on each node."""
    if name == STATE:
        return to_json(replace(from_json(State, text), incident=0, owed=())).encode()
    if name == FIGURES:
        found = read_json(text)
        if not isinstance(found, dict):
            raise ValueError("no figures")
        return json.dumps({key: float(value) for key, value in found.items() if not key.startswith(_NOT_OURS)}).encode()
    return text


def copied_files(state: Path, tree: str) -> Iterator[tuple[Path, str]]:
    """(path here, path on the standby) of all that a successor needs and `up` cannot write: it changes while it serves.

    state: the head's state folder.
    """
    for home in (path.parent for path in state.glob("supervision/*/desired.json")):
        for name in COPIED:
            yield home / name, f"{tree}/supervision/{home.name}/{INHERITED}/{name}"
    for path in state.glob(f"{CALIBRATIONS}/*.json"):
        yield path, f"{tree}/{CALIBRATIONS}/{path.name}"
