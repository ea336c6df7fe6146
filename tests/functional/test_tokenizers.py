"""Prompts of exactly the length that was asked for, by the count of servers that really answer."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fakes.ports import free_port
from fakes.prepared_bench import prepared_bench
from functional.simulator.process import HEAD_ADDRESS, SimulatorProcess
from functional.test_llama_cpp import KEY, RECIPE, render_rank, served
from functional.tiny_gguf import write_tiny_gguf
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.openai_http import OpenAiEndpoint
from sparkwright.adapters.tokenizers import TokenizeServer, tokenizer
from sparkwright.app.bench.prompt_corpus import prepare
from sparkwright.domain.command import Secret
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Session, Turn
from sparkwright.domain.workload import Agent, Api, Length, LevelPlan, Single, Text, Workload
from sparkwright.loadgen.sessions import sessions

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "model-tiny-qwen3" / "tokenizer.json"
LOOP = Agent(turns=6, system=400, tools=600, first=200, each_turn=0, output=32, cached=0.8)
SIZES = (40, 130, 777, 3000)


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    """vLLM's simulator, which reports cached tokens."""
    folder, port = tmp_path_factory.mktemp("twin"), free_port()
    words = ["serve", "sparkwright/twin-tiny", "--host", HEAD_ADDRESS, "--port", str(port)]
    words += ["--enable-prompt-tokens-details", "--max-model-len", "32768"]
    one = SimulatorProcess(words, folder / "log", port=port).start()
    yield one.ready()
    one.end()


def prompt_level(prompt: int, kind: Text = Text.PROSE) -> LevelPlan:
    return LevelPlan(f"{kind} {prompt}", Single(Length(prompt, prompt), Length(4, 4), text=kind), requests=2, warmup=0)


def workload(*levels: LevelPlan, api: Api = Api.CHAT, seed: int = 0) -> Workload:
    return Workload("test", "Test", levels, api=api, seed=seed)


def send_turn(client: httpx.Client, turn: Turn, history: str = "") -> dict:
    """The answer to a turn, not streamed."""
    body = json.loads(turn.head + history + turn.new + turn.tail)
    body.pop("stream_options")
    path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
    reply = client.post(path, json={**body, "stream": False}, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def counted(url: str, model: str, made: Workload, key: Secret | None = None) -> dict[str, list[tuple[int, int]]]:
    """Level -> (planned, by the server's usage) of each of its requests."""
    counter = await tokenizer(TokenizeServer(OpenAiEndpoint(SystemClock()), url, model, key))
    texts = await prepare(prepared_bench(made, Probed(url, model, ignore_eos=True, thinking=True), counter))
    headers = {"Authorization": f"Bearer {key.reveal()}"} if key else {}
    # A connection each: llama.cpp closes one after an answer, and a request that is on its way then gets none.
    alone = httpx.Limits(max_keepalive_connections=0)
    with httpx.Client(base_url=url, headers=headers, limits=alone) as client:
        return {
            level.name: [
                (one.turns[0].prompt_tokens, send_turn(client, one.turns[0])["usage"]["prompt_tokens"])
                for one in sessions(level, made, 0, texts)
            ]
            for level in made.levels
        }


@pytest.mark.parametrize("api", list(Api))
async def test_a_vllm_counts_what_was_planned(simulator: SimulatorProcess, api: Api) -> None:
    """Prose, code and JSON of any length, as a chat or a completion, to the token."""
    levels = [prompt_level(size, kind) for kind in Text for size in SIZES]
    found = await counted(
        f"http://{HEAD_ADDRESS}:{simulator.port}", "sparkwright/twin-tiny", workload(*levels, api=api)
    )
    assert len(found) == len(levels)
    assert [pair for pairs in found.values() for pair in pairs if pair[0] != pair[1]] == []


@pytest.mark.full
@pytest.mark.parametrize("api", list(Api))
async def test_a_real_llama_cpp_counts_what_was_planned(tmp_path: Path, api: Api) -> None:
    """Another way of asking, another kind of tokenizer (sentencepiece), where a letter is a token."""
    pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
    recipe = replace(RECIPE, serving=replace(RECIPE.serving, context=4096))
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), free_port(), recipe)
    levels = [prompt_level(size, kind) for kind in Text for size in (40, 130, 777)]
    async with served(spec, tmp_path / "log"):
        url = f"http://127.0.0.1:{spec.listens[0][1]}"
        found = await counted(url, "tiny", workload(*levels, api=api), Secret(KEY))
    assert [pair for pairs in found.values() for pair in pairs if pair[0] != pair[1]] == []


