"""False alarms of the coherence check: real starts of real models, each asked as `up` asks.

coherence_alarms.py [--out FILE] [--minutes 15] [--at-once 2] [--samples 0] NAME=FILE.gguf:STARTS...

Each start is llama.cpp's server from the xllamacpp wheel as render() starts it, with other settings in turn (KV types,
contexts, sequences, batches, flash attention), one thread each. Its answers at temperature 0 are judged by the code of
`up`, within its time limit; then `samples` sets at temperature 0.8 are, each with a seed of its own.

A line of JSON for each set is added to FILE once its start is over, with the answers and what the start cost. The same
call goes on where it was interrupted. All of FILE is summed up at the end, with every alarm and its answers: whether an
alarm is right is for a reader to say. The models are no part of the project; requantized.py makes further files of one.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

HERE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests")]

from fakes.ports import free_port  # type: ignore[import-not-found]  # noqa: E402
from functional.test_llama_cpp import KEY, RECIPE, render_rank, start  # type: ignore[import-not-found]  # noqa: E402
from sparkwright.adapters.machine import SystemClock  # noqa: E402
from sparkwright.adapters.openai_http import OpenAiEndpoint  # noqa: E402
from sparkwright.app.serve.coherence import judged_answers  # noqa: E402
from sparkwright.domain.command import Secret  # noqa: E402
from sparkwright.domain.deployment import Answer  # noqa: E402
from sparkwright.domain.recipe import Recipe  # noqa: E402
from sparkwright.evals.coherence import Coherence, Judged, answer_tokens, judge_answers, questions  # noqa: E402

TEMPERATURE, READY_WITHIN, ANSWER_WITHIN = 0.8, 120.0, 300.0
MISSING = "missing"
_TICKS = os.sysconf("SC_CLK_TCK")
_STRIDE = 37  # coprime to the number of settings: neighbours differ in all of them


@dataclass(frozen=True, slots=True)
class StartSettings:
    """kv: type of the cache, '' for the server's own. context: tokens of each sequence. batch: tokens."""

    kv: str
    context: int
    sequences: int
    batch: int
    flash: str

    def recipe(self) -> Recipe:
        serving = replace(
            RECIPE.serving,
            context=self.context,
            sequences=self.sequences,
            batched_tokens=self.batch,
            kv_dtype=self.kv,
        )
        flags = {"n-gpu-layers": 0, "threads": 1, "flash-attn": self.flash}
        made: Recipe = replace(RECIPE, serving=serving, flags=flags)
        return made


# A quantized cache needs flash attention.
_KINDS = (("", "off"), ("", "on"), ("q8_0", "on"), ("f16", "auto"), ("q5_1", "on"))
SETTINGS = tuple(
    StartSettings(kv, context, sequences, batch, flash)
    for (kv, flash), context, sequences, batch in itertools.product(
        _KINDS, (512, 1024, 2048), (1, 2, 3), (64, 128, 512, 256)
    )
)


@dataclass
class RecordingEndpoint:
    """The endpoint of `up`; texts: prompt -> answer."""

    real: OpenAiEndpoint
    texts: dict[str, str] = field(default_factory=dict)

    async def greedy(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        answer = await self.real.greedy(base_url, model, prompt, max_tokens, key)
        self.texts[prompt] = answer.text
        return answer


def settings_of(number: int) -> StartSettings:
    return SETTINGS[number * _STRIDE % len(SETTINGS)]


def linked_model(model: Path, folder: str) -> Path:
    """The model in a folder of its own: the rank's files lie next to it."""
    link = Path(folder) / "model.gguf"
    link.symlink_to(model.absolute())
    return link


async def measure_start(name: str, model: Path, number: int, samples: int) -> list[dict[str, object]]:
    """The judged sets of one start, as rows of the file. A server that does not get ready has a row, too."""
    port, settings, began = free_port(), settings_of(number), time.monotonic()
    told = f"kv={settings.kv or 'default'} context={settings.context} sequences={settings.sequences} "
    told += f"batch={settings.batch} flash={settings.flash}"
    about: dict[str, object] = {"model": name, "start": number, "settings": told}
    rows: list[dict[str, object]] = []

    def add(temperature: float, judged: Judged | None, texts: Sequence[str]) -> None:
        told = {"judged": judged.coherence if judged else MISSING, "why": judged.why if judged else ""}
        rows.append(about | {"temperature": temperature} | told | {"answers": list(texts)})

    with tempfile.TemporaryDirectory(prefix="coherence-") as folder:
        log = Path(folder) / "log"
        process = await start(render_rank(linked_model(model, folder), port, settings.recipe()), log)
        try:
            url = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=ANSWER_WITHIN) as client:
                if not await is_healthy_soon(client, url, process):
                    tail = log.read_text(errors="replace").splitlines()[-1:]
                    add(0.0, None, [f"not ready: {' '.join(tail)[:200]}"])
                    return rows
                ready, asked = time.monotonic() - began, RecordingEndpoint(OpenAiEndpoint(SystemClock()))
                judged, _ = await judged_answers(asked, url, "tiny", Secret(KEY))  # type: ignore[arg-type]
                add(0.0, judged, [asked.texts.get(one.ask, "") for one in questions()])
                seconds = {"ready_s": round(ready, 1), "answers_s": round(time.monotonic() - began - ready, 1)}
                for seed in range(number * samples, (number + 1) * samples):
                    add(TEMPERATURE, *await judged_sample(client, url, seed))
            cost = {"cpu_s": round(cpu_seconds(process.pid), 1), "load": round(os.getloadavg()[0], 1)}
            return [row | seconds | cost for row in rows]
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def is_healthy_soon(client: httpx.AsyncClient, url: str, process: asyncio.subprocess.Process) -> bool:
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until and process.returncode is None:
        try:
            if (await client.get(f"{url}/health")).status_code == 200:
                return True
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.2)
    return False


