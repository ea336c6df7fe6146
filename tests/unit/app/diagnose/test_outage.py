"""The cause of a service's end: only from its own time, and what nodes know before what logs report."""

from dataclasses import replace

import pytest

from sparkwright.app.diagnose.incident import Evidence, Heard, Outage, explain
from sparkwright.domain.diagnosis import Diagnosis
from sparkwright.domain.facts import RankStatus
from unit.app.scene import make_scene

WRONG_MODEL = "(APIServer pid=1) ERROR 11-22 14:23:48 [serving.py:1] The model `wrong` does not exist."
ANSWER = '(APIServer pid=1) INFO:     10.0.0.9:4242 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
OLD_KILL = "2026-11-22T10:00:00+0000 spark-2 kernel: Out of memory: Killed process 77 (python3)"
KERNEL = "2026-11-22T13:00:00+0000 spark-2 kernel: eth0: link up"
GOOD_AT = 1795356000.0  # 2026-11-22T14:40:00Z
KILLED = RankStatus("chat", 1, "spark-2", "process", "exited", "/r1", exit_code=137)
LEFT = RankStatus("chat", 0, "spark-1", "process", "exited", "/r0", exit_code=0)
WHAT = "rank 1 on spark-2 exited with code 137"


async def diagnosed(head: str, ended: list[RankStatus], kernel: str = KERNEL, what: str = WHAT) -> Diagnosis:
    """The diagnosis with the head's log heard up to the last answer in it."""
    logs = {"rank 0 on spark-1": head, "kernel log of spark-2": kernel}
    heard = {"rank 0 on spark-1": Heard(0, ANSWER)}
    words = {"deployment": "chat", "recipe": "chat", "logs": "sparkwright logs chat --tail 200"}
    return await explain(make_scene().services, Evidence("chat", {}, logs, ended), words, Outage(what, GOOD_AT, heard))


@pytest.mark.parametrize("between", ["", f"{ANSWER}\n"])
async def test_a_killed_rank_was_killed(between: str) -> None:
    """Guards against a client that names the cause: asked for a wrong model, then a rank got SIGKILL from outside."""
    found = await diagnosed(f"{WRONG_MODEL}\n{between}{WRONG_MODEL}\n", [KILLED, LEFT])
    assert found.causes[0].code == "LIVE009" and "no out-of-memory kill" in found.causes[0].proof[0].text
    assert {cause.code for cause in found.causes}.isdisjoint({"LAPI006", "LIMG009"})


async def test_an_engine_that_kills_itself_was_not_killed_from_outside() -> None:
    """Guards what SIGKILL of SGLang's first process is called: its own, after a process of the other rank had gone."""
    head = replace(LEFT, engine="sglang 0.5.12", exit_code=137)
    worker = replace(KILLED, engine="sglang 0.5.12", exit_code=None)
    found = await diagnosed(f"{ANSWER}\n", [worker, head], what="rank 1 on spark-2 ended and left no exit code")
    assert found.causes[0].code == "LIVE009"
    assert [proof.text.partition(" was killed")[0] for proof in found.causes[0].proof] == ["rank 1 on spark-2"]
    alone = await diagnosed(f"{ANSWER}\n", [head], what="rank 0 on spark-1 exited with code 137")
    assert "LIVE009" not in {cause.code for cause in alone.causes}


async def test_what_came_before_the_last_answer_is_no_cause() -> None:
    """Guards the time: fatal words that the engine lived on after; the same words behind the answer are the cause."""
    before = await diagnosed(f"{NO_KERNEL}\n{ANSWER}\n", [replace(KILLED, exit_code=1)])
    after = await diagnosed(f"{ANSWER}\n{NO_KERNEL}\n", [replace(KILLED, exit_code=1)])
    assert "LKRN001" not in {cause.code for cause in before.causes}
    assert after.causes[0].code == "LKRN001"


