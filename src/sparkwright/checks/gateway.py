"""Checks of the gateway. Only a context with gateway facts has findings."""

from collections.abc import Iterator

from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.finding import WARN
from sparkwright.domain.recipe import Expose, GatewayTls
from sparkwright.domain.service import PairTrouble
from sparkwright.engines.version import within

# Codes that `up` and the supervisor decide by.
NO_CADDY, PAIR, MODES, PORT, KEYS = "DOOR001", "DOOR003", "DOOR005", "DOOR006", "DOOR007"


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


_SAID = {
    PairTrouble.NO_CERTIFICATE: ("the certificate cannot be read", "give the ssh user the right to read it"),
    PairTrouble.NO_KEY: ("the key cannot be read", "give the ssh user, and nobody else, the right to read it"),
    PairTrouble.BAD_CERTIFICATE: ("the certificate is no PEM certificate", "put a PEM chain there"),
    PairTrouble.BAD_KEY: ("the key is no PEM key without a passphrase", "put the key there without a passphrase"),
    PairTrouble.DIFFERS: ("certificate and key do not belong together", "put the key there that it was issued for"),
    PairTrouble.EXPIRED: ("the certificate has expired", "renew it"),
    PairTrouble.EARLY: ("the certificate is not valid yet", "set the node's clock, or wait"),
}


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


HIDES = "<2.7.6"


def caddy_old(context: Context) -> Iterator[Found]:
    gateway = context.gateway
    if gateway and gateway.caddy and within("caddy", gateway.version, HIDES):
        yield Found(
            f"{gateway.caddy} version: {gateway.version}; expected 2.7.6 or later",
            title=f"Caddy {gateway.version} hides truncated streams",
            subject=gateway.node,
        )


CHECKS = (
    Check("DOOR001", WARN, "no Caddy on the head node: no gateway", caddy_missing).about(
        detects="neither a program `caddy` on the head's PATH nor the image caddy:2 in its Docker.",
        why="the gateway is Caddy: without it there are no keys, no TLS, and nobody reports when the engine will "
        "be back. The engine serves on loopback (or the fabric), and is supervised all the same.",
        cause="the gateway is Caddy on the head node, and it is neither installed nor pulled there",
        fix="install the package, or pull the image; then the same `up` again",
        see=("https://caddyserver.com/docs/install",),
    ),
    Check("DOOR006", WARN, "gateway port already in use", gateway_port_taken).about(
        detects="a socket listens on `serving.door.port` of the head, and it is not this deployment's own gateway.",
        why="Caddy cannot listen there. The engine serves on loopback without a gateway.",
        cause="something listens there already, another deployment's gateway perhaps, and two cannot",
        fix="stop it, or set another port",
        see=("https://man7.org/linux/man-pages/man8/ss.8.html",),
    ),
    Check("DOOR003", WARN, "certificate not usable, internal CA used", certificate_invalid).about(
        detects="with `serving.door.tls: files`, a certificate or key on the head that is missing, not readable for "
        "the ssh user, no PEM, does not fit the other, has expired or is not yet valid.",
        why="Caddy would not start, or every client would refuse the connection. The internal CA serves in its "
        "place: clients that trust it get in, others do not.",
        cause="serving.door.tls is `files`; a certificate of the head's own CA is used in their place",
        fix="by what is wrong; then the same `up` again",
        see=("https://docs.openssl.org/master/man1/openssl-x509/",),
    ),
    Check("DOOR007", WARN, "gateway key file not readable", keys_unreadable).about(
        detects="the head's keys file is no JSON of ours, or of a newer sparkwright.",
        why="a gateway that starts with it knows no key and answers 401 to everybody; one that runs keeps what it "
        "read before.",
        cause="it was edited by hand, cut short by a full disk, or written by a newer sparkwright",
        fix="put back the last good one, or move it away and make new keys",
    ),
    Check("DOOR005", WARN, "gateway secrets readable by other users", secrets_readable).about(
        detects="the private key of the certificate can be read by all users of the head; or the keys file gives "
        "group or others any right. A group that may read the key (as Debian's ssl-cert) is somebody's "
        "choice and not told.",
        why="who has the private key can play the server; who may write the keys file gives himself a key. Its "
        "hashes alone open nothing.",
        cause="sparkwright writes its own files 0600: somebody changed it, or it was copied",
        fix="chmod",
        see=("https://man7.org/linux/man-pages/man1/chmod.1.html",),
    ),
    Check("DOOR008", WARN, "gateway serves plain HTTP", plain_http).about(
        detects="`serving.door.tls: off` with `serving.expose: all`.",
        why="anybody who can listen in on the network reads every prompt and answer, and the keys with them.",
        cause="the recipe switches TLS off, perhaps for something in front of it that has its own",
        fix="remove `tls: off`, or let expose be loopback or fabric behind your own proxy on this node",
    ),
    Check("DOOR004", WARN, "gateway certificate expires within 14 days", certificate_expiring).about(
        detects="the certificate of `serving.door.tls: files` ends within 14 days and is good until then.",
        why="on that day no client connects any more, and it will look like a broken engine.",
        cause="certificates are given for a limited time",
        fix="renew it",
        see=("https://docs.openssl.org/master/man1/openssl-x509/",),
    ),
    Check("DOOR002", WARN, "Caddy hides truncated streams", caddy_old).about(
        detects="the head's Caddy is older than 2.7.6.",
        why="when the engine dies in the middle of a streamed answer, older ones end the stream as if it were "
        "whole: the client takes half an answer for all of it, and nobody sees an error.",
        cause="before 2.7.6 a stream that its engine left unfinished reaches the client as if it were whole",
        fix="install Caddy from its own packages (https://caddyserver.com/docs/install), then `sparkwright up` "
        "again; until then clients must look for `data: [DONE]`",
        see=("https://github.com/caddyserver/caddy/issues/5951", "https://github.com/caddyserver/caddy/pull/5952"),
    ),
)
