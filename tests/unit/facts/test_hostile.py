"""A node that lies: nothing that it states becomes an option, a second line or an expansion somewhere else."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sparkwright.app.cluster_state import image_of
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.facts import board, checkpoint, docker, fabric, network, nic, ranks, service
from sparkwright.facts.fact import Plain, address
from sparkwright.facts.store import parse_supervised
from sparkwright.remote.docker import LABEL
from sparkwright.remote.node_ssh import authorized_line, config
from unit.for_each import for_each

HOSTILE = (
    "me\n  ProxyCommand sh -c 'id > /tmp/x'",
    "-oProxyCommand=touch${IFS}x",
    "a b",
    "$(touch x)",
    "`touch x`",
    "2001:db8::1%h';touch${IFS}x;:",
    "fe80::1%eth0",
    "../../../etc",
    "x\nLD_PRELOAD=/tmp/evil.so",
    'x"y',
    "{env.HOME}",
    "%h",
    "\u202eevil",
    "a\rb",
    "--privileged",
    "/x\n[Service]\nExecStart=/bin/sh",
)
SEAT = (
    "@@ user\n{user}\n@@ state\n{state}\n@@ python\ngood {python}\n@@ addresses\n10.0.0.1 {address}\n@@ manager\nuser\n"
)
SEAT += "@@ runtimes\n{runtime}\n@@ environment\n{name}=x\nPATH=/bin{value}\n"
SEAT_SAID = {"user": "ai", "state": "/s", "python": "/p", "address": "", "runtime": "", "name": "PATH", "value": ""}
REACH = "@@ user\n{user}\n@@ addresses\n10.0.0.1 {address}\n@@ port\n{port}\n"
REACH += "@@ keys\nssh-ed25519 AAAAAAAAAAAAAAAAAAAA\n{key}\n"
REACH_SAID = {"user": "ai", "address": "", "port": "22", "key": ""}
IDENTITY = "@@ hostname\n{hostname}\n@@ arch\n{arch}\n@@ user\n{user}\n@@ home\n{home}\n"
IDENTITY_SAID = {"hostname": "spark-1", "arch": "aarch64", "user": "ai", "home": "/home/ai"}
GATEWAY = "@@ keys\n@@ keys-mode\n@@ keys-file\n/k\n@@ caddy\n{caddy}\nv2.9\n@@ image\n{image}\n@@ host\n{host}\n"
GATEWAY += "@@ addresses\n10.0.0.1 {address}\n@@ user\n{user}\n@@ port\n@@ ours\n"
GATEWAY_SAID = {"caddy": "/usr/bin/caddy", "image": "", "host": "spark-1", "address": "", "user": "1000:1000"}


@dataclass(frozen=True)
class HostileCase:
    """reported: what a node prints, by the names in `text`; read: what becomes of it."""

    text: str
    reported: dict[str, str]
    read: Callable[[str], Any]
    quoted: bool = False

    def with_(self, name: str, hostile: str) -> Any:
        words = self.reported | {name: hostile}
        if self.quoted:
            words = {key: json.dumps(word)[1:-1] for key, word in words.items()}
        text = self.text
        for key, word in words.items():
            text = text.replace("{" + key + "}", word)
        return self.read(text)


def _ranks(text: str) -> Any:
    return ranks.parse(Completed(0, text), "spark-1")


IP = '[{"ifname": "{name}", "mtu": 1500, "flags": ["UP", "LOWER_UP"], '
IP += '"addr_info": [{"family": "inet", "local": "{ipv4}", "prefixlen": 24}]}]'
LINK = '[{"ifname": "{device}", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "{netdev}"}]'
CONTAINER = (
    '{"Name": "/{name}", "State": {"Status": "running"}, "Config": {"Labels": {"'
    + LABEL
    + 'deployment": "{deployment}", '
)
CONTAINER += f'"{LABEL}rank": "0", "{LABEL}bind": "{{bind}}", "{LABEL}key-env": "{{key}}"}}}}}}'
CASES = {
    "seat": HostileCase(SEAT, SEAT_SAID, lambda text: service.parse_service_host(Completed(0, text))),
    "reach": HostileCase(REACH, REACH_SAID, lambda text: service.parse_reach(Completed(0, text))),
    "peer": HostileCase(
        "{user} {port} /home\nssh-rsa {key}\n",
        {"user": "ai", "port": "22", "key": "AAAAAAAAAAAAAAAAAAAA"},
        lambda text: service.parse_peer(Completed(0, text)),
    ),
    "identity": HostileCase(IDENTITY, IDENTITY_SAID, lambda text: board.parse_identity(Completed(0, text))),
    "door": HostileCase(
        GATEWAY, GATEWAY_SAID, lambda text: service.parse(Completed(0, text), "spark-1", 8443, ("", ""))
    ),
    "interfaces": HostileCase(
        "@@ ip\n" + IP,
        {"name": "eth0", "ipv4": "10.0.0.1"},
        lambda text: network.parse_addresses(Completed(0, text)),
        True,
    ),
    "interfaces as text": HostileCase(
        "@@ ip\n2: {name}: <UP,LOWER_UP> mtu 1500 x\n    inet {ipv4}/24 x\n",
        {"name": "eth0", "ipv4": "10.0.0.1"},
        lambda text: network.parse_addresses(Completed(0, text)),
    ),
    "rdma": HostileCase(
        "@@ rdma\n" + LINK + "\n@@ exit\n0\n@@ sysfs\n",
        {"device": "rocep1s0f0", "netdev": "eth0"},
        lambda text: fabric.parse(Completed(0, text)),
        True,
    ),
    "rdma from sysfs": HostileCase(
        "@@ rdma\n@@ exit\n1\n@@ sysfs\n{device}/ports/1/state:4: ACTIVE\n{device}/ports/1/gids/0:{gid}\n"
        "{device}/ports/1/gid_attrs/ndevs/0:{netdev}\n@@ netdevs\n{device}/device/net/{netdev}\n",
        {"device": "rocep1s0f0", "netdev": "eth0", "gid": "fe80::1"},
        lambda text: fabric.parse(Completed(0, text)),
    ),
    "rdma from ibdev2netdev": HostileCase(
        "@@ rdma\n@@ exit\n1\n@@ sysfs\n@@ ibdev2netdev\n{device} port 1 ==> {netdev} (Up)\n"
        "@@ show_gids\n{device} 1 0 {gid} v2 {netdev}\n",
        {"device": "rocep1s0f0", "netdev": "eth0", "gid": "fe80::1"},
        lambda text: fabric.parse(Completed(0, text)),
    ),
    "nic": HostileCase(
        "@@ devices\n{device}/fw_ver:1\n@@ tools\n@@ bonds\n{bond}/bonding/slaves:eth0 {slave}\n",
        {"device": "rocep1s0f0", "bond": "bond0", "slave": "eth1"},
        lambda text: nic.parse(Completed(0, text)),
    ),
    "netplan": HostileCase(
        "@@ routes\n[]\n@@ netplan\n644 /etc/netplan{path}\n",
        {"path": "/x.yaml"},
        lambda text: network.parse(Completed(0, text)),
    ),
    "container": HostileCase(
        "container\t" + CONTAINER,
        {"name": "sparkwright-twin-0", "deployment": "twin", "bind": "127.0.0.1", "key": "KEY"},
        _ranks,
        True,
    ),
    "process rank": HostileCase(
        'rank\t{folder}\trunning\t1\t{"deployment": "twin", "rank": "0"}',
        {"folder": "/s/deployments/twin/rank0"},
        _ranks,
    ),
    "checkpoint": HostileCase(
        "path\t{path}\nroot\t{root}\nrevision\tmain\n",
        {"path": "/m", "root": "/m"},
        lambda text: checkpoint.parse(Completed(0, text)),
    ),
    "image": HostileCase("{id} 5", {"id": "sha256:ab"}, lambda text: image_of(Completed(0, text))),
    "images": HostileCase(
        '@@ client\nx\n@@ images\n{"id": "{id}", "arch": "arm64", "tags": ["a:b", "{tag}"]}',
        {"id": "sha256:ab", "tag": "vllm:1"},
        lambda text: docker.parse_containers(Completed(0, text)),
        True,
    ),
    "supervised": HostileCase(
        '[{"deployment": "{name}", "unit": "", "by": "", "endpoint": "", "now": 1, "running": true, "live": null}]',
        {"name": "twin"},
        lambda text: parse_supervised(Completed(0, text), "spark-1"),
        True,
    ),
}
NAMED = [(case, name) for case in CASES for name in CASES[case].reported]


def strings(found: object) -> Iterator[str]:
    """All text in a fact; what is shown only (Unknown's) is not inspected."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict):
        yield from (text for pair in found.items() for one in pair for text in strings(one))
    elif isinstance(found, (tuple, list)):
        yield from (text for one in found for text in strings(one))
    elif dataclasses.is_dataclass(found) and not isinstance(found, (type, Unknown)):
        yield from strings([getattr(found, field.name) for field in dataclasses.fields(found)])


@for_each("case, name", NAMED)
def test_what_a_node_reports_is_itself_or_nothing(case: str, name: str) -> None:
    """Guards each word that goes into a command, an ssh configuration, a unit or a variable of an engine."""
    honest = CASES[case].with_(name, CASES[case].reported[name])
    assert honest is not None and not isinstance(honest, Unknown), "the case itself is understood"
    for hostile in HOSTILE:
        for text in strings(CASES[case].with_(name, hostile)):
            assert not text.startswith("-"), (hostile, text)
            assert not any(ord(char) < 32 or ord(char) == 127 for char in text), (hostile, text)
            folder = Plain.FOLDER.fits(text)
            assert folder or hostile not in text or Plain.NAME.fits(text), (hostile, text)
            assert folder or not set(text) & set("$`'\"{}%\u202e"), (hostile, text)


@for_each("hostile", HOSTILE)
def test_no_line_is_added_to_an_ssh_configuration(hostile: str) -> None:
    """Guards the head's ssh configuration and a worker's authorized_keys against what the worker and the head
    report."""
    for name in REACH_SAID:
        reach = CASES["reach"].with_(name, hostile)
        assert isinstance(reach, Unknown) or "ProxyCommand" not in config("/s", [("spark-2", reach)])
        if not isinstance(reach, Unknown):
            assert "touch" not in config("/s", [("spark-2", reach)]) and "%" not in "".join(reach.addresses)
    service_host = CASES["seat"].with_("address", hostile)
    assert authorized_line("ssh-ed25519 AAAA", service_host.addresses, "t").count('"') == 2


def test_addresses_are_those_of_machines() -> None:
    """Guards the spelling, too: whatever reads one of ours reads the same address."""
    assert [address(text) for text in ("10.0.0.1", "FD00::0020")] == ["10.0.0.1", "fd00::20"]
    for text in (
        "fe80::1%eth0",
        "fd00::1%25x",
        "127.0.0.1",
        "::1",
        "169.254.1.1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "x",
        "",
    ):
        assert address(text) == "", text
