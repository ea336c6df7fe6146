"""Recipes of the real engines for the test nodes, where their programs are simulated in each engine's dialect."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.drive import NAME, QUICK, CommandDriver
from cluster.stage_drive import FOLDER, put_folder
from functional.tiny_gguf import write_tiny_gguf
from testbed import ContainerNode

ENGINES = ("vllm-ray", "sglang", "trtllm", "llama-cpp", "tensorfold")
VERSIONS = {"vllm-ray": "0.21.0", "sglang": "0.5.12", "trtllm": "1.3.0rc", "llama-cpp": "2026.10.11549",
            "tensorfold": "0.6.6"}  # fmt: skip
# What the process that is the rank has in its command line, for the head and for a worker.
HEADS = {"vllm-ray": "ray_launch.py head", "sglang": "node-rank 0", "trtllm": "mpirun --hostfile",
         "llama-cpp": "simulators llama-server", "tensorfold": "simulators tensorfold"}  # fmt: skip
WORKERS = {"vllm-ray": "ray_launch.py worker", "sglang": "node-rank 1", "trtllm": "mpi_launch.py agent",
           "llama-cpp": "simulators rpc-server", "tensorfold": "simulators tensorfold"}  # fmt: skip
# Names of an engine's own address; each rank must have its node's.
HOST_IP = {"vllm-ray": "VLLM_HOST_IP", "sglang": "SGLANG_HOST_IP"}
GGUF = "/home/spark/models/tiny.gguf"
PARTS = ("reasoning", "reasoning_content", "content")
BODY = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "stream": True}


def put_models(nodes: list[ContainerNode], folder: Path) -> None:
    """Weights where each engine wants them: a folder on both nodes, a GGUF file on the head alone."""
    for node in nodes:
        put_folder(node, size=1 << 16)
    nodes[0].put(GGUF, write_tiny_gguf(folder / "tiny.gguf").read_bytes())


def recipe(drive: CommandDriver, engine: str, runtime: str, env: Mapping[str, str] = QUICK, **changes: Any) -> str:
    llama = engine == "llama-cpp"
    how: dict[str, Any] = {"name": engine, "version": VERSIONS[engine], "runtime": runtime}
    if runtime == "docker":
        how |= {"image": drive.testbed.engine_image, "image_note": "made by the tests"}
    else:
        how |= {"entrypoint": ["/opt/sparkwright/bin/llama-server"]} if llama else {"venv": "/opt/sparkwright"}
    limits = {"context": 2048, "sequences": 4, "batched_tokens": 2048, "coherence": False}
    tree: dict[str, Any] = {
        "name": NAME,
        "title": f"{engine} in a drill",
        "model": {"path": GGUF if llama else FOLDER, "served_name": "tiny"},
        "engine": how,
        "nodes": 2,
        "parallelism": {"pp": 2} if llama else {"tp": 2},
        "serving": limits if llama else {**limits, "memory_fraction": 0.5},
        "env": dict(env),
    }
    path = drive.folder / f"{NAME}.yaml"
    path.write_text(json.dumps(tree | changes))
    return str(path)


def streamed(node: ContainerNode, key: str = "", port: int = 8000) -> str:
    """The text of an answer that a client on the head gets piece by piece."""
    header = f"-H 'Authorization: Bearer {key}'" if key else ""
    where = f"http://127.0.0.1:{port}/v1/chat/completions"
    script = f"curl -sN --max-time 20 {header} {where} -d '{json.dumps(BODY)}'"
    lines = [line.removeprefix("data: ") for line in node.sh(script).splitlines() if line.startswith("data: {")]
    chunks = [json.loads(line) for line in lines]
    assert len(chunks) > 2, chunks
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    return "".join(str(delta.get(part) or "") for delta in deltas for part in PARTS)


def listening(node: ContainerNode) -> set[str]:
    """address:port of every TCP listener."""
    return set(node.sh("ss -Hltn | awk '{print $4}'").split())


def kill_engine(node: ContainerNode, words: str) -> None:
    """SIGKILL to the process whose command line has the words: the engine's, not the shell that leads its session."""
    shell = re.compile(r"^(/bin/)?sh |/leader\.sh ")
    found = [p for p in node.processes() if words in p.command and not shell.search(p.command)]
    assert found, f"no {words!r} on {node.name}"
    node.sh(f"kill -KILL {found[0].pid}")


def variables(container: Mapping[str, Any]) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in container["Config"]["Env"])


@contextmanager
def cut_off(node: ContainerNode, address: str) -> Iterator[None]:
    """Cuts the node off from that address while open, and nobody informs it."""
    rule = f"OUTPUT -d {address} -p tcp --dport 1024:65535 -j DROP"
    node.sh(f"iptables -w -I {rule}")
    try:
        yield
    finally:
        node.sh(f"iptables -w -D {rule}")
