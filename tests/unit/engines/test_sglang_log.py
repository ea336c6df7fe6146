"""SGLang's lines: put together from the formats in its sources (0.5.10 and 0.5.23), and recorded ones of 0.5.12."""

from pathlib import Path

import pytest

from sparkwright.domain.deployment import Phase
from sparkwright.engines.catalog import engine
from sparkwright.facts.engine_log import read_log
from unit.for_each import for_each

READ = engine("sglang").read
RECORDED = Path(__file__).parents[2] / "data/captures/sglang"
AT = "[2026-05-12 10:11:1{} TP0] "
GOOD = (
    "[2026-05-12 10:11:10] server_args=ServerArgs(model_path='/models/m', tp_size=2)",
    AT.format(1) + "Init torch distributed begin.",
    AT.format(2) + "Init torch distributed ends. elapsed=1.02 s, mem usage=0.31 GB",
    AT.format(3) + "Load weight begin. avail mem=113.20 GB",
    "Loading safetensors checkpoint shards:  50% Completed | 20/40 [00:40<00:40,  2.00s/it]",
    AT.format(4) + "Load weight end. elapsed=80.10 s, type=MiniMaxM2, avail mem=50.10 GB, mem usage=62.76 GB.",
    AT.format(5) + "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 814848, K size: 24.09 GB, V size: 24.09 GB",
    AT.format(6) + "Capture target decode cuda graph begin. backend=full, num_tokens_per_req=1, avail mem=3.10 GB",
    "Capturing batches (bs=24 avail_mem=2.80 GB):  50%|█████     | 18/36 [00:09<00:09,  2.00it/s]",
    AT.format(7) + "Capture target decode cuda graph end. bs=[1, 2], elapsed=9.10 s, mem usage=0.50 GB, avail mem=2.",
    AT.format(8) + "max_total_num_tokens=814848, chunked_prefill_size=2048, max_prefill_tokens=16384, "
    "max_running_requests=8, context_len=196608, available_gpu_mem=2.10 GB",
    "[2026-05-12 10:11:19] INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
    "[2026-05-12 10:11:19] The server is fired up and ready to roll!",
)


def test_a_good_start_passes_all_phases_and_is_ready() -> None:
    """Phases in order with their figures, ready with the line that follows the warm-up request."""
    told = read_log(GOOD, READ)
    order = [Phase.START, Phase.RENDEZVOUS, Phase.LOAD, Phase.WARMUP, Phase.GRAPHS, Phase.SERVER]
    assert [phase for phase, _ in told.phases] == order
    assert told.ready_after == 9
    assert dict(told.facts) == {
        "weights_gib": "62.76", "load_seconds": "80.10", "kv_gib": "48.18", "kv_tokens": "814848",
        "graphs_gib": "0.50", "max_concurrency": "8", "context": "196608", "url": "http://127.0.0.1:8000",
    }  # fmt: skip


def test_the_rendezvous_of_0_5_23_is_understood() -> None:
    """Renamed in srt/distributed/bootstrap.py: a rank on a wrong interface waits at the rendezvous, not at start."""
    renamed = [line.replace("Init torch distributed", "Init parallel") for line in GOOD]
    newer = [line.replace(", mem usage=0.31 GB", "") for line in renamed]
    assert newer[1:3] == [AT.format(1) + "Init parallel begin.", AT.format(2) + "Init parallel ends. elapsed=1.02 s"]
    assert read_log(newer, READ).phases == read_log(GOOD, READ).phases


def test_pools_and_draft_models_add_up() -> None:
    """Weights, caches and graphs of target and draft are one rank's memory; a reservation of addresses is none."""
    more = (
        AT.format(4) + "Load weight end. elapsed=2.00 s, type=MTP, avail mem=48.10 GB, mem usage=1.24 GB.",
        AT.format(5) + "Mamba Cache is allocated. max_mamba_cache_size: 8, conv_state size: 0.10GB, "
        "ssm_state size: 2.00GB intermediate_ssm_state_cache size: 0.50GB intermediate_conv_window_cache size: 0.02GB ",
        AT.format(5) + "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900000, KV size: 60.00 GB",
        AT.format(6) + "Post-capture KV sizing: draft KV cache allocated. dtype: x, #tokens: 7, KV size: 0.20 GB",
        AT.format(7) + "Capture draft cuda graph end. Time elapsed: 1 s. mem usage=0.25 GB. avail mem=2.10 GB.",
    )
    facts = dict(read_log((*GOOD[:10], *more), READ).facts)
    assert (facts["weights_gib"], facts["kv_gib"], facts["graphs_gib"]) == ("64.00", "51.00", "0.75")


