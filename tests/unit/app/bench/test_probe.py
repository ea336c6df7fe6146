"""The kind of an endpoint, from what servers answer."""

import json

import pytest

from fakes.clock import FakeClock
from fakes.endpoint import Shown, TableAsker, make_reply
from sparkwright.app.bench.probe import probe_server
from sparkwright.app.bench.target import BenchTarget, KeyWanted, server_message
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.probed import Probed, Reply

URL = "http://node:8000"
ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}}], "usage": {"completion_tokens": 0}}
WORD = {"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": 1}}
USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 8, "prompt_tokens_details": None}}
MODELS = {"data": [{"id": "m", "root": "/models/m", "owned_by": "vllm", "max_model_len": 4096}]}
METRICS = 'vllm:num_requests_running{model_name="m"} 0.0\n'


def stream(*chunks: dict, **headers: str) -> Reply:
    lines = [f"data: {json.dumps(chunk)}" for chunk in chunks]
    return make_reply("\n\n".join([*lines, "data: [DONE]", ""]), **headers)


VLLM: dict[str, Shown] = {
    "/v1/models": make_reply(MODELS),
    "/version": make_reply({"version": "0.21.0"}),
    "/metrics": make_reply(METRICS),
    "/tokenize": make_reply({"count": 3, "tokens": [1, 2, 3]}),
    "/v1/chat/completions": stream(ROLE, WORD, USAGE),
}


async def probed(answers: dict[str, Shown] | None, **target: str) -> Probed:
    return await probe_server(TableAsker(answers), FakeClock(), BenchTarget(URL, **target))


async def test_vllm_reports_all() -> None:
    """Engine by its figures, version, context, and that usage comes with every chunk."""
    found = await probed(VLLM)
    assert (found.engine, found.engine_version, found.context, found.model) == ("vllm", "0.21.0", 4096, "m")
    assert found.usage and found.continuous and found.tokenize and found.thinking and found.ignore_eos
    assert (found.metrics, found.root, found.simulated) == ("/metrics", "/models/m", False)


async def test_the_mark_of_a_simulation_is_seen() -> None:
    """A server that reports that it is simulated is never taken for real."""
    marked = stream(ROLE, WORD, USAGE, x_sparkwright_simulated="1")
    assert (await probed({**VLLM, "/v1/chat/completions": marked})).simulated


async def test_llama_cpp_is_known_by_its_properties() -> None:
    """Its own /props reports what it is without a page of figures; the context is that of one slot."""
    props = {"default_generation_settings": {"n_ctx": 2048}, "build_info": "b10269-abc"}
    answers = {**VLLM, "/v1/models": make_reply({"data": [{"id": "m"}]}), "/props": make_reply(props)}
    found = await probed({path: answer for path, answer in answers.items() if path not in ("/metrics", "/version")})
    assert (found.engine, found.engine_version, found.context) == ("llama-cpp", "b10269-abc", 2048)


async def test_a_server_that_reports_nothing() -> None:
    """Only models and answers: nothing else is claimed."""
    bare = {"/v1/models": make_reply({"data": [{"id": "m"}]}), "/v1/chat/completions": stream(WORD | {"usage": None})}
    found = await probed(bare)
    told = (found.engine, found.engine_version, found.context, found.metrics)
    assert told == ("", "", 0, "")
    assert not (found.usage or found.continuous or found.tokenize)


async def test_an_option_that_is_refused_is_left_away() -> None:
    """A strict server refuses the whole body for one field: each is tried alone."""

    def strict(body: str) -> Reply:
        return make_reply({"error": {"message": "no ignore_eos"}}, 400) if "ignore_eos" in body else stream(WORD, USAGE)

    found = await probed({**VLLM, "/v1/chat/completions": strict})
    assert (found.ignore_eos, found.thinking, found.continuous) == (False, True, True)


async def test_a_model_that_is_not_served() -> None:
    """The message names those that are."""
    with pytest.raises(UsageError, match="does not serve 'x'; it serves: m"):
        await probed(VLLM, model="x")


async def test_aliases_of_one_model_are_one() -> None:
    """Several names of the same weights need no choice; several models do."""
    two = {"data": [{"id": "a", "root": "/m"}, {"id": "b", "root": "/m"}]}
    assert (await probed({**VLLM, "/v1/models": make_reply(two)})).model == "a"
    two = {"data": [{"id": "a", "root": "/m"}, {"id": "b", "root": "/n"}]}
    with pytest.raises(UsageError, match="several models: a, b"):
        await probed({**VLLM, "/v1/models": make_reply(two)})


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_is_wanted(status: int) -> None:
    """The error lets the caller try another key."""
    with pytest.raises(KeyWanted, match=f"HTTP {status}, it wants a key: Unauthorized"):
        await probed({"/v1/models": make_reply({"error": "Unauthorized"}, status)})


async def test_a_busy_server_is_waited_for_within_bounds() -> None:
    """It reports how long; one that wants more than a minute is not waited for."""
    turns = iter([make_reply("", 429, retry_after="20"), make_reply(MODELS)])
    clock = FakeClock()
    await probe_server(TableAsker({**VLLM, "/v1/models": lambda _: next(turns)}), clock, BenchTarget(URL))
    assert clock.monotonic() >= 20
    with pytest.raises(NotReady, match="come again in 90 s"):
        await probed({"/v1/models": make_reply("", 503, retry_after="90")})


async def test_an_error_inside_a_stream_is_no_answer() -> None:
    """HTTP 200 proves nothing."""
    with pytest.raises(NotReady, match="an error instead of tokens"):
        await probed({**VLLM, "/v1/chat/completions": stream({"error": {"message": "EngineCore died"}})})


async def test_something_else_listens() -> None:
    """A web page is no list of models."""
    with pytest.raises(NotReady, match="no list of models"):
        await probed({"/v1/models": make_reply("<html>hello</html>")})


@pytest.mark.parametrize(
    "written", ["node:8000", "http://node:8000/", "http://node:8000/v1", "http://node:8000/v1/models"]
)
def test_the_root_however_it_is_written(written: str) -> None:
    """The root is the same with or without scheme, slash and /v1."""
    assert BenchTarget(written).root == URL


async def test_behind_a_gateway_the_engine_describes_itself() -> None:
    """The gateway passes on answers only: version, figures and tokenizer come from the engine, by its own address."""
    gateway = {path: VLLM[path] for path in ("/v1/models", "/v1/chat/completions")}
    engine = {path: answer for path, answer in VLLM.items() if path not in gateway}
    asker = TableAsker({**{f"/door{path}": answer for path, answer in gateway.items()}, **engine})
    target = BenchTarget(f"{URL}/door", behind=BenchTarget(URL))
    found = await probe_server(asker, FakeClock(), target)
    assert (found.engine, found.engine_version, found.metrics, found.tokenize) == ("vllm", "0.21.0", "/metrics", True)
    assert found.url == f"{URL}/door" and found.usage


def test_a_servers_words_draw_nothing_on_the_terminal() -> None:
    """Colours, a cleared screen and line breaks are left out; letters of any script stay."""
    assert server_message(make_reply({"error": {"message": "\x1b[2J\x1b[31mkein\nModell für \u0007dich"}}, 404)) == (
        "[2J[31mkein Modell für dich"
    )