@pytest.mark.parametrize(
    ("kernel", "code"),
    [(OLD_KILL, "LIVE009"), (OLD_KILL.replace("T10:00:00", "T14:40:10"), "LUMA017"), ("", "LIVE009")],
)
async def test_the_kernel_log_counts_from_the_last_answer(kernel: str, code: str) -> None:
    """Guards what SIGKILL is called: the kernel's own, by a line of its time; unknown where its log cannot be read."""
    found = await diagnosed(f"{ANSWER}\n", [KILLED, LEFT], kernel)
    assert found.causes[0].code == code
    assert ("cannot be read" in found.causes[0].proof[0].text) == (not kernel)


async def test_a_reboot_goes_before_everything_that_logs_report() -> None:
    """Guards what the node itself knows: its ranks ended with it, and the peer left in order."""
    what = "rank 0 has ended while nothing watched; spark-1 was rebooted"
    found = await diagnosed(
        f"{NO_KERNEL}\n", [replace(KILLED, rank=0, node="spark-1"), replace(LEFT, rank=1)], what=what
    )
    assert found.causes[0].code == "LIVE010"
    assert "LIMG009" not in {cause.code for cause in found.causes}


async def test_a_worker_that_was_rebooted_is_named() -> None:
    """Guards a reboot that the supervisor lived through: the boot marker reports it, however the rank ended."""
    ended = [replace(KILLED, exit_code=129), LEFT]
    found = Evidence("chat", {}, {"rank 0 on spark-1": NO_KERNEL}, ended, boots={"spark-1": "a:1", "spark-2": "b:2"})
    before = {"spark-1": "a:1", "spark-2": "b:1"}
    words = {"deployment": "chat", "recipe": "chat", "logs": "sparkwright logs chat --tail 200"}
    outage = Outage("rank 1 on spark-2 exited with code 129", GOOD_AT, {}, before)
    diagnosed = await explain(make_scene().services, found, words, outage)
    assert diagnosed.causes[0].code == "LIVE010"
    assert diagnosed.causes[0].proof[0].text == "rank 1 on spark-2 exited with code 129; spark-2 was rebooted"
    assert outage.sentence({"spark-2": "b:1"}) == outage.sentence({"spark-2": ""}) == outage.what


@pytest.mark.parametrize(("resets", "code"), [(["spark-2"], "LIVE016"), (["spark-1"], "LIVE010"), ([], "LIVE010")])
async def test_a_worker_that_its_watchdog_reset_is_named(resets: list[str], code: str) -> None:
    """Guards a freeze: the node's own record outweighs the reboot; a reset of another day is none of this outage."""
    ended = [replace(KILLED, exit_code=129), LEFT]
    found = Evidence("chat", {}, {"rank 0 on spark-1": NO_KERNEL}, ended, boots={"spark-1": "a:1", "spark-2": "b:2"})
    found.resets.extend(resets)
    words = {"deployment": "chat", "recipe": "chat", "logs": "sparkwright logs chat --tail 200"}
    before = {"spark-1": "a:1", "spark-2": "b:1"}
    outage = Outage("rank 1 on spark-2 exited with code 129", GOOD_AT, {}, before)
    diagnosed = await explain(make_scene().services, found, words, outage)
    assert diagnosed.causes[0].code == code
    if code == "LIVE016":
        assert diagnosed.causes[0].proof[0].text == "spark-2 was reset by its hardware watchdog"
        assert "sparkwright plan chat" in diagnosed.causes[0].fix[1]


