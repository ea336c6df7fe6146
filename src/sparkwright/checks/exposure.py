"""Checks of open ports and lax permissions."""

from collections.abc import Iterator
from ipaddress import ip_address

from sparkwright.checks.containers import engine_of
from sparkwright.checks.rails import fabric_netdevs
from sparkwright.checks.reading import per_node, running, unplanned
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import Listener, NodeFacts
from sparkwright.domain.finding import INFO, WARN, Severity
from sparkwright.domain.unknown import known_or_none
from sparkwright.engines.catalog import ENGINES

# Names that hide what runs: Docker's forwarder and interpreters.
_ANYTHING = ("docker-proxy", "python", "uvicorn", "gunicorn", "node", "rootlessport")
_ENGINE_PORTS = {8000: "vLLM and others", 8080: "llama-server, Open WebUI", 30000: "SGLang", 1234: "LM Studio"}
_ALL = ("0.0.0.0", "*", "::", "[::]")
_OTHERS = ("Ollama", "Ray")  # rules of their own
_OLLAMA = 11434
_RAY_PORTS = {8265: "dashboard", 10001: "client port"}
_RAY_STORE = 6379
_RAY = ("gcs_server", "raylet", "ray::", "ray-")
_LLAMA_RPC_PORT = 50052
_LLAMA_RPC = ("rpc-server", "ggml-rpc")
_JUPYTER = 8888
_DOCKERD = 2375
_SAFE_TOOLKIT = (1, 17, 8)
_SSHD_PORTS = (2222, 2233)


def exposed(context: Context) -> Iterator[tuple[NodeFacts, Listener]]:
    """Sockets that other machines may reach, along with those of our ranks; none of a node whose ranks are not known.

    None with a recipe: what others have opened is no matter of its start.
    """
    for facts in context.facts.values() if not context.cluster.simulated and not context.recipe else ():
        ours = running(facts)
        ports = {rank.port for rank in ours or ()}
        for listener in known_or_none(facts.listeners) or () if ours is not None else ():
            if listener.port not in ports and _beyond(facts, listener.address):
                yield facts, listener


def runs(facts: NodeFacts, helper: str) -> bool:
    """True if a rank of ours runs there whose engine starts such programs: their ports are not foreign."""
    ours = (ENGINES.get(rank.engine.partition(" ")[0]) for rank in running(facts) or ())
    return any(engine and helper in engine.traits.helpers for engine in ours)


def judged(facts: NodeFacts, severity: Severity) -> Severity:
    """The severity on this node: INFO behind a firewall."""
    network = known_or_none(facts.network)
    return Severity.INFO if network and network.firewall else severity


def likely(listener: Listener, *programs: str) -> bool:
    """True if a port's usual owner may be behind it: one of `programs`, no name, or a generic one."""
    return not listener.process or listener.process.startswith((*programs, *_ANYTHING))


def describe_listener(listener: Listener) -> str:
    return f"ss: {listener.address}:{listener.port} {listener.process or '(unknown process)'}"


def _beyond(facts: NodeFacts, address: str) -> bool:
    bare = address.removeprefix("::ffff:")
    fabric = fabric_netdevs(facts)
    own = {a.ipv4 for link in known_or_none(facts.interfaces) or () if link.name in fabric for a in link.addresses}
    try:
        return bare not in own and not ip_address(bare).is_loopback
    except ValueError:
        return bare == "*"


def engine_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    engine = engine_of(listener.process)
    usual = _ENGINE_PORTS.get(listener.port, "") if likely(listener) else ""
    what = "" if engine in _OTHERS else engine or (f"usual for {usual}" if usual else "")
    if what and (listener.port in _ENGINE_PORTS or not running(facts)):
        yield Found(
            describe_listener(listener),
            title=f"port {listener.port} ({what}) is open to the network",
            severity=judged(facts, WARN),
        )


def ollama_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.process.startswith("ollama") or (listener.port == _OLLAMA and likely(listener)):
        yield Found(describe_listener(listener), severity=judged(facts, WARN))


def ray_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    what = "" if runs(facts, "ray") else _ray_service(listener)
    if what:
        yield Found(describe_listener(listener), title=f"Ray {what} open to the network", severity=judged(facts, WARN))


