"""One container as `docker run`, Compose or `docker inspect` describe it, as a draft of a recipe."""

import getopt
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from sparkwright.domain.engine import CUSTOM
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass, field
from sparkwright.engines.releases import named_in, served_by
from sparkwright.engines.written import only_engine_with
from sparkwright.recipes.importers.any_server import any_server
from sparkwright.recipes.importers.commands import Started, find_start, inner_shell, one_start, starts_in
from sparkwright.recipes.importers.draft import Draft, ImportOptions, put_engine, put_env, put_nodes, put_program
from sparkwright.recipes.importers.flags import put_command
from sparkwright.recipes.importers.settle import Told, settle
from sparkwright.recipes.importers.shell import Script, unresolved

# docker run's options with a value (docs.docker.com/reference/cli/docker/container/run), and the switches.
_SHORT = "acehlmpuvwditP"
_WITH_VALUE = frozenset("acehlmpuvw")
_VALUES = (
    "add-host annotation attach blkio-weight cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota "
    "cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems detach-keys device device-cgroup-rule "
    "device-read-bps device-read-iops device-write-bps device-write-iops dns dns-option dns-search domainname "
    "entrypoint env env-file expose gpus group-add health-cmd health-interval health-retries health-start-interval "
    "health-start-period health-timeout hostname ip ip6 ipc isolation label label-file link log-driver log-opt "
    "mac-address memory memory-reservation memory-swap memory-swappiness mount name net net-alias network "
    "network-alias oom-score-adj pid pids-limit platform publish pull restart runtime security-opt shm-size "
    "stop-signal stop-timeout storage-opt sysctl tmpfs ulimit user userns uts volume volume-driver volumes-from workdir"
)
_SWITCHES = "detach init interactive no-healthcheck oom-kill-disable privileged publish-all quiet read-only rm tty "
_SWITCHES += "sig-proxy disable-content-trust use-api-socket"
_LONG = {"e": "env", "v": "volume", "p": "publish", "h": "hostname", "l": "label", "m": "memory", "u": "user",
         "w": "workdir", "a": "attach", "c": "cpu-shares", "d": "detach", "i": "interactive", "t": "tty",
         "P": "publish-all"}  # fmt: skip
# What sparkwright decides for every container: GPUs, host network and IPC, memory locks, RDMA devices, restarts, names.
OURS = (
    "attach container_name detach devices device gpus hostname init interactive ipc label labels logging log-driver "
    "log-opt name net network network_mode networks platform pull pull_policy restart rm runtime stdin_open tty ulimit "
    "ulimits cap-add cap_add privileged deploy healthcheck health-cmd health-interval health-retries health-timeout "
    "health-start-period depends_on expose profiles stop_grace_period stop-timeout quiet security_opt security-opt"
)
_HUB_AT = re.compile(r"/(?:[\w.-]+/)*(?:\.cache/)?hugging-?face(?:/hub)?/?")
# The variables of an image itself are in `docker inspect`, too.
_OF_IMAGES = re.compile(
    r"PATH|LD_LIBRARY_PATH|LIBRARY_PATH|HOSTNAME|HOME|LANG|LC_\w+|TERM|DEBIAN_\w+|CUDA_VERSION\w*|NV_\w+|NVIDIA_\w+|"
    r"NVARCH|\w+_VERSION|PYTHON\w*|UV_\w+|PIP_\w+"
)


@dataclass(frozen=True, slots=True)
class ContainerCall:
    """words: entrypoint and command. mounts: HOST:CONTAINER[:ro]. ports: as published. left: keys that have no place.

    label: what the image says of its version. env: of the call; image_env: what may be the image's own.
    """

    image: str
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    shm: str = ""
    label: str = ""
    left: tuple[str, ...] = ()