async def test_nodes_that_were_rebooted_before_the_capture_was_finished_are_named() -> None:
    """Guards both nodes rebooted at once: the supervisor saw a rank exit, went down itself, and resumed the capture."""
    what = "rank 1 on spark-2 exited with code 143"
    ended = [replace(KILLED, exit_code=None), replace(KILLED, rank=0, node="spark-1", exit_code=None)]
    now = {"spark-1": "a:2", "spark-2": "b:2"}
    found = Evidence("chat", {}, {"rank 0 on spark-1": f"{NO_KERNEL}\n"}, ended, boots=now)
    words = {"deployment": "chat", "recipe": "chat", "logs": "sparkwright logs chat --tail 200"}
    diagnosed = await explain(
        make_scene().services, found, words, Outage(what, GOOD_AT, {}, now, ("spark-1", "spark-2"))
    )
    assert diagnosed.causes[0].code == "LIVE010"
    assert diagnosed.causes[0].proof[0].text == f"{what}; spark-1, spark-2 were rebooted"


async def test_a_rank_that_its_launcher_ended_was_not_killed_from_outside() -> None:
    """Guards mpirun: it ends the other ranks when one fails of its own."""
    failed = replace(LEFT, exit_code=1)
    found = await diagnosed(f"{ANSWER}\n{NO_KERNEL}\n", [KILLED, failed], what="rank 0 on spark-1 exited with code 1")
    assert found.causes[0].code == "LKRN001"
    assert "LIVE009" not in {cause.code for cause in found.causes}


async def test_advice_fits_the_runtime() -> None:
    """Guards processes: nobody has a container to look into."""
    found = await diagnosed(f"{ANSWER}\nNCCL WARN connection closed by remote peer\n", [replace(KILLED, exit_code=1)])
    steps = "\n".join(step for cause in found.causes for step in cause.fix)
    assert "sparkwright logs chat --tail 200" in steps and "docker" not in steps


@pytest.mark.parametrize(
    ("heard", "part"),
    [
        (Heard(1, "c"), "c\nd\n"),
        (Heard(0, "c"), "d\n"),
        (Heard(9, "c"), "a\nb\nc\nd\n"),
        (Heard(0, "x"), "a\rb\n\nc\nd"),
        (Heard(0, ""), "a\rb\n\nc\nd"),
    ],
)
def test_the_part_of_a_log_since_the_last_answer(heard: Heard, part: str) -> None:
    """Guards the cut: by lines that were heard, what came behind them included; all of it where that is not known."""
    assert heard.part("a\rb\n\nc\nd") == part


async def test_a_rank_that_left_no_exit_code_was_killed_with_its_leader() -> None:
    """Guards SIGKILL of the whole rank: nothing else ends a leader that serves; a later end stays unknown."""
    first = await diagnosed(f"{ANSWER}\n", [replace(KILLED, exit_code=None), LEFT])
    later = await diagnosed(
        f"{ANSWER}\n", [replace(KILLED, exit_code=None)], what="rank 0 on spark-1 exited with code 1"
    )
    assert first.causes[0].code == "LIVE009" and "signal 9" in first.causes[0].proof[0].text
    assert "LIVE009" not in {cause.code for cause in later.causes}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("rank 0 on spark-1: process 4886 (sh) is stopped (state T: SIGSTOP)", "LIVE011"),
        ("rank 1 on spark-2: its container is paused (docker pause), its first process is 77", "LIVE011"),
        ("link enp1s0f0np0 of spark-2 was down", "LIVE005"),
        ("disk full on spark-1: 0.0 MiB free in ~/state; logs kept in memory; rank 0 ended there", "LIVE012"),
    ],
)
async def test_what_the_supervisor_saw_goes_before_what_logs_report(line: str, code: str) -> None:
    """Guards causes that no engine's log has; a client's text with the same words is none of them."""
    words = {"deployment": "chat", "recipe": "chat", "logs": "sparkwright logs chat --tail 200"}
    logs = {"rank 0 on spark-1": f"{ANSWER}\n{line}\n"}
    claimed = await explain(make_scene().services, Evidence("chat", {}, logs), words)
    seen = await explain(make_scene().services, Evidence("chat", {}, logs, seen=[line]), words)
    assert code not in {cause.code for cause in claimed.causes}
    assert [cause.code for cause in seen.causes[:1]] == [code]


