"""Checks of the gateway. Only a context with gateway facts has findings."""

from collections.abc import Iterator

from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.finding import WARN
from sparkwright.domain.recipe import Expose, GatewayTls
from sparkwright.domain.service import PairTrouble
from sparkwright.engines.version import within

# Codes that `up` and the supervisor decide by.
NO_CADDY, PAIR, MODES, PORT, KEYS = "DOOR001", "DOOR003", "DOOR005", "DOOR006", "DOOR007"
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


def caddy_missing(context: Context) -> Iterator[Found]:
    gateway = context.gateway
    if gateway and not gateway.caddy and not gateway.image:
        yield Found(
            "no `caddy` on the PATH, no image caddy:2",
            fix=f"on {gateway.node}: sudo apt-get install caddy && sudo systemctl disable --now caddy, "
            "or docker pull caddy:2; then the same `sparkwright up` again",
            subject=gateway.node,
        )


def gateway_port_taken(context: Context) -> Iterator[Found]:
    gateway = context.gateway
    if gateway and gateway.holder and not gateway.ours:
        who = "a program of another user" if gateway.holder == "?" else gateway.holder
        yield Found(
            f"ss: port {gateway.port} {gateway.holder}",
            title=f"port {gateway.port} is in use by {who}: no gateway",
            fix=f"stop it (on {gateway.node}: sudo ss -ltnp 'sport = :{gateway.port}'), "
            "or set another serving.door.port",
            subject=gateway.node,
        )


def certificate_invalid(context: Context) -> Iterator[Found]:
    pair = context.gateway.pair if context.gateway else None
    if context.gateway and pair and pair.trouble:
        what, cure = _SAID[pair.trouble]
        until = f", valid until {pair.until}" if pair.until else ""
        yield Found(
            f"certificate {pair.certificate}, key {pair.key}{until}",
            title=what,
            fix=f"on {context.gateway.node}: {cure}, then the same `sparkwright up` again",
            subject=context.gateway.node,
        )


def keys_unreadable(context: Context) -> Iterator[Found]:
    gateway = context.gateway
    if not gateway or not gateway.keys_wrong:
        return
    yield Found(
        f"{gateway.keys_file}: {gateway.keys_wrong}",
        fix=f"on {gateway.node}: mv {gateway.keys_file} {gateway.keys_file}.bad; then `sparkwright keys add NAME`",
        subject=gateway.node,
    )


def secrets_readable(context: Context) -> Iterator[Found]:
    gateway = context.gateway
    if gateway and gateway.keys_mode and not gateway.keys_mode.endswith("00"):
        yield _finding(gateway.node, gateway.keys_mode, gateway.keys_file, "600")
    if gateway and gateway.pair and gateway.pair.key_mode[-1:] not in ("", "0"):
        yield _finding(gateway.node, gateway.pair.key_mode, gateway.pair.key, "o=")


def _finding(node: str, mode: str, path: str, wanted: str) -> Found:
    return Found(
        f"stat: {mode} {path}",
        title=f"{path} is readable by other users",
        fix=f"on {node}: chmod {wanted} {path}",
        subject=node,
    )


def plain_http(context: Context) -> Iterator[Found]:
    gateway, serving = context.gateway, context.recipe.serving if context.recipe else None
    if gateway and serving and serving.door.tls is GatewayTls.OFF and serving.expose is Expose.ALL:
        yield Found("serving.door.tls: off, serving.expose: all", subject=gateway.node)


def certificate_expiring(context: Context) -> Iterator[Found]:
    pair = context.gateway.pair if context.gateway else None
    if context.gateway and pair and pair.soon and not pair.trouble:
        yield Found(
            f"{pair.certificate}: valid until {pair.until or 'a day within 14 days'}",
            fix=f"on {context.gateway.node}: renew {pair.certificate}, then the same `sparkwright up` again",
            subject=context.gateway.node,
        )


def caddy_old(context: Context) -> Iterator[Found]:
    gateway = context.gateway
    if gateway and gateway.caddy and within("caddy", gateway.version, HIDES):
        yield Found(
            f"{gateway.caddy} version: {gateway.version}; expected 2.7.6 or later",
            title=f"Caddy {gateway.version} hides truncated streams",
            subject=gateway.node,
        )


CHECKS = explained(
    __file__,
    Check("DOOR001", WARN, "no Caddy on the head node: no gateway", caddy_missing),
    Check("DOOR006", WARN, "gateway port already in use", gateway_port_taken),
    Check("DOOR003", WARN, "certificate not usable, internal CA used", certificate_invalid),
    Check("DOOR007", WARN, "gateway key file not readable", keys_unreadable),
    Check("DOOR005", WARN, "gateway secrets readable by other users", secrets_readable),
    Check("DOOR008", WARN, "gateway serves plain HTTP", plain_http),
    Check("DOOR004", WARN, "gateway certificate expires within 14 days", certificate_expiring),
    Check("DOOR002", WARN, "Caddy hides truncated streams", caddy_old),
)
