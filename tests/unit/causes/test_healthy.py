"""Healthy servers are never blamed, and a failure behind a healthy start keeps its place."""

import json
import re
from itertools import cycle
from pathlib import Path

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.diagnose import line_causes
from sparkwright.domain.diagnosis import Diagnosis, LogState
from sparkwright.domain.finding import Severity
from unit.for_each import for_each

DATA = Path(__file__).resolve().parents[2] / "data"
RECORDED = sorted((DATA / "healthy-recorded").glob("*.log"))
STARTS = [DATA / "captures_logs" / "b-8b-graphs.log", DATA / "captures_logs" / "llama-ready.log"]
STARTS += [DATA / "healthy" / "sglang.log", DATA / "healthy" / "trtllm.log"]
INPUTS = DATA.parents[2] / "shared" / "data" / "diagnose-inputs"
BLAMED = 0.5


def examine_logs(*logs: str | bytes) -> Diagnosis:
    texts = (log.encode() if isinstance(log, str) else log for log in logs)
    return examine([(f"log {n}", [text]) for n, text in enumerate(texts)], 2026, {})


def blamed(found: Diagnosis) -> bool:
    return found.failure or any(cause.confidence >= BLAMED for cause in found.causes)


def start(path: Path) -> bytes:
    return path.read_bytes().rstrip() + b"\n"


# An OOM behind this start has a cause in it: it gives the KV cache 90 % of the memory. A request that is refused behind
# its good answer is the client's fault.
EXPLAINS_OOM = "trtllm.log"
EXPLAINED_BY_START = {("trtllm.log", "LUMA007"), ("trtllm.log", "LAPI012")}
# Causes that need several ranks, behind the start of one.
AMONG_RANKS = "LNIC"


@pytest.mark.full
@pytest.mark.parametrize("path", STARTS, ids=lambda path: path.stem)
def test_a_failure_behind_a_healthy_start_keeps_its_place(path: Path) -> None:
    """Guards against causes that a good start would give: each example, behind the start of one engine in turn."""
    good, wrong = start(path), []
    for cause, its_start in zip(line_causes().values(), cycle(STARTS), strict=False):
        if its_start != path or cause.severity is Severity.INFO or cause.code.startswith(AMONG_RANKS):
            continue
        for text in cause.fires:
            found = examine_logs(good + text.encode())
            first = [one.key for one in found.causes[:1]]
            explained = path.name == EXPLAINS_OOM and re.search("out of memory|OutOfMemory", text)
            if first != [cause.key] and not explained and (path.name, cause.code) not in EXPLAINED_BY_START:
                wrong.append(f"{cause.code} behind {path.name}: {first}")
    assert not wrong, "\n".join(wrong)


@for_each("path", STARTS)
def test_a_healthy_start_is_healthy(path: Path) -> None:
    """Guards the state and that nothing is blamed."""
    found = examine_logs(path.read_bytes())
    assert found.state in (LogState.SERVING, LogState.STOPPED) and not blamed(found) and not found.explanation


WAITS = (
    "No available shared memory broadcast block"  # harmless for some minutes; twenty of them are a worker that hangs
)


