"""Whole logs: healthy ones give nothing, failed ones their cause, several ranks one answer."""

from pathlib import Path

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.cause import LogCause, book_of
from sparkwright.causes.diagnose import Reader, diagnosis, log_book
from sparkwright.causes.ranking import found_by_signs, ranked
from sparkwright.domain.diagnosis import Diagnosis
from sparkwright.domain.finding import Severity
from sparkwright.engines.progress import shifts
from sparkwright.logscan.sign import CERTAIN, LIKELY, Sign
from unit.for_each import for_each

DATA = Path(__file__).resolve().parents[2] / "data"
CAPTURES, HEALTHY = DATA / "captures_logs", DATA / "healthy"
LOGS = sorted(HEALTHY.glob("*.log"))
SHARED = DATA.parents[2] / "shared" / "captures"
GUIDE = DATA.parents[2] / "shared" / "field-guide" / "gb10.md"
WELL = ["b-8b-graphs", "m2-head", "m2-worker", "s-ngram", "v4-1m-s6", "llama-ready"]


def reader(name: str, data: bytes) -> Reader:
    made = Reader(log_book(), name, 2026)
    made.feed(data)
    made.close()
    return made


def diagnosed(*logs: tuple[str, bytes]) -> Diagnosis:
    return diagnosis([reader(name, data) for name, data in logs], {"deployment": "big"})


def capture(*names: str) -> Diagnosis:
    return diagnosed(*((name, (CAPTURES / f"{name}.log").read_bytes()) for name in names))


@for_each("name", WELL)
def test_recordings_of_good_starts_give_nothing(name: str) -> None:
    """Guards against blaming what the real engines print when all is well."""
    assert [cause.key for cause in capture(name).causes] == []


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_healthy_logs_of_other_programs_give_nothing(path: Path) -> None:
    """Guards the same for the simulator's words for other engines, a kernel's boot and a Docker daemon."""
    assert [cause.key for cause in diagnosed((path.name, path.read_bytes())).causes] == []


@pytest.mark.full
@pytest.mark.parametrize("path", [*(CAPTURES / f"{name}.log" for name in WELL), *LOGS], ids=lambda path: path.stem)
def test_what_is_healthy_once_is_healthy_fifty_times(path: Path) -> None:
    """Guards signs that count: a node that was started again and again, a log of weeks."""
    assert [cause.key for cause in diagnosed((path.name, path.read_bytes() * 50)).causes] == []


@pytest.mark.parametrize("marks", [("```", "```"), ("With pinned KV (PUL): ", "\n")], ids=["one node", "pinned KV"])
def test_the_field_guides_boot_logs_give_nothing(marks: tuple[str, str]) -> None:
    """Guards against blaming starts that went well on other people's Sparks."""
    if not GUIDE.is_file():
        pytest.skip("data: ../shared with the field guide is absent")
    section = GUIDE.read_text().partition("\n## C1.")[2]
    log = section.partition(marks[0])[2].partition(marks[1])[0].replace("`", "\n")
    assert "INFO" in log
    assert [cause.key for cause in diagnosed(("boot", log.encode())).causes] == []


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (["f-kv-too-small"], "max-model-len-exceeds-kv-cache"),
        (["f-no-blocks"], "kv-cache-no-memory-left"),
        (["m1-head", "m1-worker"], "peer-rank-died"),
        (["m3-head-alone"], "peer-never-joined"),
        (["m4-head", "m4-worker"], "nccl-socket-ifname-wrong"),
        (["sg-m6-head", "sg-m6-worker"], "peer-rank-died"),  # the worker was killed while it loaded
    ],
)
def test_recordings_of_failures_give_their_cause_first(names: list[str], key: str) -> None:
    """Guards the root cause where the real engine printed it, and where it printed nothing at all."""
    assert capture(*names).causes[0].key == key


FAILED = {
    "sg-f-bad-flag": "cli-flag-renamed-or-removed",
    "sg-f-kv-dtype": "cli-flag-value-unknown",
    "sg-f-mem": "kv-cache-no-memory-left",
    "sg-f-no-model": "model-path-or-repo-not-found",
    "sg-f-tp": "parallel-size-exceeds-gpus",
    "sg-m1-head": "peer-rank-died",
    "sg-m1-worker": "worker-log-ends",
    "sg-m2-head": "worker-stopped-answering",
    "sg-m2-worker": "worker-log-ends",
    "sg-m3-head-alone": "peer-never-joined",
    "sg-m4-head": "nccl-socket-ifname-wrong",
    "sg-m4-worker": "nccl-socket-ifname-wrong",
    "sg-m6-head": "peer-rank-died",
    "sg-m6-worker": "log-ends",
    "f-bad-flag": "cli-flag-typo-or-quoting",
    "f-bad-tp": "parallel-size-exceeds-gpus",
    "f-kv-too-small": "max-model-len-exceeds-kv-cache",
    "f-max-len": "max-model-len-above-model-limit",
    "f-no-blocks": "kv-cache-no-memory-left",
    "f-no-model": "model-path-or-repo-not-found",
    "m1-head": "peer-rank-died",
    "m1-worker": "worker-log-ends",
    "m2-worker": "worker-log-ends",
    "m3-head-alone": "peer-never-joined",
    "m4-head": "nccl-socket-ifname-wrong",
    "m4-worker": "nccl-socket-ifname-wrong",
}


