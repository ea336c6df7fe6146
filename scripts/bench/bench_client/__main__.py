"""`make bench-client`: measures and writes docs/reference/bench-client.md. A second call resumes the first.

python -m bench_client [--only NAMES] [--repeats N] [--streams N,N] [--fresh] [--page-only] [--budget SECONDS]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

from bench_client import page, session
from bench_client.clients import CLIENTS, BenchClient
from bench_client.ground import LeftOut, compiled, install_peers
from bench_client.session import Result, Results

Work = tuple[str, Callable[[], Result]]
MANY = 1000


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_client", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="names of clients, with commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--streams", default="8,64,256", help="how many at a time")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--page-only", action="store_true", help="write the page from what is there")
    parser.add_argument("--budget", type=float, default=1e9, help="begin nothing after so many seconds")
    chosen = parser.parse_args(words)
    kept, clients = Results(), [one for one in CLIENTS if not chosen.only or one.name in chosen.only.split(",")]
    if chosen.fresh:
        kept.path.unlink(missing_ok=True)
        kept = Results()
    left_out: list[LeftOut] = []
    if not chosen.page_only:
        left_out = install_peers([one.peer for one in clients if one.peer])
        for name in ("truth_server", "plain_client"):
            compiled(name)
        gone = {one.name for one in left_out}
        present = [one for one in clients if one.peer not in gone or not one.peer]
        streams = [int(word) for word in chosen.streams.split(",")]
        run_works(plan(present, streams, chosen.repeats), kept, time.monotonic() + chosen.budget)
    page.write(kept, left_out)
    return 0


def plan(clients: list[BenchClient], streams: list[int], repeats: int) -> Iterator[Work]:
    """Alternating: every client once at one size, then the next size; what takes long comes last."""
    for slow in (False, True):
        some = [one for one in clients if one.slow == slow]
        for repeat in range(repeats):
            for size in streams:
                for one in some:
                    yield f"{one.name} streams {size} {repeat}", lambda one=one, size=size: session.latency(one, size)  # type: ignore[misc]
            if not slow:
                yield from many_streams(some, repeat)
        for one in some:
            yield from falling_rates(one)


def many_streams(clients: list[BenchClient], repeat: int) -> Iterator[Work]:
    for one in clients:
        if one.name in ("plain", "sparkwright"):
            yield f"{one.name} streams {MANY} {repeat}", lambda one=one: session.latency(one, MANY)  # type: ignore[misc]


def falling_rates(client: BenchClient) -> Iterator[Work]:
    """Works from the highest rate down, until one is read right."""
    for rate in client.rates:
        yield f"{client.name} rate {rate} 0", lambda rate=rate: session.throughput(client, rate)  # type: ignore[misc]


def run_works(works: Iterator[Work], kept: Results, until: float) -> None:
    for key, work in works:
        name, kind, _, _ = key.split()
        done = kind == "rate" and any(one.get("off", 1.0) < session.WITHIN for one in kept.every(name, "rate"))
        if key in kept.results or done:
            continue
        if time.monotonic() > until:
            print("bench-client: the time is up; the next call goes on from here", file=sys.stderr)
            return
        try:
            result = work()
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        kept.put(key, result)
        print(f"bench-client: {key}: {page.result_text(result)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
