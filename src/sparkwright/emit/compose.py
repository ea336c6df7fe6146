"""Compose: the same compose.yaml on every node, and a .env a node for what differs."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sparkwright.domain.plan import Mount, RankSpec
from sparkwright.emit import source as common
from sparkwright.emit.source import DeploymentSource, EmittedFile, Varied
from sparkwright.remote import docker

_SOURCED = 'set -a; . "$0"; set +a; exec "$@"'
_GPU = {"resources": {"reservations": {"devices": [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]}}}
_WHY = (
    "No health check: `/health` goes on answering 200 when a remote rank has died. Ask for a token instead.",
    "No restart: a rank that comes back alone meets ranks that have given it up. Stop all, then start all.",
)


def compose(source: DeploymentSource) -> tuple[EmittedFile, ...]:
    """NODE/compose.yaml, NODE/.env, NODE/files, NODE/secrets.env and a README. Raises UsageError without containers."""
    common.no_docker(source, "compose")
    steps = [
        *common.filling_step(source),
        "Copy each folder to the node of its name.",
        *common.folders_step(source),
        f"In each folder `docker compose up -d`, in this order: {common.start_order(source)}.",
        "`docker compose logs -f` shows the rank. Ready is when the head has answered a real request.",
        "`docker compose down` on all nodes ends it. When one rank ends, stop the others, too.",
    ]
    return (
        EmittedFile("README.md", common.manual(source, steps)),
        *(f for s in source.specs for f in _node(source, s)),
    )


def _node(source: DeploymentSource, spec: RankSpec) -> tuple[EmittedFile, ...]:
    text, values = _service(source, spec)
    head = common.comment(
        (common.rank_title(source), *_WHY, "The values in ${...} come from the .env next to this file.")
    )
    env = common.comment((common.rank_title(source, spec),)) + "".join(
        f"{k}={_env_value(v)}\n" for k, v in values.items()
    )
    return (
        EmittedFile(f"{spec.node}/compose.yaml", head + text),
        EmittedFile(f"{spec.node}/.env", env),
        *common.secrets_file(spec, spec.node, always=bool(common.secret_names(source))),
        *common.rank_files(spec, spec.node),
    )


def _service(source: DeploymentSource, spec: RankSpec) -> tuple[str, Mapping[str, str]]:
    """compose.yaml and this rank's variables."""
    alike = [s for s in source.specs if _kind(s) == _kind(spec)]
    at = alike.index(spec)
    # With a secret in any rank, every rank sources its secrets.env, so that one text does for all.
    secret = bool(common.secret_names(source))
    words = [tuple(_literal(word) for word in _words(s, secret)) for s in alike]
    varied = common.merge_commands(words) or Varied(shlex.join(words[at]), ({},) * len(alike))
    shared = common.shared_by_all([s.env for s in alike])
    values = {"RANK": str(spec.rank)} | {k: v.replace("$$", "$") for k, v in varied.values[at].items()}
    values |= {k: v for k, v in spec.env.items() if k not in shared}
    values |= {f"MOUNT_{n}": m.host for n, m in enumerate(spec.mounts) if _differs(alike, n)}
    service = {
        "image": _literal(spec.image),
        "container_name": f"{docker.container_name(source.name, 0)[:-1]}${{RANK}}",
        "entrypoint": _entrypoint(spec, secret),
        "command": varied.text,
        "init": True,
        "restart": "no",
        "stop_signal": source.signal,
        "stop_grace_period": f"{int(source.grace)}s",
        "network_mode": "host",
        "ipc": "host",
        "shm_size": spec.shm_bytes,
        "ulimits": {"memlock": {"soft": -1, "hard": -1}, "stack": 67108864},
        "logging": {"driver": "json-file", "options": {"max-size": "64m", "max-file": "4"}},
        **({"deploy": _GPU} if spec.gpu else {}),
        **({"devices": ["/dev/infiniband:/dev/infiniband"], "cap_add": ["IPC_LOCK"]} if spec.rdma else {}),
        "environment": {k: _literal(v) if k in shared else f"${{{k}}}" for k, v in spec.env.items()},
        "volumes": _volumes(spec, alike),
        **({"secrets": [{"source": "rank", "target": docker.SECRETS_AT}]} if secret else {}),
    }
    given = {"services": {"rank": {k: v for k, v in service.items() if v not in ([], {}, None, "")}}}
    return common.as_yaml(given | ({"secrets": {"rank": {"file": "./secrets.env"}}} if secret else {})), values


def _kind(spec: RankSpec) -> tuple[Any, ...]:
    """Ranks that agree in these can share one text; what else differs becomes a variable."""
    return (
        spec.image, spec.entrypoint, spec.gpu, spec.rdma, spec.shm_bytes, bool(spec.files),
        tuple(m.container for m in spec.mounts), tuple(spec.env),
    )  # fmt: skip


def _words(spec: RankSpec, secret: bool) -> tuple[str, ...]:
    """The words after the entry point: its own first word is the entry point, unless a shell that sources the secrets
    is."""
    entry = spec.entrypoint or ()
    return (docker.SECRETS_AT, *entry, *spec.argv) if secret else (*entry[1:], *spec.argv)


def _entrypoint(spec: RankSpec, secret: bool) -> list[str] | None:
    if secret:
        return ["/bin/sh", "-c", _literal(_SOURCED)]
    return None if spec.entrypoint is None else [_literal(word) for word in spec.entrypoint[:1]]


def _volumes(spec: RankSpec, alike: Sequence[RankSpec]) -> list[dict[str, Any]]:
    """The long form, in which a path with a colon stays one path."""
    hosts = [f"${{MOUNT_{n}}}" if _differs(alike, n) else _literal(m.host) for n, m in enumerate(spec.mounts)]
    mounts = [Mount(host, _literal(m.container), m.read_only) for host, m in zip(hosts, spec.mounts, strict=True)]
    mounts += [Mount("./files", docker.FILES_AT, True)] if spec.files else []
    return [{"type": "bind", "source": m.host, "target": m.container, "read_only": m.read_only} for m in mounts]


def _differs(alike: Sequence[RankSpec], n: int) -> bool:
    return len({s.mounts[n].host for s in alike}) > 1


def _literal(text: str) -> str:
    """Compose takes `$` for a variable."""
    return text.replace("$", "$$")


def _env_value(value: str) -> str:
    """A .env value as written: single quotes keep `$`, `#` and spaces."""
    plain = value.translate(dict.fromkeys(map(ord, "-._/,"))).isalnum()
    return value if plain or not value else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