@pytest.mark.full
@for_each("name", list(FAILED))
def test_each_recording_of_a_failure_is_named_or_explained(name: str) -> None:
    """Guards the cause that stops it, named first, and where a log without a reason ends: never no answer."""
    path = next(SHARED.glob(f"*/{name}.log"), CAPTURES / f"{name}.log")
    if not path.is_file():
        pytest.skip("data: recordings that are not part of the project")
    found = examine([(name, [path.read_bytes()])], 2026, {})
    stops = [cause.key for cause in found.causes if cause.severity.stops]
    if FAILED[name] in ("worker-log-ends", "log-ends"):  # no cause: the explanation's mechanism
        assert (
            not stops and found.explanation and found.explanation.mechanism == FAILED[name] and found.explanation.next
        )
    else:
        assert found.causes[0].key == stops[0] == FAILED[name]


def test_a_start_that_stops_without_a_line_shows_its_phase() -> None:
    """Guards a log that was cut in the middle of loading: the phase, the last line and steps; none once it serves."""
    lines = (CAPTURES / "b-8b-graphs.log").read_bytes().splitlines(keepends=True)
    begun = next(number for number, line in enumerate(lines) if b"Starting to load model" in line)
    found = examine([("cut", lines[: begun + 1])], 2026, {})
    assert not found.causes and found.explanation and found.explanation.line.number == begun + 1
    assert "ends during load" in found.explanation.title and found.explanation.next
    assert examine([("whole", lines)], 2026, {}).explanation is None


OF_SCRIPTS = {
    "a script": "Traceback (most recent call last):\n  File \"a.py\", line 3, in go\n    x()\nKeyError: 'a'\n",
    "a module of Node": "node:internal/modules/cjs/loader:1215\n  throw err;\n\nError: Cannot find module 'express'\n",
    "an archive": "tar: /v/a: Cannot open: No such file or directory\ntar: Error is not recoverable: exiting now\n",
    "a database": "sqlite3.OperationalError: unable to open database file\n",
    "an argument": "vllm serve: error: unrecognized arguments: --turbo 9\n",
}


@for_each("name", list(OF_SCRIPTS))
def test_advice_fits_what_failed(name: str) -> None:
    """Guards failures of programs without GPUs and ranks: neither a kernel log nor NCCL's messages are asked for."""
    found = examine([(name, [OF_SCRIPTS[name].encode()])], 2026, {})
    steps = [*found.untold, *found.collect, *(found.explanation.next if found.explanation else ())]
    assert not [step for step in steps if "kernel" in step or "NCCL" in step or "journalctl" in step]


def test_a_spinning_gpu_is_a_cause_without_an_error_line() -> None:
    """Guards report 001's 34 minutes: SM 96, memory 0; and that a busy GPU which reads weights is none."""
    head = b"# gpu     sm    mem    enc    dec\n# Idx      %      %      %      %\n"
    spins = diagnosed(("dmon", head + b"    0     96      0      0      0\n" * 3))
    assert [cause.key for cause in spins.causes] == ["cuda-graph-multinode-collective-deadlock"]
    assert [proof.number for proof in spins.causes[0].proof] == [3, 5]
    assert diagnosed(("dmon", head + b"    0     96     61      0      0\n" * 3)).causes == ()
    assert diagnosed(("dmon", head + b"    0      0      0      0      0\n" * 3)).causes == ()


CAPTURE = (
    "[2026-05-03 10:11:12 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=21.03 GB\n"
    "Capturing batches (bs=256 avail_mem=20.11 GB):   0%|          | 0/36 [00:00<?, ?it/s]"
)
STEP = "\rCapturing batches (bs=248 avail_mem=20.09 GB):   3%|▎         | 1/36 [00:01<00:41,  1.19s/it]"
LINK = "kernel: mlx5_core 0000:01:00.0 enp1s0f0np0: Link {}\n"
TWIN = "kernel: mlx5_core 0002:01:00.0 enP2p1s0f0np0: Link {}\n"
CAGE = "kernel: mlx5_core 0000:01:00.1 enp1s0f1np1: Link down\n"
PERFTEST = " #bytes     #iterations    BW peak[{}/sec]    BW average[{}/sec]   MsgRate[Mpps]\n"
WAITS = "INFO 11-21 10:12:12 [shm_broadcast.py:542] No available shared memory broadcast block found in 60 seconds.\n"
VMSTAT = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st gu\n"
STILL = " 0  0 4995020 1476364 273284 6545968    4    0     4   348 2246 2118  1  0 99  0  0  0\n"
SWAPS = " 3  2 9211040  912364   1284  545968 8120 20400 90171 31520 5788 9120  2 12 61 25  0  0\n"


