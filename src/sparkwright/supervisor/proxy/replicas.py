"""The replicas of one model behind the gateway: which of them may be asked now, and where a request goes."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkwright.gateway import decide
from sparkwright.gateway.keys import RouteSetting
from sparkwright.gateway.replicas import BLOCK, KnownBeginnings, PromptBlocks, choose
from sparkwright.supervisor.proxy.behind import Deployed

Group = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ReplicaSet:
    """The replicas of one model, or a deployment that stands alone."""

    members: tuple[Deployed, ...]
    known: KnownBeginnings

    @property
    def name(self) -> str:
        """The name of the model-wide deployment."""
        setting = self.members[0].setting
        return setting.replica_of or setting.deployment

    @property
    def setting(self) -> RouteSetting:
        """The setting of the first: others differ in nothing that a request sees."""
        return self.members[0].setting

    @property
    def refusing(self) -> bool:
        return all(one.behind.refusing for one in self.members)

    @property
    def there(self) -> tuple[Deployed, ...]:
        return tuple(one for one in self.members if not one.behind.away)

    @property
    def asked(self) -> Deployed:
        """The one that is asked for what each of them knows."""
        return min(self.members, key=lambda one: (one.behind.away, one.behind.refusing))

    def left(self, tried: frozenset[str]) -> tuple[Deployed, ...]:
        """Replicas that may get a request which the tried ones did not answer. One that failed just now is asked all
        the same where nothing else is left."""
        found = [one for one in self.members if one.name not in tried and not one.behind.refusing]
        return tuple([one for one in found if not one.behind.away] or found)

    def take(self, among: Sequence[Deployed], prompt: PromptBlocks) -> tuple[Deployed, int]:
        """The replica for this prompt, and the bytes of it that are new there."""
        if len(self.members) == 1:
            return self.members[0], 0
        replicas = {one.name: one.behind.as_replica for one in self.members}
        self.known.keep(replicas.values())
        name = choose([replicas[one.name] for one in among], prompt, self.known).name
        new = (len(prompt.blocks) - self.known.matched(name, prompt.blocks)) * BLOCK
        self.known.learn(name, prompt.blocks)
        return next(one for one in among if one.name == name), new


class Offer:
    """The deployments on a gateway's port as their files were at one moment, and what each request needs to know of
    them. several: models of which there are replicas. limit: bytes of any body."""

    def __init__(self, deployed: Mapping[str, Deployed], sets: Sequence[ReplicaSet]) -> None:
        self.deployed, self.sets = deployed, tuple(sets)
        settings = [one.setting for one in deployed.values()]
        self.limit = max((one.limit for one in settings), default=0)
        self.routes = decide.matcher(tuple(dict.fromkeys(route for one in settings for route in one.routes)))
        self.websockets = frozenset(path for one in settings for path in one.websockets)
        self.patient = any(one.patience for one in settings)
        self.several = tuple(one.setting.models for one in sets if len(one.members) > 1)


class Replicas:
    """All deployments of a gateway as sets of replicas, with what is known of each set's caches."""

    def __init__(self) -> None:
        self._known: dict[Group, KnownBeginnings] = {}
        self._trouble = ""

    def sets(self, deployed: Iterable[Deployed]) -> list[ReplicaSet]:
        found: dict[Group, list[Deployed]] = {}
        for one in deployed:
            found.setdefault(_group(one.setting), []).append(one)
        return [
            ReplicaSet(tuple(members), self._known.setdefault(group, KnownBeginnings()))
            for group, members in found.items()
        ]

    def forget(self, deployed: Iterable[Deployed]) -> None:
        """Forget sets that are gone."""
        there = {_group(one.setting) for one in deployed}
        self._known = {group: known for group, known in self._known.items() if group in there}

    def troubles(self, deployed: Iterable[Deployed]) -> dict[str, str]:
        """The deployments that bear one name and are no replicas of each other, with what is wrong; new ones are
        logged."""
        found = dict(_differing(list(deployed)))
        text = "; ".join(dict.fromkeys(found.values()))
        if text and text != self._trouble:
            sys.stderr.write(f"{text}\n")
        self._trouble = text
        return found


def _group(setting: RouteSetting) -> Group:
    """Replicas serve the same models by the same API; whatever differs in that stands alone."""
    if not setting.replica_of:
        return (setting.deployment,)
    return (setting.replica_of, setting.models, setting.routes, setting.websockets)


def _differing(deployed: list[Deployed]) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(one.setting.replica_of for one in deployed if one.setting.replica_of):
        members = [one for one in deployed if one.setting.replica_of == name]
        if len({_group(one.setting) for one in members}) > 1:
            each = ", ".join(f"{one.name} ({', '.join(one.setting.models)})" for one in members)
            text = f"replicas of {name} differ in their models or API and do not stand in for each other: {each}"
            yield from ((one.name, text) for one in members)