def docker_run(words: Sequence[str], env_file: Mapping[str, str], source: str, line: int) -> ContainerCall:
    """The words behind `docker run`. Raises RecipeError with file and line for an option that docker does not have."""
    short = "".join(f"{letter}:" if letter in _WITH_VALUE else letter for letter in _SHORT)
    long = [*(f"{name}=" for name in _VALUES.split()), *_SWITCHES.split()]
    try:
        given, rest = getopt.getopt(
            [re.sub(r"=true$", "", word) if word in _TRUE else word for word in words], short, long
        )
    except getopt.GetoptError as error:
        raise RecipeError(
            f"{source}:{line}: docker run: {error}", hint="check the line against `docker run --help`"
        ) from None
    if not rest:
        hint = "copy the whole command; a `#` in it ends it there for the shell, backslash or not"
        raise RecipeError(f"{source}:{line}: docker run names no image", hint=hint)
    options: dict[str, list[str]] = {}
    for name, value in given:
        options.setdefault(_LONG.get(name.lstrip("-"), name.lstrip("-")) if name[1] != "-" else name[2:], []).append(
            value
        )
    env = dict(env_file)
    for word in options.get("env", ()):
        name, equals, value = word.partition("=")
        env[name] = value if equals else f"${{{name}}}"
    known = ("env", "volume", "publish", "shm-size", "entrypoint", "mount", *OURS.split())
    return ContainerCall(
        rest[0],
        (*options.get("entrypoint", ()), *rest[1:]),
        env,
        (*options.get("volume", ()), *(_mount_words(word) for word in options.get("mount", ()))),
        tuple(options.get("publish", ())),
        options.get("shm-size", [""])[-1],
        left=tuple(f"--{name} {' '.join(values)}".strip() for name, values in options.items() if name not in known),
    )


_TRUE = tuple(f"--{name}=true" for name in _SWITCHES.split())


def _mount_words(word: str) -> str:
    """`type=bind,source=/a,target=/b,readonly` as /a:/b:ro."""
    parts = dict(part.partition("=")[::2] for part in word.split(","))
    host = parts.get("source") or parts.get("src") or ""
    inside = parts.get("target") or parts.get("destination") or parts.get("dst") or ""
    return f"{host}:{inside}" + (":ro" if {"readonly", "ro"} & set(parts) else "")


def put_container(draft: Draft, container: ContainerCall, source: str, options: ImportOptions) -> None:
    """Engine, image, environment, mounts and command line of a container. Raises RecipeError: it starts no engine."""
    started = started_by(container.image, container.words, source, container.env)
    put_engine(draft, started.engine, container.image)
    put_program(draft, started)
    put_env(draft, {**container.env, **dict(started.env)})
    put_command(draft, started.engine, started.words)
    put_mounts(draft, container.mounts)
    _put_port(draft, container.ports)
    if container.shm:
        draft.put("shm", re.sub(r"(?i)([kmg])i?b$", r"\1", container.shm))
    for what in container.left:
        draft.note(f"{what}: left out; containers are started in one way")
    put_nodes(draft, options.nodes)
    settle(draft, Told(options.version, (("a label of the image", container.label),)))


def started_by(image: str, words: Sequence[str], source: str, env: Mapping[str, str] = MappingProxyType({})) -> Started:
    """The engine that a container starts. words: entrypoint and command. Raises RecipeError with the image's name."""
    inner = inner_shell(words)
    if inner is not None:
        return one_start(starts_in(Script(inner, source, dict(env)), source), source)
    if found := find_start(words):
        return found
    rest = tuple(words[1:] if tuple(words[:1]) == ("serve",) else words)
    if not rest or rest[0].startswith("-") or "/" in rest[0]:
        if engine := served_by(image):
            return Started(engine, rest)
        if rest and (engine := named_in(image)):
            return Started(engine, rest, by_name=f"after the name of the image {image}")
        if engine := only_engine_with(rest):
            return Started(engine, rest, by_name="the only engine that has all of these options")
    if any_server(words, env):
        return Started(CUSTOM, tuple(words))
    shown = " ".join(words)[:60]
    why = (
        f"starts {shown!r} by its own entrypoint" if shown else "names no command, and its own entrypoint is not known"
    )
    raise RecipeError(
        f"{source}: no engine is started in it that is known: the image {image or '(built)'} {why}",
        hint="known: vllm serve, python -m sglang.launch_server, trtllm-serve, llama-server; write it as the command",
    )