@for_each(
    "log, key, lines",
    [
        (CAPTURE, "cuda-graph-multinode-collective-deadlock", [2]),
        (CAPTURE + STEP, "", []),
        (CAPTURE + "\nserving\n" * 9, "", []),
        (LINK.format("up") + TWIN.format("up") + LINK.format("down") + TWIN.format("down"), "fabric-link-down", [2, 4]),
        (LINK.format("down") + LINK.format("up") + TWIN.format("up"), "", []),
        (PERFTEST.format("Gb", "Gb") + " 65536 5000  13.31  13.22  0.025\n", "nic-hotplug-power-cap", [2]),
        (
            PERFTEST.format("MB", "MB") + " 65536   5000   1591.10   1588.42   0.025\n",
            "nic-hotplug-power-cap",
            [2],
        ),
        (PERFTEST.format("Gb", "Gb") + " 512 5000  13.31  13.22  3.2\n 65536 5000  92.41  92.40  0.17\n", "", []),
        (PERFTEST.format("MB", "MB") + " 65536   5000   11011.10   11010.42   0.17\n", "", []),
        (WAITS * 12, "worker-stopped-answering", [1, 12]),
        (WAITS * 3, "", []),
        (WAITS * 12 + "Application startup complete.\n" * 9, "", []),
        (VMSTAT + SWAPS * 3, "gpu-memory-utilization-too-high-unified", [2, 4]),
        (VMSTAT + SWAPS + STILL * 9, "", []),
    ],
)
def test_what_only_a_whole_log_reports(log: str, key: str, lines: list[int]) -> None:
    """Guards a capture that stalls, a link that is lost, capped rows and swapping; and healthy logs like them."""
    causes = [cause for cause in diagnosed(("x", log.encode())).causes if cause.code.startswith("LIVE")]
    assert [cause.key for cause in causes] == ([key] if key else [])
    assert [proof.number for cause in causes for proof in cause.proof] == lines


def test_a_line_is_not_harmless_where_it_proves_a_cause() -> None:
    """Guards against both at once: a wait of a minute is harmless, ten in a row are a hang."""
    assert [cause.code for cause in diagnosed(("x", WAITS.encode())).harmless] == ["LBEN011"]
    assert diagnosed(("x", (WAITS * 12).encode())).harmless == ()


def test_an_empty_cage_is_no_lost_link() -> None:
    """Guards the port without a cable, which reports `Link down` at every boot."""
    told = diagnosed(("kernel", (LINK.format("up") + CAGE).encode()))
    assert not any(cause.code == "LIVE005" for cause in told.causes)


def test_a_certain_cause_asks_for_nothing_more() -> None:
    """Guards short answers where the line itself reports what is wrong; a log that was cut off or is empty is
    noticed."""
    assert diagnosed(("x", GLOO.encode())).untold == ()
    cut = diagnosed(("x", b"RuntimeError: Engine core initialization failed. See root cause above.\n"))
    assert any("a line above" in text for text in cut.untold)
    assert diagnosed(("x", b"")).untold[0] == "what x shows: it is empty"


def test_a_rank_that_died_without_a_word_is_named() -> None:
    """Guards the next step after `a rank died`: which one, and where to look for its killer."""
    told = capture("m1-head", "m1-worker")
    assert "why the rank of m1-worker died: its log just ends" in told.untold
    assert any("killed process" in step for step in told.collect)
    assert not any("just ends" in text for text in capture("m2-head", "m2-worker").untold)


def test_proof_of_a_long_line_begins_near_what_was_found() -> None:
    """Guards the screen, which cuts long lines: the cause's words are on it."""
    (cause,) = diagnosed(("x", b"a b " * 600 + GLOO.encode())).causes
    assert len(cause.proof) == 1
    assert cause.proof[0].text[:60].count(" ... ") == 1 and "Gloo" in cause.proof[0].text[:220]


def test_lines_are_counted_once() -> None:
    """Guards `such lines came N times`: two signs in the same line are one line."""
    assert [cause.seen for cause in diagnosed(("x", (GLOO + "\n").encode() * 3)).causes] == [3]


GLOO = "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error, remote=[127.0.0.1]:40213"