@pytest.mark.full
@pytest.mark.parametrize("times", [2, 20])
def test_harmless_lines_are_harmless_however_often_they_come(times: int) -> None:
    """Guards that the second identical line is no cause and no failure."""
    samples = [text for cause in line_causes().values() if cause.severity is Severity.INFO for text in cause.fires]
    samples = [text for text in samples if WAITS not in text]
    wrong = [
        text for text in samples if not blamed(examine_logs(text)) and blamed(examine_logs(f"{text.strip()}\n" * times))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.full
def test_a_failure_wins_over_each_harmless_line() -> None:
    """Guards that what is known as harmless hides nothing: each harmless example, next to failures in turn."""
    fine = [text for cause in line_causes().values() if cause.severity is Severity.INFO for text in cause.fires]
    bad = [(c, c.fires[0]) for c in line_causes().values() if c.severity.stops and c.signatures[0].sure > 0.9]
    bad = [(cause, text) for cause, text in bad if examine_logs(text).failure]
    wrong = []
    for (cause, text), harmless in zip(bad, cycle(fine), strict=False):
        found = examine_logs(f"{harmless.strip()}\n\n{text.strip()}\n")
        if not found.failure or found.causes[0].key != cause.key:
            wrong.append(f"{cause.code} after {harmless[:80]!r}: {[one.key for one in found.causes]}")
    assert not wrong, "\n".join(wrong)


# Windows of these have a real error of level ERROR, or a request that was refused.
WITH_ERRORS = {"ansible-play", "dockerd", "node-exporter", "llama-embedding", "llama-plain", "llama-slots"}


@pytest.mark.full
@pytest.mark.parametrize(
    "path", [path for path in RECORDED if path.stem not in WITH_ERRORS], ids=lambda path: path.stem
)
def test_windows_of_healthy_recordings_are_healthy(path: Path) -> None:
    """Guards pieces of logs that people paste: one, three and ten lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    pieces = {
        (size, at): lines[at : at + size] for size in (1, 3, 10) for at in range(0, len(lines), max(1, size // 2))
    }
    wrong = [place for place, piece in pieces.items() if blamed(examine_logs(b"".join(piece)))]
    assert not wrong


def test_a_log_of_a_server_that_serves_again_is_healthy() -> None:
    """Guards restarts: what ended an earlier run explains nothing once the server serves again."""
    crash = (
        b"ERROR 11-02 10:11:12 [core.py:1484] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n"
    )
    serves = start(STARTS[0]).partition(b"Application startup complete.")
    serves = b"".join(serves[:2]) + b"\n"
    assert examine_logs(serves + crash).failure
    found = examine_logs(serves + crash + serves)
    assert found.state is LogState.SERVING and not blamed(found) and found.serves
    assert "gpu-out-of-memory" in [cause.key for cause in found.notes]


OUT_OF_MEMORY = (
    "(EngineCore pid=41) ERROR 11-30 09:55:00 [core.py:900] EngineCore encountered a fatal error.\n"
    "(EngineCore pid=41) ERROR 11-30 09:55:00 [core.py:900] torch.OutOfMemoryError: CUDA out of memory. Tried to "
    "allocate 2.00 GiB. GPU 0 has a total capacity of 119.64 GiB of which 1.02 GiB is free.\n"
)
SERVES = (
    "(APIServer pid=1) INFO 11-30 10:00:00 [api_server.py:1839] vLLM API server version 0.33.0\n"
    "(EngineCore pid=41) INFO 11-30 10:00:40 [kv_cache_utils.py:2459] GPU KV cache size: 443,242 tokens\n"
    "(APIServer pid=1) INFO:     Application startup complete.\n"
    '(APIServer pid=1) INFO:     127.0.0.1:40210 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
)


@for_each("log, first, state", [
    (SERVES + OUT_OF_MEMORY, "runtime-oom-after-healthy-start", LogState.FAILED),
    (OUT_OF_MEMORY + SERVES, "", LogState.SERVING),
])  # fmt: skip
def test_a_failure_is_of_the_run_that_it_ended(log: str, first: str, state: LogState) -> None:
    """Guards the order: an error after good answers is theirs, and one before the server was started again is past."""
    found = examine_logs(log)
    named = [cause.key for cause in found.causes if cause.confidence >= BLAMED]
    assert (found.state, named[:1]) == (state, [first] if first else [])


def test_an_engine_that_reports_its_failed_start_has_failed() -> None:
    """Guards a log that was cut off before the exception's own line: it ended with status 0."""
    head = "(EngineCore pid=41) ERROR 11-30 10:00:41 [core.py:867] "
    log = f"{head}EngineCore failed to start.\n{head}Traceback (most recent call last):\n"
    assert examine_logs(SERVES.partition("(APIServer pid=1) INFO:")[0] + log).state is LogState.FAILED


def test_a_setting_that_an_engine_raises_is_a_failure_though_it_also_warns_of_it() -> None:
    """Guards vLLM's refusals: the same text is a warning elsewhere, and the log ended with status 0."""
    found = examine_logs(
        "(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "(APIServer pid=1)   Value error, User-specified max_model_len (300000) is greater than the derived "
        "max_model_len (max_position_embeddings=262144 or model_max_length=None in model's config.json). To allow "
        "overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. [type=value_error]\n"
    )
    assert found.state is LogState.FAILED and found.causes[0].key == "max-model-len-above-model-limit"


def test_what_makes_a_server_slower_is_no_failure_of_it() -> None:
    """Guards a server that takes requests back for want of KV cache, and goes on."""
    found = examine_logs(
        "[2026-11-30 10:01:20] The server is fired up and ready to roll!\n"
        "[2026-11-30 10:05:25 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens: 3584\n"
        "[2026-11-30 10:05:26 TP0] Decode batch. #running-req: 1, #token: 100, token usage: 0.90, #queue-req: 1,\n"
    )
    assert (
        found.state is LogState.SERVING and not blamed(found) and found.causes[0].key == "kv-pool-exhausted-at-runtime"
    )


def test_a_start_that_goes_on_is_no_failure() -> None:
    """Guards a log that is read while the model loads."""
    lines = start(STARTS[0]).splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if b"Starting to load model" in line)
    found = examine_logs(b"".join(lines[: cut + 1]))
    assert found.state is LogState.STARTING and not found.failure and found.explanation


