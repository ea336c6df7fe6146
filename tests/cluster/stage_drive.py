"""The real `sparkwright` command against the testbed, and models to be staged on its nodes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from patience import CALL, PATIENCE
from testbed import ContainerNode
from testbed.settings import FABRIC_DEVICE, MGMT_DEVICE

MODEL_ID = "acme/tiny"
HUB = "/home/spark/.cache/huggingface/hub"
ROOT = f"{HUB}/models--acme--tiny"
FOLDER = "/home/spark/models/tiny"
REVISION = "0123456789abcdef0123456789abcdef01234567"
MIB = 1 << 20
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 512,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
VENV = "/opt/sparkwright"
TWIN: dict[str, Any] = {
    "title": "the twin with files",
    "model": {"id": MODEL_ID, "served_name": "tiny", "simulated": True},
    "engine": {"name": "simulator", "version": "0.21.0", "runtime": "process", "venv": VENV},
    "nodes": 2,
    "parallelism": {"tp": 2},
    "serving": {"context": 2048, "sequences": 4, "batched_tokens": 2048, "memory_fraction": 0.5},
    "env": {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.02"},
}
# What a real vLLM recipe asks of staging, with the twin as its program: nothing here is taken for simulated.
REAL: dict[str, Any] = {
    **TWIN,
    "title": "real weights",
    "model": {"id": MODEL_ID, "served_name": "tiny"},
    "engine": {
        "name": "vllm",
        "version": "0.21.0",
        "runtime": "process",
        "entrypoint": [f"{VENV}/bin/python", "-m", "sparkwright.simulator"],
    },
}


@dataclass(frozen=True, slots=True)
class StageResult:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    def is_one_message(self, code: int, *words: str) -> None:
        """The exit code, every word of the message, and no traceback."""
        assert self.code == code, self.text
        assert "Traceback" not in self.text
        assert [word for word in words if word not in self.text] == [], self.text


@dataclass
class StageDriver:
    """Runs the command in an empty folder with an empty home."""

    folder: Path
    ssh_config: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: Any) -> str:
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        (self.folder / name).write_text(text)
        return f"./{name}"

    def cluster(self, *nodes: Any, **more: Any) -> None:
        self.write("cluster.yaml", {"name": "testbed", "nodes": list(nodes or ("spark-1", "spark-2")), **more})

    def environment(self) -> dict[str, str]:
        dropped = ("SSH_AUTH_SOCK", "HF_TOKEN", "SPARKWRIGHT_CLUSTER", "SPARKWRIGHT_SSH_CONFIG")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return kept | {"HOME": str(self.folder), "NO_COLOR": "1"} | self.env

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """`up` leaves the ranks alone: what comes after it is the test's own doing."""
        argv = [str(Path(sys.executable).with_name("sparkwright")), *words, "--ssh-config", str(self.ssh_config)]
        argv += ["--no-supervise"] if words[0] == "up" else []
        if not (self.folder / "cluster.yaml").exists():
            self.cluster()
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, cwd=self.folder, env=self.environment(), stdout=pipe, stderr=pipe, text=True)

    @contextmanager
    def running(self, *words: str) -> "Iterator[subprocess.Popen[str]]":
        """Ended at the end, whatever the test did."""
        process = self.start(*words)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            if process.stdout is not None and not process.stdout.closed:
                process.communicate()

    def run(self, *words: str, timeout: float = CALL) -> StageResult:
        return wait_for_result(self.start(*words), timeout)

    def up(self, recipe: Mapping[str, Any], *words: str, detach: bool = True) -> StageResult:
        return self.run("up", self.write("tiny.yaml", dict(recipe)), *(["--detach"] if detach else []), *words)


def wait_for_result(process: "subprocess.Popen[str]", timeout: float = CALL) -> StageResult:
    with process:  # closes its pipes, also after the time is over
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return StageResult(process.returncode, out, err)


def interrupt(process: "subprocess.Popen[str]") -> StageResult:
    """Ctrl-C."""
    process.send_signal(signal.SIGINT)
    return wait_for_result(process)


# Models


