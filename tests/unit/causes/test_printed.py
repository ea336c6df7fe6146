"""Settings, outputs of commands and stack dumps in logs: what they state, and what differs between ranks."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.printed import differences, load_forms, printed, stated
from sparkwright.domain.diagnosis import Diagnosis
from sparkwright.logscan.logline import Excerpt

DATA = Path(__file__).parents[2] / "data"
SHARED = Path(__file__).parents[4] / "shared" / "captures"


def diagnosis_of(*logs: str) -> Diagnosis:
    return examine([(f"rank {n}", [log.encode()]) for n, log in enumerate(logs)], 2026, {})


def facts(text: str, failure: str = "") -> list[str]:
    lines = list(enumerate(text.encode().split(b"\n"), 1))
    return [one.text for one in stated([printed("a.log", lines)], failure)]


def settings(text: str) -> dict[str, str]:
    kept = Excerpt()
    kept.add(enumerate(text.encode().split(b"\n"), 1))
    return {key: value for (_, key), value in printed("a.log", tuple(kept)).settings.items()}


def differ(*logs: str) -> dict[str, Sequence[str]]:
    return {one.what: [value for _, value in one.values] for one in diagnosis_of(*logs).differs}


FREE = """\
               total        used        free      shared  buff/cache   available
Mem:           124Gi       123Gi       310Mi       8.0Mi       1.0Gi       512Mi
Swap:           15Gi       9.4Gi       6.1Gi
"""
SMI = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
| N/A   33C    P0             71W /  700W |   80912MiB /  81559MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|    0   N/A  N/A           51824      C   VLLM::EngineCore                      80900MiB |
+-----------------------------------------------------------------------------------------+
"""
QUERY = "index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA H100, 81000 MiB, 81559 MiB\n"
IBSTAT = """\
CA 'mlx5_0'
\tCA type: MT4129
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
CA 'mlx5_1'
\tCA type: MT4129
\tPort 1:
\t\tState: Initializing
\t\tPhysical state: LinkUp
\t\tRate: 200
"""
SS = "State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n"
INSPECT = """\
        "State": {
            "Status": "exited",
            "OOMKilled": true,
            "Pid": 0,
            "ExitCode": 137,
        },
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ((DATA / "facts/df/full.txt").read_text(), ["df: /srv is 100 % full"]),
        ((DATA / "facts/df/spark.txt").read_text(), []),
        (FREE, ["free: 512Mi of 124Gi memory available, 9.4Gi of 15Gi swap in use"]),
        (
            SMI,
            [
                "nvidia-smi: 80912MiB of 81559MiB GPU memory in use",
                "nvidia-smi: VLLM::EngineCore (pid 51824) has 80900MiB of GPU memory",
            ],
        ),
        (QUERY, ["nvidia-smi --query: 81000 MiB of 81559 MiB GPU memory in use"]),
        (IBSTAT, ["ibstat: link mlx5_1 is Initializing (LinkUp)"]),
        (
            (DATA / "facts/rdma-link/down-with-link-up.txt").read_text(),
            ["rdma link: link roceP2p1s0f0/1 is DOWN (LINK_UP)"],
        ),
        ((DATA / "facts/rdma-link/one-cable.txt").read_text(), []),
        (
            (DATA / "failures-fresh/develop/docker-restarts.log").read_text(),
            ["docker ps: container vllm: Restarting with exit code 1"],
        ),
        (
            INSPECT,
            [
                "docker inspect: the kernel ended the container for want of memory",
                "docker inspect: the container exited with code 137",
            ],
        ),
    ],
)
def test_the_output_of_a_command_states_what_is_bad(text: str, says: list[str]) -> None:
    """Guards each command: what is bad in it, and nothing of a node that is well."""
    assert facts(text) == says


def test_a_port_in_use_counts_only_when_the_failure_names_it() -> None:
    """Each node has ports in use; the one that the engine asked for is the one that matters."""
    listing = SS + (DATA / "facts/ss/spark.txt").read_text().partition("\n")[2]
    assert facts(listing) == []
    assert facts(listing, "OSError: [Errno 98] Address already in use: ('0.0.0.0', 8000)") == [
        "ss: port 8000 is in use by vllm (pid 8112)"
    ]


@pytest.mark.parametrize("command", [["free", "-m"], ["ss", "-ltnp"], ["df", "-P"]])
def test_the_commands_of_this_machine_are_read(command: list[str]) -> None:
    """Guards against a real header or row that no form knows."""
    if not shutil.which(command[0]):
        pytest.skip(f"tool: {command[0]}")
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout.rstrip("\n")
    lines = list(enumerate(text.encode().split(b"\n"), 1))
    assert printed("a.log", lines).rows == {number for number, _ in lines}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("host-disk-full-cp", "df: /srv/models is 100 % full"),
        ("host-disk-full-inodes", "df -i: /srv/cache has 100 % of its inodes in use"),
        ("docker-restarts", "docker ps: container vllm: Restarting with exit code 1"),
    ],
)
def test_a_table_below_other_lines_is_read(name: str, says: str) -> None:
    """Rows are no wrapped rest of the line above, however long that is."""
    found = diagnosis_of((DATA / "failures-fresh" / "develop" / f"{name}.log").read_text())
    assert [one.text for one in found.stated] == [says]


def test_ranks_of_a_recorded_failure_that_differ_are_named() -> None:
    """Real NCCL: one rank waits in the first all-reduce, the other one is already in the second."""
    logs = ((DATA / f"failures-fresh/develop/nccl-sizes-differ.rank{rank}.log").read_text() for rank in (0, 1))
    assert differ(*logs)["collective"] == ["allreduce (seq 1)", "allreduce (seq 2)"]


def test_ranks_that_ended_in_different_phases_are_named() -> None:
    """Once one of them served, the phases show nothing: a worker never serves."""
    load = "(EngineCore pid=1) INFO 11-21 04:10:00 [gpu_model_runner.py:9] Starting to load model /m...\n"
    served = (DATA / "captures_logs" / "m1-head.log").read_text()
    start = "\n".join(served.split("\n")[:12])
    assert differ(f"{load}RuntimeError: the ring is torn\n", start)["phase"] == ["load", "start"]
    assert "phase" not in differ(load, served)


def test_rows_of_a_table_are_no_symptoms() -> None:
    """A container that is called like a failure is none."""
    table = "CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS   PORTS   NAMES\n"
    rows = "".join(f'{n:012x}   a   "fatal error: cannot"   1 s   Up 1 s   failed-{n}\n' for n in range(20))
    assert diagnosis_of(table + rows).explanation is None
    found = diagnosis_of(f"{table}{rows}RuntimeError: the ring is torn\n").explanation
    assert found and found.line.number == 22


DUMP = """\
Thread 0x00007f7ff1a3c6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/opt/venv/lib/tqdm/_monitor.py", line 60 in run