def test_ranks_that_share_a_log_are_not_added_up() -> None:
    """Two ranks of one node report the same of themselves: it is one rank's figure that is expected."""
    second = tuple(line.replace(" TP0]", " TP1]") for line in GOOD)
    assert dict(read_log((*GOOD, *second[1:]), READ).facts)["weights_gib"] == "62.76"


def test_a_restart_begins_again() -> None:
    """A container that Docker restarted continues with its log: the first start's figures are history."""
    assert dict(read_log((*GOOD, *GOOD), READ).facts)["weights_gib"] == "62.76"


@pytest.mark.parametrize(
    ("line", "phase", "done", "total"),
    [(GOOD[4], Phase.LOAD, 20, 40), (GOOD[8], Phase.GRAPHS, 18, 36)],
)
def test_bars_show_how_far_it_is(line: str, phase: Phase, done: float, total: float) -> None:
    """A capture at 0 of 36 can be distinguished from one at 18: what is still is a deadlock (report 001)."""
    event = READ(line)
    assert event
    assert (event.phase, event.done, event.total) == (phase, done, total)


def test_the_old_wording_of_a_capture_is_understood() -> None:
    """0.5.10 reports `Time elapsed: 9.10 s.` where 0.5.23 reports `elapsed=9.10 s`."""
    event = READ(AT.format(1) + "Capture cuda graph end. Time elapsed: 9.10 s. mem usage=0.50 GB. avail mem=2.10 GB.")
    assert event
    assert (event.phase, event.text, event.facts) == (Phase.GRAPHS, "captured in 9.10 s", (("graphs_gib+", "0.50"),))


@for_each(
    "line",
    [
        AT.format(1) + "Scheduler hit an exception: Traceback (most recent call last):",
        "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. a=1",
        "RuntimeError: Unsupported architecture for sparse decode fwd",
        "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.",
        AT.format(1) + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        "sglang serve: error: unrecognized arguments: --num-nodes 2",
        "launch_server.py: error: argument --kv-cache-dtype: invalid choice: 'fp8'",
    ],
)
def test_what_ends_a_start_is_an_error(line: str) -> None:
    """The failures of the reports and of captures are reported as such."""
    event = READ(line)
    assert event
    assert event.error


def test_the_exception_of_a_scheduler_is_the_cause() -> None:
    """Its headline and the parent's farewell only follow from it."""
    log = (
        AT.format(1) + "Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/x/scheduler.py", line 1, in run',
        "RuntimeError: The memory capacity is unbalanced.",
        "[2026-05-12 10:11:12] Received sigquit from a child process. It usually means the child failed.",
    )
    assert read_log(log, READ).root == "RuntimeError: The memory capacity is unbalanced."


def test_a_recorded_start_passes_all_phases_and_is_ready() -> None:
    """0.5.12 on an H200: phases in order, its figures, ready with its own line, no line taken for an error."""
    found = read_log(tuple((RECORDED / "start.log").read_text().splitlines()), READ)
    order = [Phase.RENDEZVOUS, Phase.LOAD, Phase.WARMUP, Phase.GRAPHS, Phase.SERVER]
    assert ([phase for phase, _ in found.phases], found.root) == (order, "")
    assert found.ready_after is not None
    facts = dict(found.facts)
    assert (facts["weights_gib"], facts["kv_gib"], facts["kv_tokens"]) == ("0.07", "41.62", "10909771")


def test_the_end_of_a_broken_group_is_understood() -> None:
    """The head's last line only follows from Gloo's: the reset of the killed worker's connection is the root."""
    found = read_log(tuple((RECORDED / "lost.log").read_text().splitlines()), READ)
    assert "Connection reset by peer" in found.root
    event = READ("[2026-11-22 14:23:56] SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    assert event and event.error


def test_a_worker_that_cannot_open_the_head_s_address_has_not_failed() -> None:
    """Every rank opens the same --host: the line is harmless on a worker."""
    found = read_log(tuple((RECORDED / "worker.log").read_text().splitlines()), READ)
    assert found.root == ""


def test_a_working_server_is_not_progress() -> None:
    """Batches show that a rank lives, nothing about its start; a refused request is no failure."""
    event = READ(AT.format(1) + "Decode batch, #running-req: 1, #token: 33, token usage: 0.00")
    assert event
    assert event.alive
    assert READ("fastapi.exceptions.RequestValidationError: 1 validation error") is None
