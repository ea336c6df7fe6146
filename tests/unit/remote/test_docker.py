"""`docker run` of a rank, word for word, kept under tests/data/argv (UPDATE_ARGV=1 rewrites)."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

from sparkwright.domain.command import Command, Secret
from sparkwright.domain.plan import Mount, RankFile, RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.remote import docker
from unit.for_each import for_each

DATA = Path(__file__).parents[2] / "data" / "argv"
SECRETS = "/home/ai/.local/state/sparkwright/deployments/demo/rank0/secrets.env"
HEAD = RankSpec(
    rank=0,
    node="spark-1",
    argv=("serve", "org/model", "--host", "127.0.0.1", "--hf-overrides", '{"a b": 1}'),
    env={"VLLM_HOST_IP": "192.168.100.10", "NCCL_IB_HCA": "rocep1s0f0,roceP2p1s0f0"},
    runtime=Runtime.DOCKER,
    image="sha256:4f5e",
    entrypoint=("vllm",),
    mounts=(
        Mount("/home/ai/.cache/huggingface/hub", "/models/hub", read_only=True),
        Mount("/home/ai/c c", "/cache"),
    ),
    secrets={"VLLM_API_KEY": Secret("k-123")},
    shm_bytes=1024,
    labels={"deployment": "demo", "rank": "0", "spec-hash": "abc"},
)
WORKER = replace(HEAD, rank=1, node="spark-2", secrets={}, argv=("serve", "org/model", "--headless"))
TWIN = replace(WORKER, gpu=False, rdma=False, entrypoint=None, mounts=(), env={})
NAME = docker.container_name("demo", 0)
FILES = replace(WORKER, files=(RankFile("agent.py", "print()"), RankFile("key.yaml", secret=Secret("k-123"))))
CASES = {
    "docker-files": docker.run(FILES, NAME, files_dir="/home/ai/state/rank1/files"),
    "docker-head-secrets": docker.run(HEAD, NAME, SECRETS),
    "docker-worker": docker.run(WORKER, docker.container_name("demo", 1)),
    "docker-worker-no-memlock": docker.run(WORKER, docker.container_name("demo", 1), raise_memlock=False),
    "docker-no-rdma": docker.run(replace(WORKER, rdma=False), NAME),
    "docker-twin": docker.run(TWIN, NAME, raise_memlock=False),
    "docker-no-entrypoint": docker.run(replace(WORKER, entrypoint=(), argv=("/bin/serve", "x")), NAME),
}


def written(command: Command) -> str:
    """One option and its value a line."""
    lines: list[str] = []
    for word in command.argv:
        fresh = not lines or word.startswith("--") or not lines[-1].startswith("--") or " " in lines[-1]
        lines = [*lines, shlex.quote(word)] if fresh else [*lines[:-1], f"{lines[-1]} {shlex.quote(word)}"]
    return "\n".join(lines) + "\n"


@for_each("name", CASES)
def test_docker_run_is_exactly_this(name: str) -> None:
    """The snapshot shows everything that starts a rank: host network and IPC, limits, devices, labels, log limits."""
    file = DATA / f"{name}.txt"
    if os.environ.get("UPDATE_ARGV"):
        file.write_text(written(CASES[name]))
    assert written(CASES[name]) == file.read_text()


@for_each("name", CASES)
def test_every_container_can_be_found_and_stays_as_evidence(name: str) -> None:
    """--init reaps, --restart no leaves the decision to us, no --rm keeps the logs; the call reports that it
    changes."""
    words = CASES[name].argv
    assert words[:4] == ("docker", "run", "--detach", "--init")
    assert "--rm" not in words
    assert words[words.index("--restart") + 1] == "no"
    assert "sparkwright.deployment=demo" in words
    assert CASES[name].changes.startswith("docker run sparkwright-demo-rank")


def test_no_secret_is_in_the_words() -> None:
    """The value is in a 0600 file that the container's first program reads: not in argv, not in `docker inspect`."""
    command = CASES["docker-head-secrets"]
    assert "k-123" not in repr(command)
    assert f"{SECRETS}:{docker.SECRETS_AT}:ro" in command.argv


def test_the_engine_stays_the_main_process_with_secrets() -> None:
    """The shell that reads the secrets is replaced by the engine: a signal of `docker stop` reaches it."""
    words = CASES["docker-head-secrets"].argv
    script = words[words.index("-c") + 1]
    assert script.endswith('exec "$@"')
    assert words[words.index("-c") + 2 :][:2] == (docker.SECRETS_AT, "vllm")


def test_only_folders_that_are_written_are_made() -> None:
    """A weights folder that is missing must be an error, not an empty folder of ours."""
    assert docker.make_folders(HEAD).argv[4:] == ("/home/ai/c c",)


def test_rdma_comes_with_its_devices_and_the_right_to_lock_memory() -> None:
    """NCCL falls back to sockets without a word if /dev/infiniband is missing."""
    with_rdma, without = CASES["docker-worker"].argv, CASES["docker-no-rdma"].argv
    assert {"/dev/infiniband", "IPC_LOCK"} <= set(with_rdma)
    assert not {"/dev/infiniband", "IPC_LOCK"} & set(without)
    assert not {"--gpus", "/dev/infiniband"} & set(CASES["docker-twin"].argv)


def test_logs_and_follow_take_all_or_a_tail() -> None:
    """0 means all, as the option of `logs` reports."""
    assert docker.logs("n", 0).argv[4:] == ("n", "all")
    assert docker.logs("n", 7).argv[4:] == ("n", "7")
    assert docker.follow("n").argv[4:] == ("n", "--tail=all", "")
    assert docker.follow("n", 3, "word").argv[4:] == ("n", "--tail=3", "word")


def test_stopping_takes_as_long_as_the_engine_may_need() -> None:
    """The call's own timeout is longer than the grace, or it would be cut off in the middle."""
    assert docker.stop(["a", "b"], 30).timeout > 30
    assert docker.remove(["a", "b"], 30).timeout > 30
    assert docker.remove(["a"], 30).argv[4:] == ("a",)