Thread 0x00007f7ff2880b80 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/usr/lib/python3.11/queue.py", line 171 in get
  File "/opt/venv/lib/vllm/default_loader.py", line 301 in load_weights
  File "/opt/venv/lib/vllm/worker.py", line 12 in run
"""
PY_SPY = """\
Process 4385: python -m vllm.entrypoints.cli.main serve
Python v3.12.3 (/usr/bin/python3.12)

Thread 4385 (idle): "MainThread"
    wait (threading.py:355)
    all_reduce (torch/distributed/distributed_c10d.py:2810)
    forward (vllm/model_executor/layers/linear.py:1500)
Thread 4500 (idle): "Thread-1"
    run (tqdm/_monitor.py:60)
"""


def test_ranks_in_different_places_are_named() -> None:
    """One rank loads, the other one waits for it: that is what a hang looks like."""
    other = f"{PY_SPY}RuntimeError: timed out\n"
    assert differ(DUMP, other)["stack"] == [
        "load_weights (default_loader.py:301)",
        "all_reduce (distributed_c10d.py:2810)",
    ]


def test_ranks_in_different_collectives_are_named() -> None:
    """The watchdog's line of one rank, the flight recorder of the other one: its first entry that is not completed."""
    watchdog = (DATA / "captures_logs" / "m1-head.log").read_text()
    recorder = (
        '{"entries": [{"collective_seq_id": 7, "profiling_name": "nccl:all_reduce", "state": "completed"},'
        ' {"collective_seq_id": 8, "profiling_name": "nccl:broadcast", "state": "scheduled"},'
        ' {"collective_seq_id": 9, "profiling_name": "nccl:all_reduce", "state": "scheduled"}]}\n'
    )
    assert differ(watchdog, recorder)["collective"] == ["allgather_base (seq 1242)", "broadcast (seq 8, scheduled)"]


ARGS = "(APIServer pid=1) INFO 11-21 04:09:43 [utils.py:240] non-default args: "


