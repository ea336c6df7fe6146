"""A real engine: llama.cpp's server on the CPU, started with exactly the words and environment that render() gives."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fakes.ports import free_port
from functional.facts.shell import run as run_here
from functional.tiny_gguf import TO_THE_LIMIT, write_tiny_gguf
from patience import PATIENCE
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.openai_http import OpenAiEndpoint
from sparkwright.app.serve.coherence import judged_answers
from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import EngineFound
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Runtime, Serving
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext, files_at
from sparkwright.engines.flags import check_flags
from sparkwright.engines.identity import question
from sparkwright.engines.tables import metric_names
from sparkwright.evals.coherence import Coherence
from sparkwright.facts.engine_image import engine_of_node, parse_found
from sparkwright.facts.engine_log import read_log

xllamacpp = pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
VERSION = "2026.10.11549"
KEY = "k-only-for-this-test"
RECIPE = Recipe(
    name="tiny",
    title="Random weights",
    model=Model(path="tiny.gguf", served_name="tiny"),
    engine=EngineChoice("llama-cpp", VERSION, Runtime.PROCESS, venv=str(Path(sys.prefix))),
    serving=Serving(context=512, sequences=2, batched_tokens=256),
    flags={"n-gpu-layers": 0, "threads": 2},
)

HOST_CACHE = replace(RECIPE, serving=replace(RECIPE.serving, host_cache=1 << 30))
NO_CACHE = {**RECIPE.flags, "cache-ram": 0}


def render_rank(model: Path, port: int, recipe: Recipe = RECIPE) -> RankSpec:
    own = str(model.parent)
    paths = {"here": NodePaths(own, own, own, own)}
    context = RenderContext(paths, {"here": str(model)}, port=port, api_key=Secret(KEY), deployment="tiny")
    (spec,) = engine("llama-cpp").render(recipe, Placement(("here",), {}), context)
    folder = Path(files_at(recipe, context, "here", 0))
    folder.mkdir(parents=True, exist_ok=True)
    for file in spec.files:
        (folder / file.name).write_text(file.text)
    return spec


async def start(spec: RankSpec, log: Path) -> asyncio.subprocess.Process:
    secrets = {name: value.reveal() for name, value in spec.secrets.items()}
    with log.open("wb") as out:
        return await asyncio.create_subprocess_exec(*spec.argv, env={**os.environ, **spec.env, **secrets}, stderr=out)


@asynccontextmanager
async def served(spec: RankSpec, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The running server, once its log reports ready; killed at the end if the test did not stop it."""
    process = await start(spec, log)
    try:
        async with asyncio.timeout(PATIENCE):
            while read_log(log.read_text().splitlines(), engine("llama-cpp").read).ready_after is None:
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.02)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_the_preflight_imports_the_wheel_with_the_venvs_own_python(tmp_path: Path) -> None:
    """The check before a start names a wheel that pip has installed and the node cannot load; another Python's wheel is
    no answer."""
    python, site = tmp_path / "bin/python", tmp_path / "site"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    asked = question(replace(RECIPE, engine=replace(RECIPE.engine, venv=str(tmp_path))), "python3")
    assert asked

    def seen() -> object:
        return parse_found(run_here(engine_of_node(asked), PATH=os.environ["PATH"]))

    assert seen() == EngineFound("", {}, str(python)), "this machine's own Python has it"
    about = site / f"xllamacpp-{VERSION}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: xllamacpp\nVersion: {VERSION}\n")
    (site / "xllamacpp").symlink_to(Path(xllamacpp.__file__).parent)
    assert seen() == EngineFound("", {"xllamacpp": VERSION}, str(python))
    (site / "xllamacpp").unlink()
    (site / "xllamacpp").mkdir()
    for text, why in (
        ("import _ctypes, ctypes; ctypes.CDLL('libnope.so.1')", "exit 1: OSError: libnope.so.1: cannot open shared"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "exit 132: "),
    ):
        (site / "xllamacpp/__init__.py").write_text(text)
        found = seen()
        assert isinstance(found, EngineFound) and found.broken.startswith(why.strip()), found