@pytest.mark.parametrize(
    "line",
    [
        "(APIServer pid=1) INFO 11-22 14:40:09 [logger.py:57] Received request chatcmpl-1: prompt: '{}', params: ...",
        "(APIServer pid=1) INFO 11-22 14:40:09 [logger.py:91] Generated response chatcmpl-1: output: '{}', output_...",
        "(APIServer pid=1) ERROR 11-22 14:40:09 [serving_chat.py:263] jinja2.exceptions.TemplateError: {}",
        '(APIServer pid=1) INFO:     10.0.0.9:4242 - "POST /v1/chat/completions?{} HTTP/1.1" 400 Bad Request',
        "[2026-11-22 14:40:09] Receive: obj=GenerateReqInput(rid='1', text='{}', input_ids=None)",
        'srv  log_server_r: request:  {{"messages":[{{"role":"user","content":"{}"}}]}}',
    ],
    ids=["request", "answer", "error", "path", "sglang", "llama.cpp"],
)
async def test_text_of_a_client_is_no_cause(line: str) -> None:
    """Guards against a prompt that an engine echoes behind the last answer; the same words of the engine count."""
    ended = [replace(KILLED, exit_code=1)]
    echoed = await diagnosed(f"{ANSWER}\n{line.format(NO_KERNEL)}\n", ended)
    printed = await diagnosed(f"{ANSWER}\n{line.format(NO_KERNEL)}\n(EngineCore pid=9) {NO_KERNEL}\n", ended)
    assert "LKRN001" not in {cause.code for cause in echoed.causes}
    assert printed.causes[0].code == "LKRN001"


# SGLang 0.5.12 puts its prefix before the first line of a record only, and `logger.exception` prints a message twice.
SGLANG = "[2026-11-22 14:40:09{}] {}"
FRAMES = 'Traceback (most recent call last):\n  File "/site/sglang/srt/managers/tokenizer_manager.py", line 545'
LOADING = "Error while loading data x\n{}\nx"
FORGED = (NO_KERNEL, SGLANG.format(" TP0", f"Scheduler hit an exception: {NO_KERNEL}"))


def quoted(headline: str, text: str) -> str:
    said = headline.format(LOADING.format(text)) if "{}" in headline else headline
    return f"{said}\n{FRAMES}\nRuntimeError: {LOADING.format(text)}\n"


@pytest.mark.parametrize("text", FORGED, ids=["a line", "a record"])
@pytest.mark.parametrize(
    "headline",
    [SGLANG.format("", "Error in request: {}"), "ERROR:    Exception in ASGI application"],
    ids=["sglang", "uvicorn"],
)
async def test_a_traceback_that_quotes_a_client_is_no_cause(headline: str, text: str) -> None:
    """Guards lines without a prefix of their own, and lines with a forged one; a record of the engine's counts."""
    ended, block = [replace(KILLED, exit_code=1)], quoted(headline, text)
    own = SGLANG.format(" TP0", f"Scheduler hit an exception: {FRAMES}\n{NO_KERNEL}\n")
    echoed = await diagnosed(f"{ANSWER}\n{block}", ended)
    printed = await diagnosed(f"{ANSWER}\n{own}{block}", ended)
    assert "LKRN001" not in {cause.code for cause in echoed.causes}
    assert printed.causes[0].code == "LKRN001"


async def test_what_the_engine_prints_behind_a_clients_traceback_counts() -> None:
    """Guards the true cause against a client whose picture cannot be loaded a second before."""
    block = quoted(SGLANG.format("", "Error in request: {}"), "y")
    own = SGLANG.format(" TP0", f"Scheduler hit an exception: {FRAMES}\n{NO_KERNEL}\n")
    found = await diagnosed(f"{ANSWER}\n{block}{own}", [replace(KILLED, exit_code=1)])
    assert found.causes[0].code == "LKRN001"
