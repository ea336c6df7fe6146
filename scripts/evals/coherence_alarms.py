"""False alarms of the coherence check: real starts of real models, each asked as `up` asks, and sampled on top.

coherence_alarms.py [--out FILE] [--minutes 30] [--samples 2] NAME=FILE.gguf:STARTS...

Each start is llama.cpp's server from the xllamacpp wheel as render() starts it, with other settings in turn (KV types,
threads, batches). Its answers at temperature 0 are judged by the rules of `up`; then `samples` sets at temperature 0.8,
each with a seed of its own, are. A line of JSON for each set is added to FILE, and all of
FILE is summed up at the end. The models are no part of the project.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx

HERE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests")]

from fakes.ports import free_port  # type: ignore[import-not-found]  # noqa: E402
from functional.test_llama_cpp import KEY, RECIPE, render_rank, start  # type: ignore[import-not-found]  # noqa: E402
from sparkwright.domain.recipe import Recipe  # noqa: E402
from sparkwright.evals.coherence import Judged, answer_tokens, judge_answers, questions  # noqa: E402

TEMPERATURE, READY_WITHIN, ANSWER_WITHIN = 0.8, 240.0, 300.0
SETTINGS = tuple(itertools.product(("", "q8_0"), (1, 2), (512, 64, 128), (2048, 1024)))
"""KV type ('' for the server's own), threads, tokens of a batch, tokens of context."""


def started_recipe(number: int) -> Recipe:
    kv, threads, batch, context = SETTINGS[number % len(SETTINGS)]
    serving = replace(RECIPE.serving, context=context, sequences=3, batched_tokens=batch, kv_dtype=kv)
    made: Recipe = replace(RECIPE, serving=serving, flags={"n-gpu-layers": 0, "threads": threads})
    return made


def linked_model(model: Path, folder: str) -> Path:
    """The model in a folder of its own: the rank's files lie next to it."""
    link = Path(folder) / "model.gguf"
    link.symlink_to(model.absolute())
    return link


async def measure_start(model: Path, number: int, samples: int) -> list[tuple[float, Judged | None]]:
    """The judged sets of one start: (temperature, judgement), None where an answer is missing.

    Raises TimeoutError if the server does not get ready.
    """
    port, found = free_port(), list[tuple[float, Judged | None]]()
    with tempfile.TemporaryDirectory(prefix="coherence-") as folder:
        process = await start(
            render_rank(linked_model(model, folder), port, started_recipe(number)), Path(folder) / "log"
        )
        try:
            url = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=ANSWER_WITHIN) as client:
                await until_healthy(client, url)
                found.append((0.0, await judged_sample(client, url, 0.0, 0)))
                for seed in range(number * samples, (number + 1) * samples):
                    found.append((TEMPERATURE, await judged_sample(client, url, TEMPERATURE, seed)))
        finally:
            process.kill()
            await process.wait()
    return found


async def until_healthy(client: httpx.AsyncClient, url: str) -> None:
    async with asyncio.timeout(READY_WITHIN):
        while True:
            try:
                if (await client.get(f"{url}/health")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)


async def judged_sample(client: httpx.AsyncClient, url: str, temperature: float, seed: int) -> Judged | None:
    """The judgement of one set of answers. `up` gives them 90 s; here a busy machine may take longer."""

    async def answer(text: str) -> str:
        body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": answer_tokens()}
        reply = await client.post(
            f"{url}/v1/chat/completions", json=body | {"temperature": temperature, "seed": seed + 1}
        )
        reply.raise_for_status()
        return str(reply.json()["choices"][0]["message"].get("content") or "")

    try:
        texts = await asyncio.gather(*(answer(one.ask) for one in questions()))
    except httpx.HTTPError:
        return None
    return judge_answers(list(zip(questions(), texts, strict=True)))


def summed_up(lines: Sequence[str]) -> str:
    """A row for each model and temperature: sets, and how often each judgement."""
    counts: dict[tuple[str, float], Counter[str]] = {}
    for line in lines:
        one = json.loads(line)
        counts.setdefault((one["model"], one["temperature"]), Counter())[one["judged"]] += 1
    words = ("coherent", "unknown", "garbled", "missing")
    rows = ["model                        temperature   sets  " + "  ".join(words)]
    for (model, temperature), told in sorted(counts.items()):
        figures = "  ".join(f"{told[word]:{len(word)}d}" for word in words)
        rows.append(f"{model:28} {temperature:11.1f}  {sum(told.values()):5d}  {figures}")
    return "\n".join(rows)


async def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="coherence_alarms", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/coherence.jsonl"))
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("models", nargs="*", metavar="NAME=FILE:STARTS")
    chosen = parser.parse_args(words)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    before = chosen.out.read_text().splitlines() if chosen.out.exists() else []
    done = Counter(json.loads(line)["model"] for line in before if json.loads(line)["temperature"] == 0)
    wanted = {name: rest.rpartition(":") for name, _, rest in (word.partition("=") for word in chosen.models)}
    end = time.monotonic() + chosen.minutes * 60
    for number in range(max((int(starts) for *_, starts in wanted.values()), default=0)):
        for name, (file, _, starts) in wanted.items():
            if done[name] <= number < int(starts) and time.monotonic() < end:
                found = await measure_start(Path(file), number, chosen.samples)
                with chosen.out.open("a") as out:
                    for temperature, judged in found:
                        told: dict[str, object] = {"model": name, "start": number, "temperature": temperature}
                        told |= {
                            "judged": judged.coherence if judged else "missing",
                            "why": judged.why if judged else "",
                        }
                        out.write(json.dumps(told | {"load": round(os.getloadavg()[0], 1)}) + "\n")
    print(summed_up(chosen.out.read_text().splitlines() if chosen.out.exists() else []))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
