"""The judgement over complaints: who prints them, and whether the program went on."""

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.domain.diagnosis import Diagnosis

RECORDS = "".join(f"2026-11-29 10:0{n}:00 INFO  request {n} done\n" for n in range(5))
COMPLAINT = "2026-11-29 10:04:30 ERROR user 7: cannot open /data/7: No such file or directory\n"
PLAIN = "cannot open /data/7: No such file or directory\n"
UNIT_END = "Nov 29 10:00:01 spark systemd[1]: wg.service: Failed with result 'exit-code'.\n"
WORK = "reading 1\nreading 2\nreading 3\nwritten\n"


def examined(text: str) -> Diagnosis:
    return examine([("log", [text.encode()])], 2026, {})


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (RECORDS + COMPLAINT + RECORDS, False),
        (RECORDS + COMPLAINT, False),
        (RECORDS + COMPLAINT + "app.service: Main process exited, code=exited, status=1/FAILURE\n", True),
        ("Nov 29 10:00:00 spark wg[7]: Configuration parsing error\n" + UNIT_END, True),
        ("Nov 29 10:00:00 spark wg[7]: Configuration parsing error\n" + UNIT_END + RECORDS, False),
        (
            "Nov 29 10:00:00 spark kernel: nvidia: module verification failed: signature and/or required key missing\n",
            False,
        ),
        ("init: KV cache shifting is not supported for this context, disabling KV cache shifting\n", False),
        ("load_model: cache_reuse is not supported by this context, it will be disabled\n", False),
        ("load_model: cache_reuse is not supported by this context\n", True),
        ("N: Download is performed unsandboxed as root: Permission denied\n", False),
        (
            "Nov 29 10:00:00 spark sshd[7]: error: kex_exchange_identification: Connection closed by remote host\n",
            False,
        ),
        ("kex_exchange_identification: Connection closed by remote host\n", True),
        (WORK + f"error: {PLAIN}", True),
        (
            "ValueError: none of these could be made: \n(1) a file, \n(2) a slow one or \n(3) a fast one \nof it.\n",
            True,
        ),
        (WORK + f"error: {PLAIN}" + WORK, False),
        (WORK + f"error: {PLAIN}" + WORK + "make: *** [Makefile:7: all] Error 2\n", True),
        (WORK + f"error: {PLAIN}" + "usage: tool [-h] FILE\n  -h  show this\n  FILE  what to read\n", True),
        (WORK + "OSError: [Errno 28] No space left on device\n", True),
        (WORK + "OSError: [Errno 28] No space left on device\n" + WORK, False),
        ("[    1.000001] usb 1-1: device descriptor read/64, error -71\n", False),
        ("[ 4000.000001] Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB\n", True),
        ("[2026-11-29 10:00:00 TP0] RuntimeError: no room\n" + WORK, True),
        ("done: 12 passed, 0 failed, no errors\n", False),
        ("2026-11-29  0:02:37 66 [Warning] Aborted connection 66 to db: 'app' (Got an error reading packets)\n", False),
        (f"{WORK}Aborted\n", True),
        ("[2026-11-29 10:00:00,290 I 12 34] a.cc:2: state: DEAD, death context type=ActorDiedError\n", False),
        ("[2026-11-29 10:00:00,472 W 12 34] rpc_client.h:1: Failed to connect to GCS at address 10.9.0.1:1\n", True),
        (f"[2026-11-29 10:00:00 TP0] RuntimeError: no room\n{WORK}PASS: {{'requests': 2}}\n", False),
        (f"[2026-11-29 10:00:00 TP0] RuntimeError: no room\n{WORK}PASSED tests/test_a.py::test_b\n", True),
    ],
)
def test_who_prints_a_complaint_and_what_follows_decide_whether_it_is_a_failure(text: str, failed: bool) -> None:
    """Guards the table of causes/judgement.py: services that report an event, programs that stop, stated ends."""
    assert examined(text).failure is failed


@pytest.mark.parametrize(("used", "failed"), [("15136MiB", False), ("120000MiB", True)])
def test_a_table_fails_only_if_it_states_something_bad(used: str, failed: bool) -> None:
    """Guards a GPU that works for its server, and one whose memory is full."""
    table = (
        "| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0 |\n"
        f"| N/A   38C    P0   10W /  N/A |  {used} /  122880MiB |      0%   Default |\n"
        f"|    0   N/A  N/A          4711      C   VLLM::EngineCore                      {used} |\n"
    )
    assert examined(table).failure is failed


def test_a_cause_of_a_program_that_went_on_is_a_guess() -> None:
    """Guards against blame for what a program survived."""
    stopped, went_on = (examined(f"{WORK}OSError: [Errno 28] No space left on device\n{more}") for more in ("", WORK))
    assert stopped.causes[0].confidence >= 0.5 > went_on.causes[0].confidence
    assert stopped.causes[0].key == went_on.causes[0].key == "disk-full"


@pytest.mark.parametrize(
    "line",
    [
        "- Scheduling pending placement group count: 0",
        "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'",
        "[2026-03-27 09:31:24 TP1] Ignore import error when loading sglang.srt.models.glm_ocr: No module named "
        "'transformers.models.glm_ocr'",
        "[2026-03-27 09:31:24 TP0] Ignore import error when loading sglang.srt.models.glmasr: cannot import name "
        "'GlmAsrConfig' from 'transformers' (/opt/venv/lib/python3.12/site-packages/transformers/__init__.py)",
    ],
)
def test_a_count_of_nothing_and_a_way_taken_instead_blame_nothing(line: str) -> None:
    """Guards a counter that is zero, a notice that tells what is used instead, and models that SGLang leaves out."""
    found = examined(f"[2026-11-29 10:00:00,000 I 12 34] a.cc:1: begins\n{line}\n/lib/site-packages/torch/a.py:1: x\n")
    assert not found.failure
    assert not [cause.key for cause in found.causes if cause.confidence >= 0.5]


def test_a_group_that_waits_is_still_blamed() -> None:
    """Guards the counter that is not zero."""
    found = examined("- Scheduling pending placement group count: 1\n")
    assert found.causes[0].key == "ray-placement-group-unsatisfiable"


def test_a_warning_beside_a_line_of_progress_is_no_failure() -> None:
    """Guards a sign of two lines of which the one that reports something bad is only a warning."""
    found = examined(
        "(Worker_TP1 pid=7) WARNING 03-10 20:09:32 [compilation.py:9] Op 'x' not present in model, it has no effect\n"
        "(Worker_TP0 pid=6)  Loading safetensors checkpoint shards:   0% Completed | 0/141 [00:00<?, ?it/s]\n"
    )
    assert not found.failure
    assert not [cause.key for cause in found.causes if cause.confidence >= 0.5]