async def judged_sample(client: httpx.AsyncClient, url: str, seed: int) -> tuple[Judged | None, list[str]]:
    """The judgement of one set of answers at TEMPERATURE, with its texts."""

    async def answer(text: str) -> str:
        body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": answer_tokens()}
        reply = await client.post(
            f"{url}/v1/chat/completions", json=body | {"temperature": TEMPERATURE, "seed": seed + 1}
        )
        reply.raise_for_status()
        return str(reply.json()["choices"][0]["message"].get("content") or "")

    try:
        texts = await asyncio.gather(*(answer(one.ask) for one in questions()))
    except httpx.HTTPError:
        return None, []
    return judge_answers(list(zip(questions(), texts, strict=True))), list(texts)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def summed_up(lines: Sequence[str]) -> str:
    """A row for each model and temperature: sets, and how often each judgement; then every alarm with its answers."""
    counts: dict[tuple[str, float], Counter[str]] = {}
    alarms = list[str]()
    for line in lines:
        one = json.loads(line)
        counts.setdefault((one["model"], one["temperature"]), Counter())[one["judged"]] += 1
        if one["judged"] == Coherence.GARBLED:
            place = f"{one['model']} start {one['start']} temperature {one['temperature']}"
            alarms.append(f"alarm: {place}: {one['why']}\n       answers: {one.get('answers')!r}")
    words = (*Coherence, MISSING)
    rows = ["model                               temperature   sets  " + "  ".join(words)]
    for (model, temperature), told in sorted(counts.items()):
        figures = "  ".join(f"{told[word]:{len(word)}d}" for word in words)
        rows.append(f"{model:35} {temperature:11.1f}  {sum(told.values()):5d}  {figures}")
    return "\n".join([*rows, *alarms])


def left_to_do(words: Sequence[str], before: Sequence[str]) -> Iterator[tuple[str, Path, int]]:
    """(name, file, number) of starts that have no line yet, the models in turn."""
    done = {(one["model"], one["start"]) for one in map(json.loads, before) if one["judged"] != MISSING}
    wanted = {name: rest.rpartition(":") for name, _, rest in (word.partition("=") for word in words)}
    for number in range(max((int(starts) for *_, starts in wanted.values()), default=0)):
        for name, (file, _, starts) in wanted.items():
            if number < int(starts) and (name, number) not in done:
                yield name, Path(file), number


async def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="coherence_alarms", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/coherence.jsonl"))
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("models", nargs="*", metavar="NAME=FILE:STARTS")
    chosen = parser.parse_args(words)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    left = left_to_do(chosen.models, chosen.out.read_text().splitlines() if chosen.out.exists() else [])
    end = time.monotonic() + chosen.minutes * 60

    async def work() -> None:
        for name, file, number in left:
            if time.monotonic() >= end:
                return
            rows = await measure_start(name, file, number, chosen.samples)
            with chosen.out.open("a") as out:
                out.write("".join(f"{json.dumps(row)}\n" for row in rows))

    await asyncio.gather(*(work() for _ in range(chosen.at_once)))
    print(summed_up(chosen.out.read_text().splitlines() if chosen.out.exists() else []))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
