"""The simulator of TensorFold, held to lines that its documentation, its source and owners' repositories quote."""

from __future__ import annotations

import asyncio
import io
import json
import re
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from simulators import tensorfold
from simulators.console import NoStart
from simulators.site import SimulatedSite
from sparkwright.domain.deployment import Phase
from sparkwright.engines.catalog import engine
from sparkwright.engines.definitions import shipped_definitions
from sparkwright.simulator.link import HeadLink
from sparkwright.simulator.log import LineForm, LogVoice, Voices
from sparkwright.simulator.rank import SimulatedRank, StartFailed
from sparkwright.simulator.service import Core, DialectTrouble
from unit.simulator.inprocess import MakeRank

READ = engine("tensorfold").read
FILE = shipped_definitions()["tensorfold"]
NUMBER = r"\d+(?:\.\d+)?"
# Lines as somebody quotes them, and their forms, which the simulator keeps.
ESTIMATE = (  # README of MiaAI-Lab/Qwen3.8-Flash-Next-TensorFold, 2026-10-07
    "CUDA rank 0 startup estimate 88.93 GiB within 107.58 GiB; native 262144, allocated prompt/reply window 262144, "
    "cache slots 262151",
    rf"CUDA rank \d startup estimate {NUMBER} GiB within {NUMBER} GiB; native \d+, allocated prompt/reply window \d+, "
    r"cache slots \d+$",
)
SERVING = (  # notes of an owner's rig, as printed by 0.6.3 on 2026-10-03
    "serving qwen3.8-flash-next at http://0.0.0.0:8083/v1 on CUDA (sampling: temperature 1.0, top_k 20, top_p 0.95; "
    "drafts: on; context: 262144; loaded in 139.0s)",
    r"serving \S+ at http://[\d.]+:\d+/v1 on CUDA(?:, rank 0 of 2)? \(sampling: temperature 1.0, top_k 20, top_p 0.95; "
    rf"drafts: on; context: \d+; loaded in {NUMBER}s\)$",
)
STREAMS = (  # the same notes
    "Flash Next on CUDA: 1 to 6 MTP drafts a round, a chain stops before a later draft under 60%; up to 4 streams, "
    "each growing to 262144 prompt/reply tokens while memory lasts (34.9 GiB free for their caches, 4.47 GiB for one "
    "at the full window), eager; int8 KV cache (fp16 scale per 32 values); n-gram tables read alongside the weights "
    "(0.0s after them); 0 decode graphs captured; idle prompt pieces 2048 rows; prompt kernels warmed in 74.9s",
    r".+ on CUDA: (?:.+; )?up to \d+ streams, each growing to \d+ prompt/reply tokens while memory lasts "
    rf"\({NUMBER} GiB free for their caches, {NUMBER} GiB for one at the full window\), eager; .*0 decode graphs "
    rf"captured; .*prompt kernels warmed in {NUMBER}s$",
)
LOADING = (  # a test of an owner's monitor
    "loading GLM-5.3-Flash-EXL3: GLM-5.3-Flash (glm5_next) on CUDA, rank 0 of 2",
    r"loading \S+: .+ \(\w+\) on CUDA, rank 0 of 2$",
)
QUOTED = dict((ESTIMATE, SERVING, STREAMS, LOADING))
# README of CapyCTL, TensorFold 0.6.5
REFUSED = (
    "tensorfold: CUDA startup memory budget cannot fit requested context 262144; estimated largest fitting"
    " prompt-plus-reply window: 0 tokens across the ranks. Please free memory or use smaller/quantized weights; no"
    " model weights or KV caches have been loaded. KV precision is unchanged."
)
# src/tensorfold/cuda/server.py
DONE = (
    r"\[tensorfold\] done req-[0-9a-f]{12} prompt=\d+ cached=\d+ thinking=(?:True|False) tokens=\d+ sha=\w+ finish=\w+"
    r" tok/s=\d+\.\d ttft=-?\d+\.\d\ds prefill=-?\d+\.\d\ds rounds=\d+ accepted=\d+/\d+"
)
NOBODY = Request({"type": "http"})
QUIET = DialectTrouble(lambda: None, lambda _: asyncio.sleep(0))
Made = tuple[tensorfold.FoldDialect, SimulatedRank, io.StringIO]


@pytest.fixture
def talking(make_rank: MakeRank) -> Callable[..., Made]:
    def made(*words: str, free: float = 111.7) -> Made:
        given = tensorfold._given(["serve", "/m/tiny", "--port", "8000", "--parallel", "2", *words])
        voice = LogVoice("", 7, (out := io.StringIO()), LineForm(lambda level: "[tensorfold] ", lambda: ""))
        rank = make_rank("--port", "8000", "--max-num-seqs", "2", "--enforce-eager")
        settings = replace(rank.settings, free_gib=free)
        return tensorfold.FoldDialect(given), replace(rank, settings=settings, voices=Voices(*[voice] * 4)), out

    return made