EXPECTED = {
    "d01": "attention-backend-unsupported-sm12x",
    "d02": "sglang-pool-check-failed",
    "d03": "",
    "d04": "",
    "d05": "",
    "d06": "",
    "d07": "",
    "d08": "attention-backend-refuses-setting",
    "d09": "gpu-out-of-memory",
    "d10": "gpu-out-of-memory",
    "d11": "crash",
    "d12": "max-model-len-exceeds-kv-cache",
    "d13": "",
    "d14": "",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_inputs_of_the_study(name: str) -> None:
    """Guards what failed on 2026-11-27: '' is healthy, else the first cause or the mechanism of the line."""
    path = next(INPUTS.glob(f"{name}-*.log"), None)
    if path is None:
        pytest.skip("data: inputs that are not part of the project")
    found = examine_logs(path.read_bytes())
    assert found.failure is bool(EXPECTED[name]) and blamed(found) is found.failure
    keys = [cause.key for cause in found.causes[:1]] + [found.explanation.mechanism if found.explanation else ""]
    assert EXPECTED[name] in keys


REFUSED = (
    "ValueError: Selected backend AttentionBackendEnum.TRITON_ATTN is not valid for this configuration. "
    "Reason: ['kv_cache_dtype not supported']\n"
)


def test_steps_never_set_the_value_that_was_refused() -> None:
    """Guards the remedy of a refused backend, and its slots."""
    found = examine_logs(f"(EngineCore pid=90) ERROR 09-10 12:01:00 [core.py:1484] {REFUSED}")
    steps = [step for cause in found.causes for step in cause.fix]
    assert any("kv_cache_dtype" in step for step in steps)
    assert not any("--attention-backend TRITON_ATTN (or" in step or "<setting>" in step for step in steps)


NO_ROOM = """0.11.201.114 I load_tensors:        CUDA0 model buffer size = 21470.12 MiB
0.12.202.205 E llama_kv_cache_init: failed to allocate buffer for kv cache
"""


def test_steps_are_those_of_the_engine_that_printed_the_log() -> None:
    """Guards options of other engines."""
    steps = examine_logs(NO_ROOM).causes[0].fix
    assert any("-ctk q8_0" in step for step in steps)
    assert not any("--max-model-len" in step or "--context-length" in step for step in steps)


OWN_SETTING = (
    "ERROR 09-01 10:00:05 [core.py:1484] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. "
    "GPU 0 has a total capacity of 79.18 GiB of which 70.10 GiB is free. Process 77 has 3.00 GiB memory in use.\n"
)


@for_each("wants, is_own", [("200.00", True), ("20.00", False)])
def test_more_memory_than_the_gpu_has_is_the_settings_fault(wants: str, is_own: bool) -> None:
    """Guards amounts: another process is not blamed for what could never fit."""
    first = examine_logs(OWN_SETTING.format(wants)).causes[0]
    assert (first.key == "kv-cache-setting-above-memory") is is_own
    assert not is_own or any("200.00 GiB" in step for step in first.fix)


@for_each(
    "line, mechanism",
    [
        ("bash: /opt/x: Datei oder Verzeichnis nicht gefunden", "file-not-found"),
        ("OSError: [Errno 13] Permission non accordée: '/models/x'", "permission-denied"),
        ("bind: La dirección ya se está usando: 0.0.0.0:8000", "port-already-in-use"),
        ("connect: 接続を拒否されました", "connection-refused"),
        (
            "x: Fehler beim Laden der Shared Libraries: libgomp.so.1: Kann die Shared-Object-Datei nicht öffnen: "
            "Datei oder Verzeichnis nicht gefunden",
            "shared-library-not-found",
        ),
        (
            "x: error while loading shared libraries: libgomp.so.1: 共有オブジェクトファイルを開けません",
            "shared-library-not-found",
        ),
        (
            "ssh: Could not resolve hostname spark-2: Échec temporaire dans la résolution du nom",
            "node-name-not-resolved",
        ),
    ],
)
def test_system_errors_in_other_languages_are_known(line: str, mechanism: str) -> None:
    """Guards the C library's German, French, Spanish and Japanese; the line is shown as it was printed."""
    found = examine_logs(line + "\n")
    keys = [cause.key for cause in found.causes] + [found.explanation.mechanism if found.explanation else ""]
    shown = [cause.proof[0] for cause in found.causes[:1]] or [found.explanation.line if found.explanation else None]
    assert found.failure and mechanism in keys and shown[0] and shown[0].text.startswith(line[:12])


@for_each(
    "text, key",
    [
        ("ValueError: Sparse updates cannot be combined with `packed=True`\n", "not-together"),
        (
            "#14 90.1 /src/a.cu:12:10: fatal error: cub/cub.cuh: No such file or directory\n#14 ERROR: exit code: 1\n",
            "",
        ),
        (
            '[\n  {\n    "State": {\n      "Status": "exited",\n      "OOMKilled": false,\n      "ExitCode": 137\n',
            "container-ended",
        ),
        ("#9 CANCELED\nERROR: failed to build: failed to solve: Canceled: context canceled\n", "build-cancelled"),
        ("AttributeError: 'NoneType' object has no attribute 'pages'\n", "no-value"),
        ("docker: nvidia-container-cli: mount error: stat failed: /dev/nvidia7: no such device\n", "container-hook"),
    ],
)
def test_mechanisms_fill_their_slots(text: str, key: str) -> None:
    """Guards messages that no cause was written for."""
    found = examine_logs(text)
    assert found.failure
    if key:
        assert found.explanation and found.explanation.mechanism == key
        assert "{" not in found.explanation.title + "".join(found.explanation.next)
    else:
        assert "cub.cuh" in json.dumps([p.text for c in found.causes for p in c.proof] + [str(found.explanation)])


@for_each(
    "text",
    [
        "database-1  | 2026-04-12 09:23:56.341 UTC [90] FATAL:  terminating connection due to administrator command\n",
        "#19 1.622 No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'\n",
        "127.0.0.1 - - [28/Nov/2026 07:11:02] code 404, message File not found\n",
        f"/opt/{'a' * 90}/executor.py:152: UserWarning: Failed to get the IP address, using 0.0.0.0 by default.\n"
        "INFO 11-28 07:16:12 [executor.py:153] DP group leader: master_addr=127.0.0.1, nnodes=2\n",
        ' - leaked function "create_memdesc_reinterpret"\n - leaked function "create_memdesc_index"\n',
        " -ignore_critical           permit unhandled critical extensions\n -timeout    Enable time-outs\n",
        'access("/etc/ld.so.preload", R_OK)      = -1 ENOENT (No such file or directory)\nexit_group(0) = ?\n',
        '[timeouts]\n  "io.runtime.timeout.open" = "0s"\n  "io.runtime.error.limit" = "5"\n',
    ],
)
def test_what_healthy_programs_print_is_no_failure(text: str) -> None:
    """Guards a build without a GPU, an ordered shutdown, a refused request, Python's warnings, leftovers, help."""
    assert not blamed(examine_logs(text))


def test_an_error_of_the_loader_is_a_failure_whatever_precedes_it() -> None:
    """Guards status 1 where a runner listens before its model is loaded."""
    ready = 'level=INFO source=runner.go:874 msg="Server listening on 127.0.0.1:41115"\n'
    error = "llama_model_load: error loading model: unable to allocate Vulkan0 buffer\n"
    for text in (error, ready + error):
        found = examine_logs(text)
        assert found.failure and found.causes[0].key == "model-weights-too-large-for-node"


def test_a_program_that_ends_with_success_has_not_failed() -> None:
    """Guards a build that warned and tried again; what fails after the success counts."""
    warned = "WARNING: Retrying after connection broken by 'Temporary failure in name resolution'\n" * 5
    done = "Installing collected packages: foo\nSuccessfully installed foo-0.1\n"
    assert examine_logs(warned + "Error: no route to the mirror\n" + done).state is LogState.STOPPED
    assert not blamed(examine_logs(warned + done))
    assert examine_logs(done + "OSError: [Errno 28] No space left on device: '/v'\n").failure


def test_a_build_that_gives_up_has_failed() -> None:
    """Guards status 1 where the log has no line that says why."""
    failed = 'ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 1'
    assert examine_logs(f"Dockerfile:54\n{failed}\n").failure


def test_a_warning_is_never_more_than_likely_where_another_line_fails() -> None:
    """Guards confidence: the program went on after the warning, and what fails comes first where both are likely."""
    platforms = "(linux/amd64) does not match the detected host platform (linux/arm64/v8)"
    warning = f"app The requested image's platform {platforms}"
    fails = "Error response from daemon: driver failed: Bind for 0.0.0.0:80 failed: port is already allocated"
    alone, both = examine_logs(f"WARNING {warning}\n"), examine_logs(f"WARNING {warning}\n{fails}\n")
    assert alone.causes[0].key == "image-wrong-architecture"
    assert both.causes[0].key == "port-already-in-use"
    assert all(c.confidence <= 0.75 for c in both.causes if c.key == "image-wrong-architecture")


def test_a_cause_of_another_engine_is_never_more_than_likely() -> None:
    """Guards llama.cpp's cause in a log of TensorRT-LLM that uses the same words."""
    line = "error loading model architecture: unknown model architecture: 'quux'\n"
    head = (DATA / "healthy" / "trtllm.log").read_text().splitlines(keepends=True)[:12]
    assert examine_logs(line).causes[0].confidence > 0.75
    assert all(cause.confidence <= 0.75 for cause in examine_logs("".join(head) + line).causes)


NO_GRAPH_BUFFER = """0.11.520.077 E allocating 961.20 MiB on device 1: cudaMalloc failed: out of memory
0.11.520.084 E ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 1007891251
0.11.520.086 E graph_reserve: failed to allocate compute buffers
"""
RETRY = "0.11.520.107 W sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism\n"
GOES_ON = "0.12.304.130 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 8192\n"


def test_what_failed_before_another_way_was_taken_is_over() -> None:
    """Guards a retry that succeeds, and the one that fails, too."""
    found = examine_logs(NO_GRAPH_BUFFER + RETRY + GOES_ON)
    assert not blamed(found) and [note.key for note in found.notes] == ["gpu-out-of-memory"]
    for text in (NO_GRAPH_BUFFER, NO_GRAPH_BUFFER + RETRY + NO_GRAPH_BUFFER):
        found = examine_logs(text)
        assert found.failure and found.causes[0].key == "gpu-out-of-memory"


@for_each(
    "line",
    [
        "2026-11-02 10:11:12.338025 N | etcdmain: failed to detect default host (could not find default route)",
        "?: (security.W009) Your key is missing characters: security-critical features will be vulnerable to attack.",
        "127.0.0.1 - - [02/Nov/2026 10:11:12] code 501, message Unsupported method ('POST')",
        "============================= 74 passed in 249.68s (0:04:09) =============================",
        "local-completions ({'model': 'm', 'base_url': 'http://127.0.0.1:30000', 'timeout': 900}), gen_kwargs: ({})",
        "[NeMo I 2026-11-13 23:17:22 nemo_logging:393] Aborted generation for request: e0-1-block-000",
        "DSPARK_TABLE=/state/spark.json not found; staying on the usual schedule",
        "1 chart(s) linted, 0 chart(s) failed",
    ],
)
def test_levels_of_other_programs_and_requests_of_clients_are_no_failure(line: str) -> None:
    """Guards notices of etcd, identifiers of warnings, methods that a server does not have, a setting called timeout,
    requests that clients gave up, a way that is kept, a count of none."""
    assert not blamed(examine_logs(f"{line}\n"))


def test_a_failure_that_a_playbook_ignores_is_none() -> None:
    """Guards a run whose recap counts no failure, and one whose recap does."""
    play = (DATA / "healthy-recorded" / "ansible-play.log").read_text()
    assert examine_logs(play).state is LogState.STOPPED and not blamed(examine_logs(play))
    assert examine_logs(play.replace("...ignoring\n", "").replace("failed=0", "failed=1")).failure


@for_each(
    "line",
    [
        "Exception: Capture of the graph failed: Could not run 'ops::norm' with arguments from the 'CUDA' backend.",
        "failed to register layer: write /usr/lib/python3/dist-packages/a.so: input/output error",
        "./server: --hosts unknown argument",
        "Failed: Cuda error /src/reduce.cuh:164 'invalid argument'",
        "install failed: docker run failed (exit 125)",
        "[TRT-LLM] [E] Failed: 1 validation error for Args\n  Value error, max_batch_size [8] is greater than 4",
    ],
)
def test_a_single_line_may_report_a_failure(line: str) -> None:
    """Guards a bare exception, a chain that ends in a system error, a refused command line, pydantic's message."""
    assert examine_logs(f"{line}\n").failure


def test_the_phase_of_a_pull_is_not_its_reason() -> None:
    """Guards a login that nobody asked for: fetching the token timed out."""
    found = examine_logs(
        "failed to resolve reference: failed to authorize: \nfailed to fetch anonymous token: \n"
        'Get "https://auth.docker.io/token?service=registry.docker.io": \nnet/http: TLS handshake timeout\n'
    )
    assert [cause.key for cause in found.causes] == ["registry-unreachable"]


@for_each(
    "text",
    [
        "[    0.327284] NetLabel: Initializing\n[    0.331000] NetLabel:  domain hash size = 128\n",
        '{"name":"bot","hostname":"ci-1","pid":7,"level":20,"msg":"Dependency has an unsupported version"}\n',
        "Link requires a different Python (3.11.7 not in: '<3.6'): https://files.example.org/watchdog-0.10.6.tar.gz\n",
        "rm /nonexistent/x\nrm: cannot remove '/nonexistent/x': No such file or directory\n"
        "make: [Makefile:3: a] Error 1 (ignored)\na\n",
        "Exception occurred during processing of request from ('127.0.0.1', 4879)\nTraceback (most recent call last):\n"
        '  File "/srv/web.py", line 4, in handle\n    read()\n'
        "ConnectionResetError: [Errno 104] Connection reset by peer\n----------------------------------------\n"
        '127.0.0.1 - - [29/Nov/2026 06:47:46] "GET / HTTP/1.1" 200 -\n',
    ],
)
def test_names_and_notices_of_other_programs_are_no_failure(text: str) -> None:
    """Guards subsystems with an exception's form, Node's levels, words in addresses, a failure that make ignores, a
    client that hangs up."""
    assert not blamed(examine_logs(text))


def test_harmless_lines_are_harmless_however_many_there_are() -> None:
    """Guards the limit of lines that are compared: 400 refused logins of strangers."""
    line = "Dec 10 07:48:{s:02} host sshd[{n}]: reverse mapping checking getaddrinfo for h{n}.example.net failed\n"
    assert not blamed(examine_logs("".join(line.format(n=n, s=n % 60) for n in range(400))))


def test_a_process_that_the_kernel_reports_as_faulting_has_failed() -> None:
    """Guards a fault that is logged as a warning."""
    line = "kern  :warn  : 2026-01-21T04:41:44,285060+00:00 engine[2536]: segfault at 7f797fe0 ip 00007f7c\n"
    assert examine_logs(line).failure


def test_a_notice_stays_behind_the_cause_that_a_failure_shows() -> None:
    """Guards the order: build status lines above the line that fails."""
    found = examine_logs(
        "#14 8.2 -- Not building scaled_mm_c3x_100 as no compatible archs found in CUDA target architectures\n"
        "#14 9.0 torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device\n"
    )
    assert [cause.key for cause in found.causes][:1] == ["no-kernel-image-sm12x"]


def test_a_cause_that_a_log_only_resembles_has_its_error() -> None:
    """Guards CUDA errors that no cause has: the words around them are those of any CUDA error."""
    log = (
        "ggml_cuda_compute_forward: MUL_MAT_ID failed\n"
        "CUDA error: {}\n  current device: 1, in function compute at a.cu:9\n"
    )
    missing, other = (examine_logs(log.format(error)) for error in ("invalid device function", "invalid argument"))
    assert [cause.key for cause in missing.causes[:1]] == ["no-kernel-image-sm12x"]
    assert other.failure and not other.causes