def test_the_venv_needs_nothing_but_xllamacpp(tmp_path: Path) -> None:
    """The launcher travels with the rank: a Python whose only package is xllamacpp runs it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "xllamacpp").symlink_to(Path(xllamacpp.__file__).parent)
    spec = render_rank(tmp_path / "none.gguf", free_port())
    alone = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site)}
    words = [spec.argv[0], "-S", *spec.argv[1:], "--brand-new"]
    done = subprocess.run(words, capture_output=True, text=True, env=alone, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (1, "error: invalid argument: unrecognized arguments: --brand-new\n")


async def test_it_serves_a_streamed_chat(tmp_path: Path) -> None:
    """The rendered command leads from recipe to tokens: it loads, streams an answer with usage, keeps its key, and
    stops."""
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), free_port())
    assert check_flags("llama-cpp", VERSION, spec.argv) == ()
    base = f"http://127.0.0.1:{spec.listens[0][1]}"
    # A connection each: llama.cpp closes one after a stream, and a request that is on its way just then gets no answer.
    alone = httpx.Limits(max_keepalive_connections=0)
    client = httpx.AsyncClient(base_url=base, timeout=60, limits=alone)
    async with served(spec, tmp_path / "log") as process, client:
        assert (await client.post("/v1/chat/completions", json={"messages": []})).status_code == 401
        client.headers["Authorization"] = f"Bearer {KEY}"
        assert [m["id"] for m in (await client.get("/v1/models")).json()["data"]] == ["tiny"]
        chunks = await streamed_chat(client)
        assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
        assert chunks[-1]["usage"]["completion_tokens"] == 8
        page = (await client.get("/metrics")).text
        assert all(name in page for name in metric_names("llama-cpp").values())
        process.send_signal(signal.Signals[engine("llama-cpp").stop.signal])
        assert await asyncio.wait_for(process.wait(), engine("llama-cpp").stop.grace) == 0


async def streamed_chat(client: httpx.AsyncClient) -> list[dict]:
    """The chunks of a streamed answer of eight tokens."""
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "stream": True} | TO_THE_LIMIT
    async with client.stream(
        "POST", "/v1/chat/completions", json=body | {"stream_options": {"include_usage": True}}
    ) as r:
        assert r.status_code == 200
        lines = [line.removeprefix("data: ") async for line in r.aiter_lines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


async def test_a_missing_model_ends_with_the_reason(tmp_path: Path) -> None:
    """A start that fails exits with 1 at once, and its log names the file."""
    log = tmp_path / "log"
    process = await start(render_rank(tmp_path / "absent.gguf", free_port()), log)
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 1
    told = read_log(log.read_text().splitlines(), engine("llama-cpp").read)
    assert "absent.gguf" in told.root
    assert told.ready_after is None


async def test_a_flag_that_it_does_not_know_is_refused(tmp_path: Path) -> None:
    """The simulated server refuses like llama-server: exit code 1 and `error: invalid argument`, before anything is
    loaded."""
    log = tmp_path / "log"
    recipe = replace(RECIPE, flags={**RECIPE.flags, "max-model-len": 5})
    process = await start(render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), free_port(), recipe), log)
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 1
    assert "error: invalid argument" in log.read_text()


def test_the_same_seed_makes_the_same_model(tmp_path: Path) -> None:
    """The model of the tests is the same everywhere."""
    one, two = write_tiny_gguf(tmp_path / "1.gguf"), write_tiny_gguf(tmp_path / "2.gguf")
    assert one.read_bytes() == two.read_bytes()


async def test_random_weights_are_not_coherent(tmp_path: Path) -> None:
    """Guards `up`: a real engine with weights that say nothing answers every request, and none of the questions."""
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), free_port())
    endpoint, url = OpenAiEndpoint(SystemClock()), f"http://127.0.0.1:{spec.listens[0][1]}"
    async with served(spec, tmp_path / "log"):
        judged, tokens = await judged_answers(endpoint, url, "tiny", Secret(KEY))
    assert judged is not None and judged.coherence is Coherence.GARBLED and tokens, judged


@pytest.mark.parametrize(("recipe", "kept"), [(HOST_CACHE, True), (replace(RECIPE, flags=NO_CACHE), False)])
async def test_a_prompt_comes_back_from_host_memory(tmp_path: Path, recipe: Recipe, kept: bool) -> None:
    """Guards serving.host_cache on the real server: a prompt is not computed again although another took its place."""
    recipe, port = replace(recipe, serving=replace(recipe.serving, sequences=1)), free_port()
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), port, recipe)
    async with served(spec, tmp_path / "log"), httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as client:

        async def computed(prompt: str) -> int:
            body = {"prompt": prompt, "n_predict": 1, "cache_prompt": True}
            answer = await client.post(f"http://127.0.0.1:{port}/completion", json=body, timeout=60)
            return int(answer.json()["timings"]["prompt_n"])

        first = await computed("a" * 300)
        await computed("b" * 300)
        again = await computed("a" * 300)
    assert first > 250 and (again < 50) == kept
