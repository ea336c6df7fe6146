"""A node's means for services of ours and for a gateway, and the ways to reach it from others."""

import re
from datetime import datetime

from sparkwright.domain.command import Completed
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.facts import Unknown
from sparkwright.domain.service import CertificatePair, GatewayFacts, Manager, PairTrouble, Reach, ServiceHost
from sparkwright.facts.fact import Fact, Plain, address, assignments, first_line, not_understood, sections, whole_number
from sparkwright.remote import gateway

_ENV = ("PATH", "LD_LIBRARY_PATH")
_RUNTIME = re.compile(r"[0-9a-f]{16}")
_PROGRAMS = 16
_HOLDER = re.compile(r'users:\(\("([^"]*)"')
_SECTIONS = {
    "keys",
    "keys-mode",
    "keys-file",
    "caddy",
    "image",
    "host",
    "addresses",
    "user",
    "port",
    "ours",
}
_DATE = "%b %d %H:%M:%S %Y GMT"


def parse_service_host(done: Completed) -> ServiceHost | Unknown:
    found = sections(done.stdout)
    if not done.ok or "manager" not in found:
        return not_understood(done, "sh")
    state, user = found.get("state", ""), found.get("user", "")
    if not (Plain.FOLDER.fits(state) and Plain.USER.fits(user)):
        return Unknown(f"{user!r}, {state!r}"[:200], "its user's name or its state folder cannot be used as they are")
    said = found["manager"].splitlines()
    manager = next((one for one in (Manager.USER, Manager.SYSTEM) if one in said), Manager.NONE)
    pythons = [line.partition(" ") for line in found.get("python", "").splitlines()]
    env = (line.partition("=") for line in found.get("environment", "").splitlines())
    return ServiceHost(
        manager=manager,
        lingers="lingers" in said,
        why=" ".join(line for line in said if line not in ("user", "system", "lingers")),
        python=next((rest for word, _, rest in pythons if word == "good" and Plain.FOLDER.fits(rest)), ""),
        seen=", ".join(rest for word, _, rest in pythons if word == "old"),
        addresses=_addresses(found.get("addresses", "")),
        state=state,
        user=user,
        runtimes=tuple(filter(_RUNTIME.fullmatch, found.get("runtimes", "").split())),
        env=tuple((name, value) for name, _, value in env if name in _ENV and Plain.VALUE.fits(value)),
    )


def parse_programs(done: Completed) -> dict[str, int]:
    """Process by service; without those that do not run."""
    rows = (line.split() for line in done.stdout.splitlines()[:_PROGRAMS])
    return {row[0]: pid for row in rows if len(row) == 2 and (pid := whole_number(row[1]))}


def parse_reach(done: Completed) -> Reach | Unknown:
    found = sections(done.stdout)
    addresses, user = _addresses(found.get("addresses", "")), found.get("user", "")
    keys = _host_keys(found.get("keys", "").splitlines())
    if not (done.ok and keys and addresses and Plain.USER.fits(user)):
        return Unknown(first_line(done), "its user's name, host keys or addresses cannot be read")
    port = whole_number(found.get("port", ""))
    return Reach(user, addresses, port if port and 0 < port < 65536 else 22, keys)


def parse_peer(done: Completed) -> Reach | Unknown:
    """Parses remote.staging.peer: the login for others, without an address."""
    first, *lines = done.stdout.splitlines() or [""]
    user, _, rest = first.partition(" ")
    port = whole_number(rest.partition(" ")[0])
    if not (Plain.USER.fits(user) and port and 0 < port < 65536):
        return Unknown(first_line(done), "it does not report the user and port to reach it")
    return Reach(user, (), port, _host_keys(lines))


def _host_keys(lines: list[str]) -> tuple[str, ...]:
    """`TYPE BASE64` of `ssh_host_*_key.pub` lines, each once."""
    keys = (" ".join(line.split()[:2]) for line in lines)
    return tuple(dict.fromkeys(filter(Plain.HOST_KEY.fits, keys)))


def _addresses(text: str) -> tuple[str, ...]:
    """The addresses that other machines may use, once each, in their order."""
    return tuple(dict.fromkeys(filter(None, map(address, text.split()))))


def gateway_fact(node: str, state: str, home: str, port: int, pair: tuple[str, str]) -> Fact[GatewayFacts]:
    return Fact(gateway.inspect_gateway(state, home, port, pair), lambda done: parse(done, node, port, pair))


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
        front=parts.get("front", "").strip(),
        behind=tuple(filter(is_deployment_name, parts.get("behind", "").split()[:_PROGRAMS])),
        hostname=Plain.HOST.only(parts["host"]),
        addresses=tuple(filter(None, map(address, parts["addresses"].split()))),
        user=Plain.NUMBERS.only(parts["user"]),
        pair=_pair(parts["pair"], pair) if "pair" in parts else None,
    )


def _pair(text: str, paths: tuple[str, str]) -> CertificatePair:
    lines = text.splitlines()
    said = dict(assignments(text))
    word = lines[0] if lines else ""
    trouble = PairTrouble(word) if word in set(PairTrouble) else None
    if trouble is None and _later(said.get("notBefore", ""), said.get("now", "")):
        trouble = PairTrouble.EARLY
    return CertificatePair(*paths, trouble, said.get("notAfter", ""), "soon" in lines, said.get("mode", ""))


def _later(one: str, other: str) -> bool:
    """True if the first date is after the second; False for anything but dates."""
    try:
        return datetime.strptime(one, _DATE) > datetime.strptime(other, _DATE)
    except ValueError:
        return False
