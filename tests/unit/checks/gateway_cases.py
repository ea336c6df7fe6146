"""Contexts in which each rule about the gateway fires, and in which it must be silent."""

from dataclasses import replace

from sparkwright.domain.check import Context
from sparkwright.domain.recipe import Expose, Gateway, GatewayTls, Recipe
from sparkwright.domain.service import CertificatePair, GatewayFacts, PairTrouble
from unit.checks.samples import CLUSTER, RECIPE

GOOD_PAIR = CertificatePair("/etc/ssl/c.pem", "/etc/ssl/k.pem", None, "Nov 21 22:52:01 2027 GMT", key_mode="640")
GOOD = GatewayFacts(
    "spark-1",
    8443,
    "/usr/bin/caddy",
    "v2.11.4 h1:abc=",
    keys='{"keys": []}',
    keys_file="/home/ann/.local/state/sparkwright/door/keys.json",
    keys_mode="600",
    hostname="spark-1",
    addresses=("10.0.0.1",),
    user="1000:1000",
    pair=GOOD_PAIR,
)


OTHERS = "all addresses, tls internal"


def gateway(**changed: object) -> Context:
    return Context(CLUSTER, recipe=RECIPE, gateway=replace(GOOD, **changed))  # type: ignore[arg-type]


def pair_context(**changed: object) -> Context:
    return gateway(pair=replace(GOOD_PAIR, **changed))  # type: ignore[arg-type]


def served(expose: Expose, tls: GatewayTls) -> Context:
    serving = replace(RECIPE.serving, expose=expose, gateway=Gateway(tls=tls))
    recipe: Recipe = replace(RECIPE, serving=serving)
    return replace(gateway(), recipe=recipe)


FIRING = {
    "DOOR001": gateway(caddy="", version=""),
    "DOOR002": gateway(version="2.6.2"),
    "DOOR003": pair_context(trouble=PairTrouble.EXPIRED, until="Nov 21 22:52:01 2025 GMT"),
    "DOOR004": pair_context(soon=True),
    "DOOR005": gateway(keys_mode="644"),
    "DOOR006": gateway(holder="nginx"),
    "DOOR009": gateway(kept=OTHERS, behind=("other",), asked="127.0.0.1, tls internal"),
    "DOOR007": gateway(keys_wrong="no JSON: Expecting value"),
    "DOOR008": served(Expose.ALL, GatewayTls.OFF),
}
SILENT = [
    ("DOOR001", "the image is there", gateway(caddy="", version="", image="sha256:1")),
    ("DOOR001", "no gateway is made", Context(CLUSTER, recipe=RECIPE)),
    ("DOOR002", "the first good one", gateway(version="v2.7.6 h1:x=")),
    ("DOOR002", "no version told", gateway(version="(devel)")),
    ("DOOR003", "all is well", pair_context()),
    ("DOOR003", "the internal CA", gateway(pair=None)),
    ("DOOR004", "DOOR003 says it", pair_context(soon=True, trouble=PairTrouble.EXPIRED)),
    ("DOOR005", "a group may read the key", pair_context(key_mode="640")),
    ("DOOR005", "no keys yet", gateway(keys=None, keys_mode="")),
    ("DOOR006", "it is this gateway itself", gateway(holder="caddy", ours=True)),
    ("DOOR009", "it alone is behind it", gateway(kept=OTHERS, asked="127.0.0.1, tls internal")),
    ("DOOR009", "they agree", gateway(kept=OTHERS, behind=("other",), asked="all addresses, tls internal")),
    ("DOOR007", "no keys yet", gateway(keys=None)),
    ("DOOR008", "on loopback", served(Expose.LOOPBACK, GatewayTls.OFF)),
    ("DOOR008", "with TLS", served(Expose.ALL, GatewayTls.INTERNAL)),
]
