"""One of several copies of a model that clients reach at one address."""

import re

from sparkwright.domain.values import dataclass

MOST_REPLICAS = 64
_NAME = re.compile(r"(?P<of>.+)-r(?P<number>[1-9]\d?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """A deployment's part in a model. of: the name of all its replicas together. number: from 1.

    listen: address of its engine, '' where the recipe's own reach is enough. gateway: address of the gateway's node in
    the network of the engines, '' where all of them are on one machine.
    """

    of: str
    number: int
    listen: str = ""
    gateway: str = ""

    @property
    def name(self) -> str:
        return replica_name(self.of, self.number)


def replica_name(of: str, number: int) -> str:
    return f"{of}-r{number}"


def is_part_of(model: str, name: str) -> bool:
    """True for the deployment itself and for a name that one of its replicas has."""
    return name == model or split_replica_name(name)[0] == model


def split_replica_name(name: str) -> tuple[str, int]:
    """(the model's name, number) of a name that a replica may have; ('', 0) for any other."""
    found = _NAME.fullmatch(name)
    return (found["of"], int(found["number"])) if found else ("", 0)