def put_hub_model(node: ContainerNode, shards: int = 3, size: int = 4 * MIB, revision: str = REVISION) -> None:
    """A hub cache entry as `hf download` leaves it: blobs, a snapshot of links, refs/main without newline. The same

    on every node.
    """
    names = shard_names(shards)
    small = {"config.json": json.dumps(CONFIG), "model.safetensors.index.json": json.dumps(weight_index(names))}
    lines = [f"mkdir -p {ROOT}/blobs {ROOT}/refs {ROOT}/snapshots/{revision}", f"cd {ROOT}"]
    lines.append(f"printf %s {revision} > refs/main")
    for name in (*names, *small):
        content = f"printf %s '{small[name]}'" if name in small else shard_command(f"yes {name}", size)
        lines.append(f"{content} > new; h=$(sha256sum new | cut -c1-64); mv new blobs/$h")
        lines.append(f"ln -s ../../blobs/$h snapshots/{revision}/{name}")
    node.sh("set -e\n" + "\n".join(lines), user="spark")


def put_folder(node: ContainerNode, path: str = FOLDER, shards: int = 3, size: int = 4 * MIB) -> None:
    names = shard_names(shards)
    lines = [f"mkdir -p {path} && cd {path}", f"{shard_command('cat /dev/urandom', size)} > {names[0]}"]
    lines += [f"cp {names[0]} {name}" for name in names[1:]]
    lines += [f"printf %s '{json.dumps(CONFIG)}' > config.json"]
    lines += [f"printf %s '{json.dumps(weight_index(names))}' > model.safetensors.index.json"]
    node.sh("set -e\n" + "\n".join(lines), user="spark")


def shard_command(source: str, size: int) -> str:
    """A command that writes a safetensors file of so many bytes: a true header, then what the source gives."""
    head = json.dumps({"weight": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
    rest = size - 8 - 128  # the header is padded, as its format allows
    head = head.replace(str(size), str(rest)).ljust(128)
    return f"{{ printf '\\200\\0\\0\\0\\0\\0\\0\\0%s' '{head}'; {source} | head -c {rest}; }}"


def shard_names(count: int) -> list[str]:
    return [f"model-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]


def weight_index(names: Sequence[str]) -> dict[str, Any]:
    return {"metadata": {}, "weight_map": {f"layers.{n}.weight": name for n, name in enumerate(names)}}


def tree_checksums(node: ContainerNode, path: str) -> list[str]:
    """Every file with its checksum, every link with its target; an empty list where nothing is."""
    script = (
        f"cd {path} 2>/dev/null || exit 0; find . -type f -exec sha256sum {{}} +; find . -type l -printf '%p>%l\\n'"
    )
    return sorted(node.sh(script, timeout=120).splitlines())


def everything(node: ContainerNode) -> list[str]:
    """All that a user of the node could see changed: his files, and what the test bed calls leftovers."""
    files = node.sh("cd /home/spark && find . ! -name audit.log -printf '%p %l %s\\n' | sort").splitlines()
    # ssh's own notes, and our state folder with its audit log, are no traces of a launch
    own = ("./.local", "./.ssh")
    return [line for line in files if not line.startswith(own) and line.split()[0] != "."] + node.leftovers()


def cached_bytes(node: ContainerNode, path: str) -> int:
    """Bytes of the files below that are in the page cache."""
    script = f"find -L {path} -type f -size +100k -exec fincore --bytes --noheadings --output RES {{}} +"
    return sum(int(line) for line in node.sh(script).split())


def received(node: ContainerNode) -> tuple[int, int]:
    """Bytes that came in over the fabric and over the management network."""
    counters = (f"/sys/class/net/{device}/statistics/rx_bytes" for device in (FABRIC_DEVICE, MGMT_DEVICE))
    fabric, mgmt = node.sh(f"cat {' '.join(counters)}").split()
    return int(fabric), int(mgmt)


def slow_fabric(node: ContainerNode, rate: str) -> None:
    """Limits what the node sends over the fabric until `restore_fabric`."""
    node.exec(
        ["tc", "qdisc", "replace", "dev", FABRIC_DEVICE, *f"root tbf rate {rate} burst 256kb latency 50ms".split()]
    )


def restore_fabric(node: ContainerNode) -> None:
    node.exec(["tc", "qdisc", "del", "dev", FABRIC_DEVICE, "root"], check=False)


def wait_for(node: ContainerNode, script: str, seconds: float = PATIENCE) -> None:
    """Waits until the script succeeds on the node."""
    looks = f"i=0; until {script}; do i=$((i+1)); [ $i -lt {int(seconds * 50)} ] || exit 1; sleep 0.02; done"
    node.sh(looks, timeout=2 * seconds)
