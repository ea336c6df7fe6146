"""`python -m drills.routing [--rounds 5] [--streams 64]`: a table of ratios, with the candidates that are installed."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from drills.routing.candidates import RoutingCandidate, candidates, free_port

FIRST, STEP, TOKENS, PROMPT, SPREAD = 0.1, 0.02, 100, 4000, 1.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"id":"cmpl-1","object":"chat.completion.chunk","choices":[{"delta":{"content":" token"}}]}\n\n'
PIECE = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
MESSAGES = [{"role": "user", "content": "x" * PROMPT}]
BODY = json.dumps({"messages": MESSAGES, "model": "alpha", "stream": True}).encode()


async def engine(port: int) -> None:
    """Answers each request with its first token after FIRST, and one more every STEP, all on a clock of their own."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        began = time.monotonic()
        if b"content-length:" in head:
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        elif b"chunked" in head:
            await reader.readuntil(b"0\r\n\r\n")
        if b"get /v1/models" in head or b"get /model" in head or b"get /health" in head or b"get /server_info" in head:
            body = json.dumps({"object": "list", "data": [{"id": "alpha"}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
            writer.close()
            return
        for number in range(TOKENS):
            await asyncio.sleep(max(0.0, began + FIRST + number * STEP - time.monotonic()))
            if writer.is_closing():
                return
            writer.write((HEAD if number == 0 else b"") + PIECE)
        writer.write(b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


async def stream(candidate: RoutingCandidate) -> tuple[float, list[float]]:
    """Seconds to the first token, and between tokens."""
    opened = asyncio.open_unix_connection(candidate.socket) if candidate.socket else None
    began = time.monotonic()
    reader, writer = await (opened or asyncio.open_connection("127.0.0.1", candidate.port))
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {candidate.key}\r\nContent-Length: {len(BODY)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + BODY)
    times: list[float] = []
    rest = b""
    while data := await reader.read(65536):
        now = time.monotonic()
        rest = (rest + data)[-len(EVENT) * 200 :]
        times += [now] * rest.count(b"data: ")
        rest = rest[rest.rfind(b"data: ") + 6 :] if b"data: " in rest else rest[-5:]
    writer.close()
    assert len(times) == TOKENS, (candidate.name, len(times), rest[-300:])
    return times[0] - began, [after - before for before, after in pairwise(times)]


async def one_round(candidate: RoutingCandidate, streams: int) -> tuple[list[float], list[float]]:
    """They begin within SPREAD seconds: the last ones while all others stream."""

    async def later(number: int) -> tuple[float, list[float]]:
        await asyncio.sleep(number * SPREAD / streams)
        return await stream(candidate)

    found = await asyncio.gather(*(later(number) for number in range(streams)))
    return [first for first, _ in found], [gap for _, gaps in found for gap in gaps]


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def measure(found: list[RoutingCandidate], rounds: int, streams: int) -> None:
    for one in tuple(found):
        try:
            await stream(one)
        except (OSError, AssertionError) as error:
            print(f"left out: {one.name}: {error!r}"[:300])
            found.remove(one)
    rows: dict[str, list[tuple[list[float], list[float]]]] = {one.name: [] for one in found}
    used = dict.fromkeys(rows, 0.0)
    for number in range(rounds + 1):
        for one in found if number % 2 else reversed(found):
            before = cpu_seconds(one)
            result = await one_round(one, streams)
            if number:  # the first round warms up
                rows[one.name].append(result)
                used[one.name] += cpu_seconds(one) - before
    print(f"{streams} streams, {rounds} rounds, {TOKENS} tokens each, one every {STEP * 1000:g} ms")
    print(f"Percentiles of all {streams * rounds} first tokens and of all gaps, not of rounds.")
    print("| path | TTFT p50, ms | p99, ms | p50, more | p99, more | time a token, ratio | gap p99, ms | its CPU, ms |")
    print("| -- | -- | -- | -- | -- | -- | -- | -- |")
    base = rows["direct"]
    for name, results in rows.items():
        p50, p99, gap = pooled(results, 0, 0.5), pooled(results, 0, 0.99), pooled(results, 1, 0.99)
        more = f"{p50 - pooled(base, 0, 0.5):+.1f} | {p99 - pooled(base, 0, 0.99):+.1f}"
        ratio = median(mean(gaps) / mean(b[1]) for (_, gaps), b in zip(results, base, strict=True))
        cpu = f"{used[name] / streams / rounds * 1000:.1f}" if used[name] else "-"
        print(f"| {name} | {p50:.1f} | {p99:.1f} | {more} | {ratio:.4f} | {gap:.1f} | {cpu} |")


def pooled(results: list[tuple[list[float], list[float]]], which: int, share: float) -> float:
    """The percentile over all rounds, in ms. which: 0 for times to the first token, 1 for those between tokens."""
    return percentile([value for result in results for value in result[which]], share) * 1000


def cpu_seconds(candidate: RoutingCandidate) -> float:
    """CPU time that the candidate's own program has used, 0 where it has none. Behind Caddy that is Caddy's."""
    used = 0
    for process in candidate.processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names; [all]")
    parser.add_argument("--engine", type=int, default=0)
    given = parser.parse_args()
    if given.engine:
        asyncio.run(engine(given.engine))
        return
    port, replica = free_port(), free_port()
    servers = [
        subprocess.Popen([sys.executable, "-m", "drills.routing", "--engine", str(one)]) for one in (port, replica)
    ]
    with tempfile.TemporaryDirectory() as folder:
        time.sleep(1)
        found = [RoutingCandidate("direct", port), *candidates(Path(folder), port, replica)]
        chosen = [one for one in found if one.name == "direct" or any(part in one.name for part in given.only)]
        try:
            asyncio.run(measure(chosen, given.rounds, given.streams))
        finally:
            for process in (*servers, *(process for one in found for process in one.processes)):
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