def put_mounts(draft: Draft, mounts: Iterable[str]) -> None:
    """The hub's cache is mounted anyway; the folder of the model becomes part of model.path."""
    kept, path = list[str](), str(draft.get("model.path", ""))
    for mount in mounts:
        host, _, rest = re.sub(r"^(\$\{?HOME\}?|~)(?=/|:)", "~", mount).partition(":")
        inside, _, mode = rest.partition(":")
        inside = inside or host
        if _HUB_AT.fullmatch(inside):
            continue
        if path.startswith("/") and (path == inside or path.startswith(inside.rstrip("/") + "/")):
            draft.put("model.path", host.rstrip("/") + path[len(inside.rstrip("/")) :])
        elif not re.match(r"/|~/", host) or unresolved(host):
            draft.note(f"mounts: {mount} is left out; a mount has absolute paths")
        else:
            kept.append(f"{host}:{inside}" + (":ro" if "ro" in mode.split(",") else ""))
    if kept:
        draft.put("mounts", list(dict.fromkeys(kept)))


def _put_port(draft: Draft, ports: Sequence[str]) -> None:
    """Containers share the node's network: the engine listens on the port that was published."""
    if not ports:
        return
    published = ports[0].partition("/")[0].split(":")
    host = published[-2] if len(published) > 1 else published[-1]
    if len(ports) > 1:
        draft.note(f"ports: of {', '.join(ports)} the first is taken")
    if host.isdigit() and int(host) != draft.get("serving.port", 8000):
        draft.put("serving.port", int(host))
        draft.note(f"serving.port: {host}, the published one; there is no mapping of ports")


def inspected(tree: Sequence[Mapping[str, object]], source: str) -> ContainerCall:
    """`docker inspect NAME`, followed by `docker image inspect IMAGE` or not."""
    found = [row for row in tree if isinstance(row, Mapping) and isinstance(row.get("HostConfig"), Mapping)]
    if len(found) != 1:
        raise RecipeError(f"{source}:1: {len(found)} containers in it; expected one", hint="docker inspect NAME")
    row = found[0]
    config, host = _mapping(row, "Config"), _mapping(row, "HostConfig")
    images = [_mapping(other, "Config") for other in tree if isinstance(other, Mapping) and other is not row]
    base = {word for image in images for word in _listed(image, "Env")}
    env = dict(word.partition("=")[::2] for word in _listed(config, "Env") if word not in base)
    hidden = [name for name in env if not images and _OF_IMAGES.fullmatch(name)]
    labels = _mapping(config, "Labels")
    left = [f"env {', '.join(hidden)}, which may be the image's own"] if hidden else []
    return ContainerCall(
        str(config.get("Image") or ""),
        (*_listed(config, "Entrypoint"), *_listed(config, "Cmd")),
        {name: value for name, value in env.items() if name not in hidden},
        _listed(host, "Binds"),
        tuple(_published(_mapping(host, "PortBindings"))),
        _shm(host.get("ShmSize")),
        str(labels.get("org.opencontainers.image.version") or ""),
        tuple(left),
    )


def _shm(size: object) -> str:
    """64 MiB is Docker's own, which nobody chose."""
    return str(size) if isinstance(size, int) and size > 64 * 1024**2 else ""


def _mapping(row: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = row.get(name)
    return found if isinstance(found, Mapping) else {}


def _listed(row: Mapping[str, object], name: str) -> tuple[str, ...]:
    found = row.get(name)
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _published(ports: Mapping[str, object]) -> Iterable[str]:
    for inside, rows in ports.items():
        for row in rows if isinstance(rows, list) else ():
            yield f"{row.get('HostPort')}:{inside}"
