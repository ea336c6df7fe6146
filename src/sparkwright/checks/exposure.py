"""Checks of open ports and lax permissions."""

from collections.abc import Iterator
from ipaddress import ip_address

from sparkwright.checks.foreign import engine_of
from sparkwright.checks.rails import fabric_netdevs
from sparkwright.checks.reading import per_node, running, unplanned
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.facts import Listener, NodeFacts
from sparkwright.domain.finding import INFO, WARN, Severity
from sparkwright.domain.unknown import known
from sparkwright.engines.catalog import ENGINES

# Names that hide what runs: Docker's forwarder and interpreters.
_ANYTHING = ("docker-proxy", "python", "uvicorn", "gunicorn", "node", "rootlessport")


def exposed(context: Context) -> Iterator[tuple[NodeFacts, Listener]]:
    """Sockets that other machines may reach, along with those of our ranks; none of a node whose ranks are not known.

    None with a recipe: what others have opened is no matter of its start.
    """
    for facts in context.facts.values() if not context.cluster.simulated and not context.recipe else ():
        ours = running(facts)
        ports = {rank.port for rank in ours or ()}
        for listener in known(facts.listeners) or () if ours is not None else ():
            if listener.port not in ports and _beyond(facts, listener.address):
                yield facts, listener


def runs(facts: NodeFacts, helper: str) -> bool:
    """Whether a rank of ours runs there whose engine starts such programs: their ports are not foreign."""
    ours = (ENGINES.get(rank.engine.partition(" ")[0]) for rank in running(facts) or ())
    return any(engine and helper in engine.traits.helpers for engine in ours)


def judged(facts: NodeFacts, severity: Severity) -> Severity:
    """Behind a firewall it is only worth knowing."""
    network = known(facts.network)
    return Severity.INFO if network and network.firewall else severity


def likely(listener: Listener, *programs: str) -> bool:
    """Whether a port's usual owner may be behind it: one of `programs`, no name, or a generic one."""
    return not listener.process or listener.process.startswith((*programs, *_ANYTHING))


def said(listener: Listener) -> str:
    return f"ss: {listener.address}:{listener.port} {listener.process or '(unknown process)'}"


def _beyond(facts: NodeFacts, address: str) -> bool:
    bare = address.removeprefix("::ffff:")
    fabric = fabric_netdevs(facts)
    own = {a.ipv4 for link in known(facts.interfaces) or () if link.name in fabric for a in link.addresses}
    try:
        return bare not in own and not ip_address(bare).is_loopback
    except ValueError:
        return bare == "*"


_ENGINE_PORTS = {8000: "vLLM and others", 8080: "llama-server, Open WebUI", 30000: "SGLang", 1234: "LM Studio"}
_OTHERS = ("Ollama", "Ray")  # rules of their own


def engine_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    what = _engine(listener)
    if what and (listener.port in _ENGINE_PORTS or not running(facts)):
        yield Found(
            said(listener), title=f"port {listener.port} ({what}) is open to the network", severity=judged(facts, WARN)
        )


def _engine(listener: Listener) -> str:
    engine = engine_of(listener.process)
    usual = _ENGINE_PORTS.get(listener.port, "") if likely(listener) else ""
    return "" if engine in _OTHERS else engine or (f"usual for {usual}" if usual else "")


_OLLAMA = 11434


def ollama_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.process.startswith("ollama") or (listener.port == _OLLAMA and likely(listener)):
        yield Found(said(listener), severity=judged(facts, WARN))


_RAY_PORTS = {8265: "dashboard", 10001: "client port"}
_STORE = 6379
_RAY = ("gcs_server", "raylet", "ray::", "ray-")


def ray_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    what = "" if runs(facts, "ray") else _ray_service(listener)
    if what:
        yield Found(said(listener), title=f"Ray {what} open to the network", severity=judged(facts, WARN))


def _ray_service(listener: Listener) -> str:
    """6379 is Redis' port too: only with Ray's own program."""
    if listener.port == _STORE and listener.process.startswith(_RAY):
        return "store"
    return _RAY_PORTS.get(listener.port, "") if likely(listener, *_RAY) else ""


_LLAMA_PORT = 50052
_LLAMA = ("rpc-server", "ggml-rpc")


