"""What a node has for services of ours, and how it is reached from others."""

from ipaddress import ip_address

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.service import Manager, Reach, Seat
from sparkwright.facts.fact import first_line, not_understood, sections, whole


def parse_seat(done: Completed) -> Seat | Unknown:
    found = sections(done.stdout)
    if not done.ok or "manager" not in found:
        return not_understood(done, "sh")
    said = found["manager"].splitlines()
    manager = next((one for one in (Manager.USER, Manager.SYSTEM) if one in said), Manager.NONE)
    pythons = [line.partition(" ") for line in found.get("python", "").splitlines()]
    return Seat(
        manager=manager,
        lingers="lingers" in said,
        why=" ".join(line for line in said if line not in ("user", "system", "lingers")),
        python=next((rest for word, _, rest in pythons if word == "good"), ""),
        seen=", ".join(rest for word, _, rest in pythons if word == "old"),
        addresses=_addresses(found.get("addresses", "")),
        state=found.get("state", ""),
        user=found.get("user", ""),
        runtimes=tuple(found.get("runtimes", "").split()),
        env=tuple(_pair(line) for line in found.get("environment", "").splitlines() if "=" in line),
    )


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition("=")
    return name, value


def parse_reach(done: Completed) -> Reach | Unknown:
    found = sections(done.stdout)
    keys = tuple(" ".join(line.split()[:2]) for line in found.get("keys", "").splitlines() if len(line.split()) >= 2)
    addresses = _addresses(found.get("addresses", ""))
    if not (done.ok and keys and addresses):
        return Unknown(first_line(done), "its host keys or addresses cannot be read")
    return Reach(found.get("user", ""), addresses, whole(found.get("port", "")) or 22, tuple(dict.fromkeys(keys)))


def _addresses(text: str) -> tuple[str, ...]:
    """Those that other machines may use, once each, in their order."""
    return tuple(dict.fromkeys(word for word in text.split() if _useful(word)))


def _useful(word: str) -> bool:
    try:
        address = ip_address(word)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local)
