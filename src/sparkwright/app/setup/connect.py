"""`connect`: what a client needs to use a deployment, and one request of its own that shows whether it works."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sparkwright.app import queries
from sparkwright.app.services import Services
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.model_replicas import models_of
from sparkwright.domain.probed import Reply
from sparkwright.domain.values import dataclass, replace
from sparkwright.evals import fitness
from sparkwright.evals.heard import ProbeAnswer
from sparkwright.gateway.clients import Client, ServedModel, served
from sparkwright.gateway.keys import Role, digest
from sparkwright.ports import Endpoint

LOOPBACK = "127.0.0.1"
_SECONDS, _SOON = 120.0, 10.0
_SIMULATED = "x-sparkwright-simulated"


@dataclass(frozen=True, slots=True)
class EndpointWay:
    """The way to an endpoint. url: with /v1, as clients on this machine use it. tunnel: ssh destination if it needs
    one, to `node`. key_file, authority: paths here, '' for none. model: '' takes the first that the endpoint lists."""

    url: str
    deployment: str = ""
    tunnel: str = ""
    node: str = ""
    key: Secret | None = None
    key_file: str = ""
    authority: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class EndpointCheck:
    """The result of a check. at: the endpoint as it reported itself. answer: to the one request; troubles: worst
    first."""

    at: ServedModel
    answer: ProbeAnswer
    troubles: tuple[fitness.ClientTrouble, ...] = ()
    models: tuple[str, ...] = ()
    seconds: float = 0.0
    simulated: bool = False

    @property
    def works(self) -> bool:
        return not any(trouble.fails for trouble in self.troubles)


async def find_endpoint(services: Services, deployment: str, key: str, authority: str) -> EndpointWay:
    """The way to a deployment's gateway. key: name of a key made on this machine, '' for the first that opens it.

    Raises UsageError when there is no such deployment, gateway or key.
    """
    one = await _gateway(services, deployment)
    watched = one.supervised
    url = watched.endpoint if watched else ""
    if not (watched and url):
        hint = f"`up` without --no-supervise makes one; the engine itself: sparkwright connect CLIENT {one.endpoint}"
        raise UsageError(f"{one.name} has no gateway", hint)
    head = services.cluster.node(watched.node)
    away = urlsplit(url).hostname == LOOPBACK and not head.is_local
    path, secret = await _key(services, one.name, key)
    trusted = authority if url.startswith("https:") else ""
    return EndpointWay(url, one.name, head.ssh if away else "", head.name, secret, path, trusted)


async def _gateway(services: Services, deployment: str) -> Deployment:
    """The one that is named; the only one without a name. A model with replicas is one: they share the gateway.

    Raises UsageError.
    """
    found, trouble = await queries.status(services, probe=False)
    models = {one.name: replace(one.replicas[0], name=one.name) for one in models_of(found)}
    found = (*(one for one in found if not one.replica_of), *models.values())
    named = [one for one in found if deployment in ("", one.name)]
    if len(named) == 1:
        return named[0]
    if deployment:
        raise queries.unknown(services, deployment, {one.name for one in found})
    if not named:
        raise UsageError(f"nothing runs on {', '.join(services.cluster.names)}", "; ".join(trouble) or "sparkwright up")
    names = ", ".join(one.name for one in named)
    raise UsageError(f"several deployments run: {names}", f"name one: sparkwright connect CLIENT {named[0].name}")


async def _key(services: Services, deployment: str, name: str) -> tuple[str, Secret | None]:
    """The file on this machine and the key in it. Raises UsageError for a name that it has none of."""
    files = services.keyring.saved(services.cluster.name) if services.keyring else ()
    from sparkwright.app.setup.keys import listed

    known = await listed(services)
    callers = (one for one in known.keys if one.role is not Role.VIEWER)
    opening = {one.sha256 for one in callers if one.deployment in ("", deployment) and name in ("", one.name)}
    for path, secret in files:
        if digest(secret.reveal()) in opening:
            return path, secret
    if name:
        there = ", ".join(sorted({one.name for one in known.keys})) or "none"
        raise UsageError(f"no key {name} on this machine opens {deployment}", f"keys of the head node: {there}")
    made = ", ".join(sorted({f"{one.name} (made by {one.by or 'unknown'})" for one in known.keys}))
    where = f"; the head knows {made}, and each is only on the machine that made it" if made else ""
    hint = "`sparkwright keys add NAME` makes one here; or copy the .key file from the machine where `up` was called "
    hint += f"(below ~/.local/state/sparkwright/keys/{services.cluster.name})"
    raise UsageError(f"no key on this machine opens {deployment}{where}", hint)


async def check(asker: Endpoint, way: EndpointWay, client: Client) -> EndpointCheck:
    """Finds the endpoint and sends one request as the client would. Raises as `check_endpoint` does."""
    return await _asked(asker, way, client, await check_endpoint(asker, way))


async def check_endpoint(asker: Endpoint, way: EndpointWay) -> EndpointCheck:
    """The endpoint as it reports itself; the model is asked nothing. Raises NotReady if nothing answers, UsageError for
    values that settings cannot hold."""
    listing = await asker.get(f"{way.url.removesuffix('/v1')}/v1/models", way.key, _SOON)
    rows = _rows(listing)
    names = tuple(str(row["id"]) for row in rows)
    if way.model and names and way.model not in names:
        raise UsageError(f"{way.url} does not serve {way.model}", f"it serves: {', '.join(names)[:500]}")
    if not (model := way.model or next(iter(names), "")):
        from sparkwright.app.bench.target import server_message

        hint = "is this the address with /v1? `sparkwright status` shows it"
        said = f"{way.url}: no list of models, but HTTP {listing.status}: {server_message(listing)}"
        raise NotReady(said, "name a key: --key NAME, or --key-file FILE" if listing.status == 401 else hint)
    row: Mapping[str, Any] = next((row for row in rows if row["id"] == model), {})
    at = served(way.url, model, key_file=way.key_file, authority=way.authority, context=_context(row))
    simulated = listing.headers.get(_SIMULATED, "") not in ("", "0")
    return EndpointCheck(at, ProbeAnswer(), models=names, simulated=simulated)


async def _asked(asker: Endpoint, way: EndpointWay, client: Client, seen: EndpointCheck) -> EndpointCheck:
    ask = fitness.request(client)
    body = json.dumps({"model": seen.at.model, **ask.body})
    try:
        reply = await asker.post(f"{seen.at.root}{ask.path}", body, way.key, _SECONDS)
    except NotReady as error:
        reply, answer = Reply(0), ProbeAnswer(trouble=error.message)
    else:
        answer = fitness.read_answer(ask, reply)
    troubles = tuple(fitness.troubles(client, answer, seen.at.context))
    return replace(seen, answer=answer, troubles=troubles, seconds=reply.seconds)


def _rows(reply: Reply) -> Sequence[Mapping[str, Any]]:
    """The rows of a list of models; [] for anything else."""
    try:
        rows = read_json(reply.body)["data"] if reply.status == 200 else []
        return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)][:200]
    except (ValueError, TypeError, KeyError):
        return []


def _context(row: Mapping[str, Any]) -> int:
    """vLLM and SGLang: max_model_len; llama.cpp: meta.n_ctx; 0 for what is not reported."""
    meta = row.get("meta")
    given = row.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
    return given if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 1 << 31 else 0


def through(way: EndpointWay, port: int) -> EndpointWay:
    """The same way through a tunnel that ends on this machine's `port`."""
    parts = urlsplit(way.url)
    return replace(way, url=f"{parts.scheme}://{LOOPBACK}:{port}/v1")


def port_of(way: EndpointWay) -> int:
    parts = urlsplit(way.url)
    return parts.port or (443 if parts.scheme == "https" else 80)