def _ray_service(listener: Listener) -> str:
    """6379 is Redis' port too: only with Ray's own program."""
    if listener.port == _RAY_STORE and listener.process.startswith(_RAY):
        return "store"
    return _RAY_PORTS.get(listener.port, "") if likely(listener, *_RAY) else ""


def llama_rpc_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    foreign = listener.process.startswith(_LLAMA_RPC) or (listener.port == _LLAMA_RPC_PORT and likely(listener))
    if foreign and not runs(facts, "rpc"):
        yield Found(describe_listener(listener), severity=judged(facts, WARN))


def notebook_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.process.startswith("jupyter") or (listener.port == _JUPYTER and not listener.process):
        yield Found(
            describe_listener(listener),
            title=f"port {listener.port} ({listener.process or 'usual for Jupyter'}) is open to the network",
            severity=judged(facts, WARN),
        )


def docker_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.port == _DOCKERD:
        yield Found(describe_listener(listener))


def toolkit_vulnerable(facts: NodeFacts) -> Iterator[Found]:
    docker = known_or_none(facts.containers)
    version = docker.toolkit if docker else ""
    if version and _numbers(version) < _SAFE_TOOLKIT:
        yield Found(
            f"nvidia-ctk --version: {version}; fixed in {'.'.join(map(str, _SAFE_TOOLKIT))}",
            title=f"vulnerable nvidia-container-toolkit {version}",
        )


def _numbers(version: str) -> tuple[int, ...]:
    """(1, 17, 8) of `1.17.8`; an odd version counts as safe."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts) else _SAFE_TOOLKIT


def token_readable(facts: NodeFacts) -> Iterator[Found]:
    settings = known_or_none(facts.settings)
    if settings and settings.token_mode and not settings.token_mode.endswith("00"):
        yield Found(
            f"stat: {settings.token_mode} {settings.token_file}",
            title=f"Hugging Face token has mode {settings.token_mode}",
            fix=f"on {facts.node}: chmod 600 {settings.token_file}",
        )


def host_keys_unchecked(facts: NodeFacts) -> Iterator[Found]:
    settings = known_or_none(facts.settings)
    for path in settings.lax_ssh if settings else ():
        yield Found(f"{path}: StrictHostKeyChecking no", fix=f"in {path}: StrictHostKeyChecking accept-new")


def container_sshd(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.port in _SSHD_PORTS and listener.process in ("", "sshd"):
        yield Found(
            describe_listener(listener),
            title=f"SSH server open to the network on port {listener.port}",
            fix=f"see whose it is: docker ps; sudo ss -ltnp 'sport = :{listener.port}'; end what is not needed",
        )


def rank_open(facts: NodeFacts) -> Iterator[Found]:
    """An engine that takes no notice of the address it was given: its key, if it has one, is all that protects it."""
    binds = {rank.port: rank.bind for rank in running(facts) or ()}
    for listener in known_or_none(facts.listeners) or ():
        bind = binds.get(listener.port, "")
        if bind and bind not in _ALL and listener.address.removeprefix("::ffff:") in _ALL:
            yield Found(
                f"{describe_listener(listener)}; asked for {bind}",
                title=f"our engine on port {listener.port} listens on all addresses",
            )


CHECKS = explained(
    __file__,
    Check("SEC001", WARN, "inference endpoint open to the network", per_node(exposed, engine_open)),
    Check("SEC002", WARN, "Ollama open to the network", per_node(exposed, ollama_open)),
    Check("SEC003", WARN, "Ray open to the network", per_node(exposed, ray_open)),
    Check("SEC004", WARN, "llama.cpp RPC worker open to the network", per_node(exposed, llama_rpc_open)),
    Check("SEC005", WARN, "notebook server open to the network", per_node(exposed, notebook_open)),
    Check("SEC006", WARN, "Docker daemon open to the network", per_node(exposed, docker_open)),
    Check("SEC007", WARN, "vulnerable NVIDIA container toolkit", per_node(unplanned, toolkit_vulnerable)),
    Check("SEC008", INFO, "Hugging Face token readable by others", per_node(unplanned, token_readable)),
    Check("SEC009", INFO, "SSH host key checking is disabled", per_node(unplanned, host_keys_unchecked)),
    Check("SEC010", INFO, "second SSH server open to the network", per_node(exposed, container_sshd)),
    Check("SEC011", WARN, "engine listens on all addresses", per_node(unplanned, rank_open)),
)