def llama_rpc_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    foreign = listener.process.startswith(_LLAMA) or (listener.port == _LLAMA_PORT and likely(listener))
    if foreign and not runs(facts, "rpc"):
        yield Found(said(listener), severity=judged(facts, WARN))


_JUPYTER = 8888


def notebook_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.process.startswith("jupyter") or (listener.port == _JUPYTER and not listener.process):
        yield Found(
            said(listener),
            title=f"port {listener.port} ({listener.process or 'usual for Jupyter'}) is open to the network",
            severity=judged(facts, WARN),
        )


_DOCKERD = 2375


def docker_open(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.port == _DOCKERD:
        yield Found(said(listener))


_SAFE = (1, 17, 8)


def toolkit_vulnerable(facts: NodeFacts) -> Iterator[Found]:
    docker = known(facts.containers)
    version = docker.toolkit if docker else ""
    if version and _numbers(version) < _SAFE:
        yield Found(
            f"nvidia-ctk --version: {version}; fixed in {'.'.join(map(str, _SAFE))}",
            title=f"vulnerable nvidia-container-toolkit {version}",
        )


def _numbers(version: str) -> tuple[int, ...]:
    """(1, 17, 8) of `1.17.8`; an odd version counts as safe."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts) else _SAFE


def token_readable(facts: NodeFacts) -> Iterator[Found]:
    settings = known(facts.settings)
    if settings and settings.token_mode and not settings.token_mode.endswith("00"):
        yield Found(
            f"stat: {settings.token_mode} {settings.token_file}",
            title=f"Hugging Face token has mode {settings.token_mode}",
            fix=f"on {facts.node}: chmod 600 {settings.token_file}",
        )


def host_keys_unchecked(facts: NodeFacts) -> Iterator[Found]:
    settings = known(facts.settings)
    for path in settings.lax_ssh if settings else ():
        yield Found(f"{path}: StrictHostKeyChecking no", fix=f"in {path}: StrictHostKeyChecking accept-new")


_SSHD = (2222, 2233)


def container_sshd(facts: NodeFacts, listener: Listener) -> Iterator[Found]:
    if listener.port in _SSHD and listener.process in ("", "sshd"):
        yield Found(
            said(listener),
            title=f"SSH server open to the network on port {listener.port}",
            fix=f"see whose it is: docker ps; sudo ss -ltnp 'sport = :{listener.port}'; end what is not needed",
        )


CHECKS = (
    Check("SEC001", WARN, "inference endpoint open to the network", per_node(exposed, engine_open)).about(
        detects="a socket of a program with an engine's name, or on the usual ports 8000, 8080, 30000 and 1234 "
        "(unless another program's name is told), that listens beyond loopback and the fabric, and is no "
        "rank of ours. Beside a rank of ours only the usual ports count: engines open others, on all "
        "addresses, to meet their peers.",
        why="these servers ask for no key unless they were given one: anybody who reaches the port reads prompts, "
        "spends the GPU and, with some of them, loads code. Whether it asks for a key cannot be told from "
        "outside.",
        cause="it was started on all addresses, and asks for a key only if it was given one",
        fix="bind it to 127.0.0.1 (--host 127.0.0.1, or -p 127.0.0.1:PORT:PORT), or give it an API key",
        see=("https://docs.vllm.ai/en/latest/usage/security/",),
    ),
    Check("SEC002", WARN, "Ollama open to the network", per_node(exposed, ollama_open)).about(
        detects="a socket of ollama, or on port 11434, beyond loopback and the fabric.",
        why="Ollama knows no keys at all: anybody who reaches it runs, pulls and deletes models.",
        cause="OLLAMA_HOST was set to all addresses; Ollama has no keys",
        fix="sudo systemctl edit ollama   # [Service] Environment=OLLAMA_HOST=127.0.0.1:11434; then restart it",
        see=("https://docs.ollama.com/faq",),
    ),
    Check("SEC003", WARN, "Ray open to the network", per_node(exposed, ray_open)).about(
        detects="Ray's dashboard (8265), its store (6379) or client port (10001) beyond loopback and the fabric, "
        "where no rank of ours runs on Ray.",
        why="Ray runs what it is sent and asks nobody: the dashboard's job interface was used to take over "
        "thousands of clusters (CVE-2023-48022).",
        cause="ray start was given no address of its own; Ray has no keys",
        fix="ray stop; then ray start --node-ip-address FABRIC_ADDRESS --dashboard-host 127.0.0.1",
        see=("https://docs.ray.io/en/latest/ray-security/",),
    ),
    Check("SEC004", WARN, "llama.cpp RPC worker open to the network", per_node(exposed, llama_rpc_open)).about(
        detects="a socket of rpc-server, or on port 50052, beyond loopback and the fabric, where no llama.cpp rank "
        "of ours runs.",
        why="the protocol has no keys and writes into the worker's memory; its own authors warn against running it "
        "on an open network.",
        cause="it was started with -H 0.0.0.0; the protocol has no keys",
        fix="start it with -H FABRIC_ADDRESS, the address of the link between the nodes",
        see=("https://github.com/ggml-org/llama.cpp",),
    ),
    Check("SEC005", WARN, "notebook server open to the network", per_node(exposed, notebook_open)).about(
        detects="a socket of jupyter beyond loopback and the fabric, or on port 8888 without a program's name.",
        why="anybody who gets in runs programs as its user; images for experiments often start it without a token.",
        cause="it was started on all addresses; whether it requires a token cannot be determined from outside",
        fix="jupyter lab --ip 127.0.0.1, and from the laptop: ssh -L 8888:127.0.0.1:8888 NODE",
        see=("https://jupyter-server.readthedocs.io/en/latest/operators/security.html",),
    ),
    Check("SEC006", WARN, "Docker daemon open to the network", per_node(exposed, docker_open)).about(
        detects="a socket on port 2375 beyond loopback.",
        why="anybody who reaches it is root on the node. 2376 is the same with certificates, and is not blamed.",
        cause="dockerd was given -H tcp://0.0.0.0:2375",
        fix="take it out of /etc/docker/daemon.json or the unit; from elsewhere: DOCKER_HOST=ssh://NODE docker ps",
        see=("https://docs.docker.com/engine/security/protect-access/",),
    ),
    Check("SEC007", WARN, "vulnerable NVIDIA container toolkit", per_node(unplanned, toolkit_vulnerable)).about(
        detects="nvidia-ctk older than 1.17.8.",
        why="in those a container image can run code as root on the host through the toolkit's hooks "
        "(CVE-2025-23266), or see the host's file system (CVE-2024-0132).",
        cause="CVE-2025-23266: the toolkit's hooks trust the image's environment",
        fix="on {node}: sudo apt update && sudo apt install --only-upgrade nvidia-container-toolkit",
        see=("https://nvd.nist.gov/vuln/detail/CVE-2025-23266",),
    ),
    Check("SEC008", INFO, "Hugging Face token readable by others", per_node(unplanned, token_readable)).about(
        detects="the Hugging Face token file of the ssh user gives group or others any right.",
        why="anybody who has an account on the node, or a container with the home mounted, may use it.",
        cause="it was written with the usual umask",
        fix="mode 600; a new token if others had access",
    ),
    Check("SEC009", INFO, "SSH host key checking is disabled", per_node(unplanned, host_keys_unchecked)).about(
        detects="`StrictHostKeyChecking no` in the user's or the system's ssh_config.",
        why="anybody who answers at the peer's address is taken for the peer, and gets weights, tokens and a shell. "
        "Set-up guides for MPI and copies between nodes recommend it; sparkwright does not need it.",
        cause="a guide for MPI or for copies between nodes asked for it",
        fix="take it out; `accept-new` trusts a new host once and notices a change",
        see=("https://man.openbsd.org/ssh_config#StrictHostKeyChecking",),
    ),
    Check("SEC010", INFO, "second SSH server open to the network", per_node(exposed, container_sshd)).about(
        detects="a program sshd on port 2222 or 2233, beyond loopback and the fabric.",
        why="TensorRT-LLM's multi-node guides start one in a container on the host's network, often with root "
        "and with the key of an example; it stays after the run.",
        cause="multi-node containers start one of their own, which stays after the run",
        fix="end the container, or bind the server to the fabric address",
        see=("https://github.com/NVIDIA/dgx-spark-playbooks",),
    ),
)
