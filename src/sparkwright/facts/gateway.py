"""What the head node has for a gateway."""

import re
from datetime import datetime

from sparkwright.domain.command import Completed
from sparkwright.domain.service import GatewayFacts, Pair, PairTrouble
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, Plain, address, assignments, not_understood, sections
from sparkwright.remote import gateway

_HOLDER = re.compile(r'users:\(\("([^"]*)"')
_SECTIONS = {"keys", "keys-mode", "keys-file", "caddy", "image", "host", "addresses", "user", "port", "ours"}
_DATE = "%b %d %H:%M:%S %Y GMT"


def fact(node: str, state: str, home: str, port: int, pair: tuple[str, str]) -> Fact[GatewayFacts]:
    return Fact(gateway.look(state, home, port, pair), lambda done: parse(done, node, port, pair))


def parse(done: Completed, node: str, port: int, pair: tuple[str, str]) -> GatewayFacts | Unknown:
    parts = sections(done.stdout)
    if not set(parts) >= _SECTIONS:
        return not_understood(done, "sh")
    program, _, version = parts["caddy"].partition("\n")
    listening = parts["port"]
    holder = _HOLDER.search(listening)
    return GatewayFacts(
        node=node,
        port=port,
        caddy=Plain.FOLDER.only(program),
        version=Plain.VERSION.only(version.strip()),
        image=Plain.IMAGE_ID.only(parts["image"]),
        keys=parts["keys"] if parts["keys-mode"] else None,
        keys_file=parts["keys-file"],
        keys_mode=parts["keys-mode"],
        holder=holder[1] if holder else "?" if listening else "",
        ours="caddy" in parts["ours"],
        hostname=Plain.HOST.only(parts["host"]),
        addresses=tuple(filter(None, map(address, parts["addresses"].split()))),
        user=Plain.NUMBERS.only(parts["user"]),
        pair=_pair(parts["pair"], pair) if "pair" in parts else None,
    )


def _pair(text: str, paths: tuple[str, str]) -> Pair:
    lines = text.splitlines()
    said = dict(assignments(text))
    word = lines[0] if lines else ""
    trouble = PairTrouble(word) if word in set(PairTrouble) else None
    if trouble is None and _later(said.get("notBefore", ""), said.get("now", "")):
        trouble = PairTrouble.EARLY
    return Pair(*paths, trouble, said.get("notAfter", ""), "soon" in lines, said.get("mode", ""))


def _later(one: str, other: str) -> bool:
    """Whether the first date is after the second; not for what is no date."""
    try:
        return datetime.strptime(one, _DATE) > datetime.strptime(other, _DATE)
    except ValueError:
        return False