async def test_a_start_prints_the_quoted_lines_and_is_understood(talking: Callable[..., Made]) -> None:
    """Guards the form of each line against its source, and the phases that are read from them."""
    dialect, rank, out = talking("--tp", "2", "--rank", "0", "--master", "127.0.0.1")
    dialect.greet(rank)
    dialect.join(rank)
    dialect.met(rank, [{"free": 100.0}])
    await dialect.load(rank)
    await dialect.fit(rank)
    await dialect.capture(rank)
    dialect.ready(rank)
    lines = out.getvalue().splitlines()
    assert "SIMULATED" in lines[0]
    for quoted, form in QUOTED.items():
        assert re.match(form, quoted), quoted
        assert any(re.match(rf"\[tensorfold\] {form}", line) for line in lines), (form, lines)
    phases = [event.phase for line in lines if (event := READ(line))]
    assert phases == [Phase.RENDEZVOUS, Phase.LOAD, Phase.WARMUP, Phase.SERVER]
    facts = dict(fact for line in lines if (event := READ(line)) for fact in event.facts)
    assert float(facts["whole_gib"]) > 0 and {"context", "url", "caches_free_gib"} <= facts.keys()


def test_a_window_that_does_not_fit_is_refused_before_loading(talking: Callable[..., Made]) -> None:
    """The smallest node decides for all, and the sentence is the quoted one with what fits."""
    dialect, rank, out = talking("--context", "262144")
    rank = replace(rank, limits=replace(rank.limits, context=262144))
    with pytest.raises(StartFailed) as refused:
        dialect.met(rank, [{"free": 12.1}])
    dialect.failed(rank, str(refused.value))
    said = out.getvalue().strip()
    assert re.sub(r"\d+", "N", said).startswith(re.sub(r"\d+", "N", REFUSED).partition("Please")[0])
    event = READ(said)
    assert event is not None and event.error and "window: " in event.text


@pytest.mark.parametrize("line", QUOTED)
def test_quoted_lines_are_progress(line: str) -> None:
    """Guards the real lines, which are a little longer than the simulator's."""
    event = READ(f"[tensorfold] {line}")
    assert event is not None and not event.error


def test_a_quoted_refusal_is_the_reason() -> None:
    event = READ(REFUSED)
    assert event is not None and event.error and "cannot fit requested context 262144" in event.text


async def test_health_models_and_figures(talking: Callable[..., Made]) -> None:
    """The pages of docs/api.md: open health that tells less with keys, `owned_by`, and every figure of the file."""
    dialect, rank, _ = talking()
    site = SimulatedSite(Core(rank, HeadLink(1), QUIET), "TensorFold", dialect.metrics, dialect.labels, dialect.api)
    pages = {route.path: route.endpoint for route in dialect.routes(site)}

    async def page(path: str) -> str:
        answer: Response = await pages[path](NOBODY)
        return bytes(answer.body).decode()

    assert json.loads(await page("/health"))["backend"] == "tensorfold"
    assert json.loads(await page("/v1/models"))["data"][0]["owned_by"] == FILE.owned_by == "tensorfold"
    text = await page("/metrics")
    not_counted = ("mtp", "preemptions", "decode_rounds")  # here; TensorFold, too, leaves out what it does not count
    wanted = {name for name in FILE.metrics.values() if not any(word in name for word in not_counted)}
    assert [name for name in wanted if f"\n{name}" not in text] == []
    keyed = replace(rank, settings=replace(rank.settings, api_keys=("k",)))
    site = SimulatedSite(Core(keyed, HeadLink(1), QUIET), "TensorFold", dialect.metrics, dialect.labels, dialect.api)
    pages = {route.path: route.endpoint for route in dialect.routes(site)}
    assert await page("/health") == '{"status":"ok"}'
    assert [path for path in ("/health", "/v1/models", "/metrics", "/tokenize") if dialect.guarded(path)] == [
        "/v1/models",
        "/metrics",
        "/tokenize",
    ]


def test_a_reply_is_told_in_a_done_line(talking: Callable[..., Made]) -> None:
    """The line that proves life; reasoning has TensorFold's name, and the answer its block."""
    dialect, rank, out = talking()
    dialect.greet(rank)
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
    message = {"role": "assistant", "content": "four", "reasoning": "two and two"}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    told = json.loads(bytes(dialect.answered(Response(json.dumps(body)), len).body))
    assert told["choices"][0]["message"] == {"role": "assistant", "content": "four", "reasoning_content": "two and two"}
    assert "token_sha" in told["tensorfold"]
    line = out.getvalue().splitlines()[-1]
    assert re.fullmatch(DONE, line), line
    event = READ(line)
    assert event is not None and event.alive and event.phase is Phase.ANSWER


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """ "Set its permissions to 0600; startup refuses a file readable by other users": ours is."""
    file = tmp_path / "api-key"
    file.write_text("# a comment\nme: one\ntwo\n")
    file.chmod(0o644)
    with pytest.raises(NoStart, match="readable by other users"):
        tensorfold._keys(str(file))
    file.chmod(0o600)
    assert tensorfold._keys(str(file)) == ("one", "two")


def test_options_are_the_documented_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tensorfold._given(["serve", "m", "--gpu-memory-utilization", "0.8"])
    assert "unrecognized arguments" in capsys.readouterr().err
    given = tensorfold._given(["serve", "m", "--tp", "2", "--rank", "1", "--master", "h", "--no-drafts"])
    assert isinstance(given, Namespace) and (given.tp, given.rank, given.master_port) == (2, 1, 29551)
    with pytest.raises(NoStart, match="--tp 2 needs --master"):
        tensorfold.run(["serve", "m", "--tp", "2"], {})
