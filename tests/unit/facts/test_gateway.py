"""The head's report on a gateway's needs; the texts are as the real tools print them."""

from sparkwright.domain.command import Completed
from sparkwright.domain.service import CertificatePair, GatewayFacts, PairTrouble
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.service import parse
from unit.for_each import for_each

PATHS = ("/etc/ssl/c.pem", "/etc/ssl/k.pem")
BARE = """@@ keys

@@ keys-mode
@@ keys-file
/home/ann/.local/state/sparkwright/door/keys.json
@@ caddy
@@ image
@@ host
spark-1
@@ addresses
10.0.0.1 fd00::1 fe80::1 junk
@@ user
1000:1000
@@ port
@@ ours

"""
FULL = (
    BARE.replace("@@ keys\n\n@@ keys-mode\n", '@@ keys\n{"keys": []}\n\n@@ keys-mode\n600\n')
    .replace("@@ caddy\n", "@@ caddy\n/usr/bin/caddy\nv2.11.4 h1:x=\n")
    .replace("@@ image\n", "@@ image\nsha256:12ab\n")
    .replace("@@ port\n", '@@ port\nLISTEN 0 4096 *:8443 *:* users:(("caddy",pid=7,fd=7))\n')
    .replace("@@ ours\n\n", "@@ ours\n/usr/bin/caddy run --config caddy.json \n\n")
)
DATES = "notBefore={}\nnotAfter=Nov 21 22:52:01 2027 GMT\nnow=Nov 21 22:52:01 2026 GMT\nmode=640\n"


def read(text: str, code: int = 0) -> GatewayFacts | Unknown:
    return parse(Completed(code, text), "spark-1", 8443, PATHS)


def read_pair(text: str) -> CertificatePair:
    found = read(BARE + "@@ pair\n" + text)
    assert isinstance(found, GatewayFacts) and found.pair
    return found.pair


def test_a_bare_node() -> None:
    """Guards that what is not there is empty, and that no keys file is read from an empty one."""
    found = read(BARE)
    assert isinstance(found, GatewayFacts)
    assert (found.caddy, found.version, found.image, found.keys, found.keys_mode) == ("", "", "", None, "")
    assert (found.holder, found.ours, found.pair) == ("", False, None)
    assert (found.hostname, found.addresses, found.user) == ("spark-1", ("10.0.0.1", "fd00::1"), "1000:1000")


def test_a_node_that_has_all() -> None:
    """Guards each field, and that the gateway's own Caddy is known by the folder it runs in."""
    found = read(FULL)
    assert isinstance(found, GatewayFacts)
    assert (found.caddy, found.version, found.image) == ("/usr/bin/caddy", "v2.11.4 h1:x=", "sha256:12ab")
    assert (found.keys, found.keys_mode, found.holder, found.ours) == ('{"keys": []}', "600", "caddy", True)


def test_another_users_listener_has_no_name() -> None:
    """Guards that a port is taken also where ss may not report by whom."""
    found = read(BARE.replace("@@ port\n", "@@ port\nLISTEN 0 128 0.0.0.0:8443 0.0.0.0:*\n"))
    assert isinstance(found, GatewayFacts) and found.holder == "?"


@for_each("trouble", [t for t in PairTrouble if t is not PairTrouble.EARLY])
def test_each_word_of_trouble_is_understood(trouble: PairTrouble) -> None:
    """Guards that what the node's script reports is what the rule knows."""
    assert read_pair(f"{trouble}\nmode=600\n").trouble is trouble


def test_dates_of_a_certificate() -> None:
    """Guards that one which begins tomorrow is none yet, with a day of one digit as with two."""
    good = read_pair("good\n" + DATES.format("Nov  1 00:00:00 2026 GMT"))
    assert good == CertificatePair(*PATHS, None, "Nov 21 22:52:01 2027 GMT", False, "640")
    assert read_pair("good\n" + DATES.format("Dec  1 00:00:00 2026 GMT")).trouble is PairTrouble.EARLY
    assert read_pair("good\nsoon\n" + DATES.format("?")).soon
    assert read_pair("mode=600\n") == CertificatePair(*PATHS, key_mode="600"), (
        "without openssl nothing is known against it"
    )


def test_no_answer_is_unknown() -> None:
    """Guards that half an answer reports nothing."""
    assert isinstance(read("", 127), Unknown)
    assert isinstance(read(BARE.partition("@@ port")[0]), Unknown)