def test_settings_that_differ_between_ranks_are_named() -> None:
    """Guards the answer to unequal ranks; what is a node's own (addresses, ranks) does not count."""
    head = f"{ARGS}{{'model': '/m', 'host': '10.0.0.1', 'node_rank': 0, 'max_model_len': 131072, 'x': ['a', 'b']}}"
    worker = f"{ARGS}{{'model': '/m', 'host': '10.0.0.2', 'node_rank': 1, 'max_model_len': 65536, 'x': ['a', 'b']}}"
    assert differ(head, worker) == {"max_model_len": ["131072", "65536"]}


def test_settings_of_real_engines_are_read() -> None:
    """Guards the forms: a call, a dictionary, a list of pairs, with values that hold commas and brackets."""
    found = settings((DATA / "captures_logs" / "m1-head.log").read_text())
    assert found["served_model_name"] == "['tiny-qwen3']" and found["tensor_parallel_size"] == "2"
    assert found["max_seq_len"] == "16384" and "backend" not in found
    found = settings((DATA / "healthy" / "sglang.log").read_text())
    assert len(found) > 50 and found["load_format"] == "auto"
    found = settings("llm_args=TorchLlmArgs(model='/m', kv_cache_config=KvCacheConfig(dtype='a', x=1), max_seq_len=8)")
    assert found == {"model": "/m", "kv_cache_config": "KvCacheConfig(dtype='a', x=1)", "max_seq_len": "8"}


SECRETS = f"""\
{ARGS}{{'api_key': ['Zq81'], 'max_num_batched_tokens': 8192, 'config': {{'token': 'Zq82'}}, 'url': 'http://a:Zq83@h/'}}
PATH=/usr/bin
HF_TOKEN=Zq84
AWS_SECRET_ACCESS_KEY=Zq85
NCCL_DEBUG=INFO
        "Env": [
            "PATH=/usr/bin",
            "OPENAI_API_KEY=Zq86",
            "WANDB_PASSWORD=Zq87"
        ],
"""


def test_secrets_are_hidden() -> None:
    """Neither the settings nor what differs show one, wherever it is: in a key, a nested value, an address."""
    found = settings(SECRETS)
    assert found["api_key"] == found["HF_TOKEN"] == found["OPENAI_API_KEY"] == "(hidden)"
    assert found["max_num_batched_tokens"] == "8192" and found["NCCL_DEBUG"] == "INFO"
    assert "Zq8" not in str(found)
    assert "Zq" not in str(differ(SECRETS, SECRETS.replace("Zq", "Zqq")))


@pytest.mark.parametrize("folder", [DATA / "healthy", pytest.param(SHARED, marks=pytest.mark.full)])
def test_healthy_logs_state_nothing_bad(folder: Path) -> None:
    """Neither a log of an engine that serves nor two ranks of one show a fact or a difference."""
    logs = {path.name: path.read_text("utf-8", "replace") for path in sorted(folder.rglob("*.log"))}
    if not logs:
        pytest.skip("data: recordings that are not part of the project")
    assert {name: found for name, text in logs.items() if (found := facts(text))} == {}
    for head in (name for name in logs if name.endswith("-head.log") and "m2" in name):
        assert differ(logs[head], logs[head.replace("head", "worker")]) == {}


HOSTILE = {
    "settings": "Args(" + "a=(" * 5000,
    "many settings": "\n".join("Args(" + ", ".join(f"k{m}_{n}={'v' * 300}" for n in range(40)) for m in range(40)),
    "variables": "\n".join(f"PATH_{n}={' ' * 500}x" for n in range(2000)),
    "rows": SMI + "| x |\n" * 5000,
    "disks": (DATA / "facts/df/full.txt").read_text() * 300,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_blocks_are_bounded(name: str) -> None:
    """A log gives at most 400 settings of 200 characters and 20 facts, whatever it has."""
    found = printed("a.log", list(enumerate(HOSTILE[name].encode().split(b"\n"), 1)))
    assert len(found.settings) <= 400 and all(len(value) <= 200 for value in found.settings.values())
    assert len(found.stated) <= 20 and len(differences([found, found], {})) <= 5


def test_an_unknown_key_in_the_data_is_refused(tmp_path: Path) -> None:
    """Guards the file of forms: a misspelt key would be ignored for ever."""
    text = (Path(load_forms.__wrapped__.__code__.co_filename).parent / "mechanisms" / "printed.toml").read_text()
    for wrong in (text.replace("like =", "likes =", 1), text.replace("says =", "said =", 1), f"other = 1\n{text}"):
        (tmp_path / "printed.toml").write_text(wrong)
        with pytest.raises(ValueError, match=r"printed\.toml: .* unknown or missing"):
            load_forms(tmp_path / "printed.toml")
