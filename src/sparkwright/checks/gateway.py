"""Checks of the gateway. Only a context with gateway facts has findings."""

from collections.abc import Iterator

from sparkwright.checks.reading import per_node
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.finding import WARN
from sparkwright.domain.recipe import Expose, GatewayTls
from sparkwright.domain.service import CertificatePair, GatewayFacts, PairTrouble
from sparkwright.engines.version import within

# Codes that `up` and the supervisor decide by.
NO_CADDY, PAIR, MODES, PORT, KEYS, DIFFERS = "DOOR001", "DOOR003", "DOOR005", "DOOR006", "DOOR007", "DOOR009"
_SAID = {
    PairTrouble.NO_CERTIFICATE: ("the certificate cannot be read", "give the ssh user the right to read it"),
    PairTrouble.NO_KEY: ("the key cannot be read", "give the ssh user, and nobody else, the right to read it"),
    PairTrouble.BAD_CERTIFICATE: ("the certificate is no PEM certificate", "put a PEM chain there"),
    PairTrouble.BAD_KEY: ("the key is no PEM key without a passphrase", "put the key there without a passphrase"),
    PairTrouble.DIFFERS: ("certificate and key do not belong together", "put the key there that it was issued for"),
    PairTrouble.EXPIRED: ("the certificate has expired", "renew it"),
    PairTrouble.EARLY: ("the certificate is not valid yet", "set the node's clock, or wait"),
}
HIDES = "<2.7.6"


def gateways(context: Context) -> Iterator[tuple[str, GatewayFacts]]:
    if context.gateway:
        yield context.gateway.node, context.gateway


def certificate_pairs(context: Context) -> Iterator[tuple[str, CertificatePair]]:
    """The given certificate and key."""
    if context.gateway and context.gateway.pair:
        yield context.gateway.node, context.gateway.pair


def caddy_missing(node: str, gateway: GatewayFacts) -> Iterator[Found]:
    if not gateway.caddy and not gateway.image:
        yield Found(
            "no `caddy` on the PATH, no image caddy:2",
            fix=f"on {node}: sudo apt-get install caddy && sudo systemctl disable --now caddy, "
            "or docker pull caddy:2; then the same `sparkwright up` again",
        )


def gateway_port_taken(node: str, gateway: GatewayFacts) -> Iterator[Found]:
    if gateway.holder and not gateway.ours:
        who = "a program of another user" if gateway.holder == "?" else gateway.holder
        yield Found(
            f"ss: port {gateway.port} {gateway.holder}",
            title=f"port {gateway.port} is in use by {who}: no gateway",
            fix=f"stop it (on {node}: sudo ss -ltnp 'sport = :{gateway.port}'), or set another serving.gateway.port",
        )


def gateway_differs(context: Context) -> Iterator[Found]:
    gateway = context.gateway
    others = [name for name in gateway.behind if name != context.deployment] if gateway else []
    if gateway and others and gateway.kept not in ("", gateway.asked):
        yield Found(
            f"port {gateway.port} for {', '.join(others)}: {gateway.kept}; asked for: {gateway.asked}",
            subject=gateway.node,
        )


def certificate_invalid(node: str, pair: CertificatePair) -> Iterator[Found]:
    if pair.trouble:
        what, cure = _SAID[pair.trouble]
        until = f", valid until {pair.until}" if pair.until else ""
        yield Found(
            f"certificate {pair.certificate}, key {pair.key}{until}",
            title=what,
            fix=f"on {node}: {cure}, then the same `sparkwright up` again",
        )


def keys_unreadable(node: str, gateway: GatewayFacts) -> Iterator[Found]:
    file = gateway.keys_file
    if gateway.keys_wrong:
        yield Found(
            f"{file}: {gateway.keys_wrong}",
            title="the gateway's keys are lost" if gateway.keys in (None, "") else None,
            fix="sparkwright keys add NAME"
            if gateway.keys in (None, "")
            else f"on {node}: mv {file} {file}.bad; then `sparkwright keys add NAME`",
        )


def secrets_readable(node: str, gateway: GatewayFacts) -> Iterator[Found]:
    keys, pair = gateway.keys_mode, gateway.pair
    wide = [(keys, gateway.keys_file, "600")] if keys and not keys.endswith("00") else []
    wide += [(pair.key_mode, pair.key, "o=")] if pair and pair.key_mode[-1:] not in ("", "0") else []
    for mode, path, wanted in wide:
        yield Found(
            f"stat: {mode} {path}",
            title=f"{path} is readable by other users",
            fix=f"on {node}: chmod {wanted} {path}",
        )


def plain_http(context: Context) -> Iterator[Found]:
    gateway, serving = context.gateway, context.recipe.serving if context.recipe else None
    if gateway and serving and serving.gateway.tls is GatewayTls.OFF and serving.expose is Expose.ALL:
        yield Found("serving.gateway.tls: off, serving.expose: all", subject=gateway.node)


def certificate_expiring(node: str, pair: CertificatePair) -> Iterator[Found]:
    if pair.soon and not pair.trouble:
        yield Found(
            f"{pair.certificate}: valid until {pair.until or 'a day within 14 days'}",
            fix=f"on {node}: renew {pair.certificate}, then the same `sparkwright up` again",
        )


def caddy_old(node: str, gateway: GatewayFacts) -> Iterator[Found]:
    if gateway.caddy and within("caddy", gateway.version, HIDES):
        yield Found(
            f"{gateway.caddy} version: {gateway.version}; expected 2.7.6 or later",
            title=f"Caddy {gateway.version} hides truncated streams",
        )


CHECKS = explained(
    __file__,
    Check("DOOR001", WARN, "no Caddy on the head node: no gateway, no console", per_node(gateways, caddy_missing)),
    Check("DOOR006", WARN, "gateway port already in use", per_node(gateways, gateway_port_taken)),
    Check("DOOR009", WARN, "gateway shared with other settings", gateway_differs),
    Check(
        "DOOR003", WARN, "certificate not usable, internal CA used", per_node(certificate_pairs, certificate_invalid)
    ),
    Check("DOOR007", WARN, "gateway key file not readable", per_node(gateways, keys_unreadable)),
    Check("DOOR005", WARN, "gateway secrets readable by other users", per_node(gateways, secrets_readable)),
    Check("DOOR008", WARN, "gateway serves plain HTTP", plain_http),
    Check(
        "DOOR004", WARN, "gateway certificate expires within 14 days", per_node(certificate_pairs, certificate_expiring)
    ),
    Check("DOOR002", WARN, "Caddy hides truncated streams", per_node(gateways, caddy_old)),
)