async def play_agent(simulator: SimulatorProcess, made: Workload) -> list[tuple[Turn, dict]]:
    """Each turn of the first agent of the first level, and the usage that came back, with the model's own answers."""
    url, model = f"http://{HEAD_ADDRESS}:{simulator.port}", "sparkwright/twin-tiny"
    counter = await tokenizer(TokenizeServer(OpenAiEndpoint(SystemClock()), url, model))
    texts = await prepare(prepared_bench(made, Probed(url, model, ignore_eos=True), counter))
    session = next(one for one in sessions(made.levels[0], made, 0, texts) if not one.turns[0].warmup)
    with httpx.Client(base_url=url) as client:
        return list(played(client, session))


def played(client: httpx.Client, session: Session) -> Iterator[tuple[Turn, dict]]:
    history = ""
    for turn in session.turns:
        answer = send_turn(client, turn, history)
        said = json.dumps({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
        history += f"{turn.new},{said},"
        yield turn, answer["usage"]


async def test_an_agent_s_turns_are_as_long_as_planned_and_known_to_the_share(simulator: SimulatorProcess) -> None:
    """80 % of every prompt after the first comes from the server's cache, but for what does not fill a block of it."""
    turns = await play_agent(simulator, workload(LevelPlan("warm", LOOP, warmup=0), seed=1))
    assert [turn.prompt_tokens for turn, _ in turns] == [one.prompt for one in LOOP.planned_turns()]
    for turn, usage in turns:
        assert abs(usage["prompt_tokens"] - turn.prompt_tokens) <= 0.02 * turn.prompt_tokens
    for turn, usage in turns[1:]:
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        assert turn.cached_tokens == pytest.approx(0.8 * turn.prompt_tokens, abs=1)
        assert 0.76 <= cached / usage["prompt_tokens"] <= 0.81


async def test_a_cold_agent_finds_nothing_in_the_cache(simulator: SimulatorProcess) -> None:
    """The same lengths, with a new salt in front of every turn: only what the template itself writes is known."""
    turns = await play_agent(simulator, workload(LevelPlan("cold", replace(LOOP, cold=True), warmup=0), seed=2))
    assert [turn.prompt_tokens for turn, _ in turns] == [one.prompt for one in LOOP.planned_turns()]
    for turn, usage in turns:
        assert abs(usage["prompt_tokens"] - turn.prompt_tokens) <= 0.02 * turn.prompt_tokens
        assert (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0) <= 32


async def test_without_tokenize_lengths_are_estimates_and_named_so(tmp_path: Path) -> None:
    """A server that only reports usage: its own ratio of characters to tokens, and not called exact."""
    words = ["sglang", "--model-path", "sparkwright/twin-tiny", "--served-model-name", "tiny", "--port"]
    port = free_port()
    one = SimulatorProcess([*words, str(port)], tmp_path / "log", port=port).start()
    try:
        one.logs("The server is fired up and ready to roll!")
        url = f"http://{HEAD_ADDRESS}:{port}"
        counter = await tokenizer(TokenizeServer(OpenAiEndpoint(SystemClock()), url, "tiny"))
        assert counter.name.startswith("estimate, ")
        assert not counter.exact
        found = await counted(url, "tiny", workload(prompt_level(1000), prompt_level(3000, Text.CODE)))
    finally:
        one.end()
    for planned_tokens, used in (pair for pairs in found.values() for pair in pairs):
        assert used == pytest.approx(planned_tokens, rel=0.05)


@pytest.mark.full
async def test_a_tokenizer_of_this_machine_is_counted_with(simulator: SimulatorProcess) -> None:
    """A real vocabulary: pieces add up to the token, whatever is next to them, to a hundred thousand tokens."""
    if not SHARED.exists():
        pytest.skip("data: ../shared is absent: the tokenizer is there")
    url, model = f"http://{HEAD_ADDRESS}:{simulator.port}", "sparkwright/twin-tiny"
    counter = await tokenizer(TokenizeServer(OpenAiEndpoint(SystemClock()), url, model), SHARED)
    assert counter.name.startswith("file tokenizer.json ")
    made = workload(*(prompt_level(size, kind) for kind in Text for size in SIZES), prompt_level(100_000))
    texts = await prepare(prepared_bench(made, Probed(url, model), counter))
    for level in made.levels:
        content = json.loads(sessions(level, made, 0, texts)[0].turns[0].new)["content"]
        assert await counter.counts([content]) == (level.shape.prompt.low - texts.frames.user,)