def rank_log(offset: int, error: str = "") -> bytes:
    """A log whose clock is `offset` hours ahead."""
    lines = [
        f"INFO 11-02 {10 + offset}:11:12 [gpu_worker.py:440] Available KV cache memory: 18.22 GiB",
        f"INFO 11-02 {10 + offset}:12:40 [gpu_model_runner.py:6094] Graph capturing finished in 17 secs, took 0.10 GiB",
        *([f"ERROR 11-02 {10 + offset}:12:41 [core.py:9] {error}"] if error else []),
    ]
    return "\n".join(lines).encode()


def test_clocks_of_ranks_are_aligned_by_what_they_reach_together() -> None:
    """Guards the order of events when a node's clock or time zone is off; barriers that disagree move nothing."""
    stories = [reader("a", rank_log(0)).story(), reader("b", rank_log(2)).story()]
    assert shifts(stories) == {"a": 0.0, "b": -7200.0}
    odd = rank_log(3).replace(b"13:12:40", b"13:32:40")
    assert shifts([stories[0], reader("c", odd).story()])["c"] == 0.0
    told = diagnosed(("a", rank_log(0)), ("b", rank_log(2, GLOO)))
    assert [source.shift for source in told.sources] == [0.0, -7200.0]
    first = told.causes[0].proof[0]
    assert first.at is not None and first.at < (told.sources[0].last_at or 0) + 60


def test_what_is_missing_is_reported_and_how_to_get_it() -> None:
    """Guards `no known cause`: nothing is invented, and the next step is a command of this cluster."""
    told = capture("m3-head-alone")
    assert any("other ranks" in text for text in told.untold)
    assert any("sparkwright logs big" in text for text in told.collect)
    nothing = diagnosed(("x", b"kernel: hello\nnothing to see\n"))
    assert nothing.causes == () and nothing.untold == () and len(nothing.collect) >= 3


def test_the_fix_names_this_cluster() -> None:
    """Guards commands that can be pasted: what is known is filled in, what is not is named."""
    fix = " ".join(diagnosed(("x", GLOO.encode())).causes[0].fix)
    assert "<iface>" in fix
    words = diagnosis([reader("x", GLOO.encode())], {"iface": "enp1s0f0np0"})
    assert "GLOO_SOCKET_IFNAME=enp1s0f0np0" in " ".join(words.causes[0].fix)


BIND = (
    "[2026-11-22 14:24:57] [Errno 99] error while attempting to bind on address ('10.0.0.1', 30000): "
    "cannot assign requested address"
)
SETTINGS = "server_args=ServerArgs(host='10.0.0.1', nnodes=2, node_rank={})"
LOADS = "[2026-11-22 14:24:40 TP1] Load weight begin. avail mem=78.51 GB"


@for_each(
    "name, rank, key",
    [("a.log", 0, "bind-address-not-available"), ("a.log", 1, ""), ("rank 1 on spark-2", 0, "")],
)
def test_a_line_that_is_harmless_on_a_worker_is_a_cause_on_the_head(name: str, rank: int, key: str) -> None:
    """Guards conditions of signatures: SGLang's workers cannot serve the head's address, and need not."""
    lines = "\n".join((SETTINGS.format(rank), LOADS, BIND)).encode()
    found = examine([(name, [lines])], 2026, {})
    assert [cause.key for cause in found.causes] == ([key] if key else [])
    assert found.explanation is None
    assert [cause.key for cause in found.harmless] == ([] if key else ["benign-worker-http-port"])


THREAD = ("https://github.com/vllm-project/vllm/issues/1",)


@pytest.mark.parametrize(
    ("sign", "see", "sure", "first"),
    [
        (CERTAIN, ("https://docs.vllm.ai/en/latest/",), CERTAIN, "reboot spark-2"),
        (CERTAIN, THREAD, LIKELY, "nvidia-smi   # a reboot may follow"),
        (CERTAIN, (*THREAD, "https://github.com/vllm-project/vllm/issues/2"), CERTAIN, "reboot spark-2"),
        (LIKELY, (), LIKELY, "nvidia-smi   # a reboot may follow"),
    ],
)
def test_one_report_makes_nothing_certain_and_a_reboot_comes_first_only_when_sure(
    sign: float, see: tuple[str, ...], sure: float, first: str
) -> None:
    """Guards the caps of evidence: a single sign of a single report, and steps that take a node away."""
    looked_for = Sign(("gpu has fallen asleep",), sign)
    known = LogCause(
        "LXXX001", "k", "Title", Severity.BLOCK, "why", ("reboot {node}", "nvidia-smi   # a reboot may follow"), see,
        signatures=(looked_for,),
    )  # fmt: skip
    read = Reader(book_of([known]), "a.log", 2026)
    read.feed(b"gpu has fallen asleep\n")
    read.close()
    causes, _ = ranked(found_by_signs(read.hits, {known.code: known}), {"node": "spark-2"})
    assert [(cause.confidence, cause.fix[0]) for cause in causes] == [(sure, first)]
