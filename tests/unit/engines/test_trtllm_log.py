"""The output of trtllm-serve, mpirun and our launcher, understood. Lines in the form of published logs (1.0 to 1.3)."""

import pytest

from sparkwright.domain.deployment import Phase
from sparkwright.engines.dialect import dialect
from sparkwright.facts.engine_log import read_log
from unit.for_each import for_each

AT = "[12/20/2025-04:21:10] [TRT-LLM]"
HEAD = f"""
mpi: daemon starts on 192.168.100.11
mpi_rank: 0
\x1b[33mrank0 run mgmn leader node with mpi_world_size: 2 ...\x1b[0m
[TensorRT-LLM] TensorRT-LLM version: 1.3.0rc13
{AT} [I] Using LLM with PyTorch backend
{AT} [RANK 0] [I] Prefetching 133.00GB checkpoint files.
Loading safetensors weights in parallel: 100%|██████████| 15/15 [00:00<00:00, 81.92it/s]
Loading weights:  50%|█████     | 400/801 [00:46<00:00, 17.29it/s]
Model init total -- 49.14s
[TensorRT-LLM][ERROR] CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED not supported on GPU0.
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 2.25 GiB for max tokens in paged KV cache (262112).
{AT} [RANK 0] [I] max_seq_len=8224, max_num_requests=64, max_num_tokens=8192, max_batch_size=64
{AT} [RANK 0] [I] [Autotuner] Autotuning process starts ...
{AT} [RANK 0] [I] Creating CUDA graph instances for 11 batch sizes.
{AT} [RANK 0] [I] Run generation-only CUDA graph warmup for batch size=64, draft_len=0
{AT} [RANK 0] [I] Setting PyTorch memory fraction to 0.2 (39.7 GiB)
INFO:     Started server process [1]
INFO:     Application startup complete.
""".strip().splitlines()


def test_a_start_passes_its_phases_and_leaves_its_figures() -> None:
    """The phases run from the daemon on the other node to the answer, in order, with the engine's report of its
    memory."""
    phases = [event.phase for line in HEAD if (event := dialect("trtllm").read(line)) and not event.alive]
    assert list(dict.fromkeys(phases)) == [
        *(Phase.RENDEZVOUS, Phase.START, Phase.LOAD, Phase.WARMUP, Phase.GRAPHS, Phase.SERVER),
    ]
    told = read_log(HEAD, dialect("trtllm").read)
    assert told.ready_after is not None
    assert not told.root
    facts = dict(told.facts)
    assert {k: facts[k] for k in ("version", "world", "kv_gib", "kv_tokens", "context")} == {
        "version": "1.3.0rc13",
        "world": "2",
        "kv_gib": "2.25",
        "kv_tokens": "262112",
        "context": "8224",
    }


def test_a_worker_that_has_joined_holds_nobody_up() -> None:
    """Its ranks speak in rank 0's log: were it still at the rendezvous, a slow load would look stuck."""
    joined = dialect("trtllm").read("mpi: agent joined: 192.168.100.10 starts orted")
    assert joined is not None
    assert (joined.phase, joined.ready) == (Phase.SERVER, False)


@for_each(
    "line",
    [
        "mpi: agent on 192.168.100.11: refused: it does not know the key of this launch",
        "mpi: agent on 192.168.100.11 is gone: its rank has ended",
        "mpi: rank on 192.168.100.11 cannot be reached on port 25000 after 300 s: [Errno 111] Connection refused",
        "mpi: agent: no head came within 300 s; see the log of rank 0",
        "mpi: agent refused 192.168.100.10: it does not know the key of this launch",
        "ORTE was unable to reliably start one or more daemons.",
        "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
        "mpirun noticed that process rank 1 with PID 0 on node 192.168.100.11 exited on signal 9 (Killed).",
        "Rank0 Task exit code: 1",
        f"{AT} [RANK 1] [E] Failed to initialize executor on rank 1: CUDA out of memory",
        "RuntimeError: Executor worker returned error",
        "Error: No such option: --max_model_len",
    ],
)
def test_what_ends_a_start_is_an_error(line: str) -> None:
    """Each of these is the cause that the user must see first."""
    event = dialect("trtllm").read(line)
    assert event is not None
    assert event.error


@pytest.mark.parametrize("line", ["Rank0 Task exit code: 0", f"{AT} [W] Attention workspace size", "+ set -ex", ""])
def test_what_is_harmless_reports_nothing(line: str) -> None:
    """A warning, a clean end and the launcher's own trace are no errors."""
    event = dialect("trtllm").read(line)
    assert event is None or not event.error
