"""/metrics has vLLM 0.21.0's families, types, labels and buckets, and its figures follow the requests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sparkwright.simulator.metrics import number
from unit.simulator.inprocess import InProcessClient, MakeClient

SPECULATION = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 5}']
Families = dict[str, dict[str, Any]]


def families(text: str) -> Families:
    """The families: help, type, and the label sets (with `le`) of their samples, whose values are left out."""
    found: Families = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            found[name] = {"help": words, "samples": set()}
        elif line.startswith("# TYPE "):
            found[name]["type"] = line.rpartition(" ")[2]
        else:
            sample, _, labels = line.rpartition(" ")[0].partition("{")
            found[name]["samples"].add((sample, labels.rstrip("}")))
    return found


def vllm_only(found: Families) -> Families:
    """The families without those of the Python process and the HTTP layer, whose samples depend on the requests
    made."""
    return {k: v for k, v in found.items() if k.startswith("vllm:") and k != "vllm:cache_config_info"}


async def scrape(client: InProcessClient) -> str:
    return (await client.get("/metrics")).text


def metric_value(text: str, name: str, **labels: str) -> float:
    wanted = [f'{k}="{v}"' for k, v in labels.items()]
    found = re.findall(rf"^{re.escape(name)}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
    return next(float(number) for inner, number in found if all(w in inner for w in wanted))


@pytest.mark.parametrize(("file", "flags"), [("metrics-idle.txt", []), ("metrics-ngram.txt", SPECULATION)])
async def test_families_are_the_recorded_ones(
    captures: Path, make_client: MakeClient, file: str, flags: list[str]
) -> None:
    """Same families in the same order with the same help, type and label sets, and one of our own: the mark."""
    recorded = families((captures / file).read_text(encoding="utf-8"))
    client = await make_client(*flags)
    if flags:
        await client.post("/v1/completions", {"prompt": "one two", "max_tokens": 60, "ignore_eos": True})
    ours = families(await scrape(client))
    assert ours.pop("sparkwright_simulated")["type"] == "gauge"
    ours.pop("http_request_duration_seconds", None), recorded.pop("http_request_duration_seconds", None)
    same = [n for n in recorded if not n.startswith("http_")]
    assert [n for n in ours if not n.startswith("http_")] == same
    assert vllm_only(ours) == vllm_only(recorded)
    for name in same:
        assert (ours[name]["type"], ours[name]["help"]) == (recorded[name]["type"], recorded[name]["help"])


async def test_the_cache_config_has_the_recorded_labels(captures: Path, make_client: MakeClient) -> None:
    """vllm:cache_config_info has every label vLLM gives it, and for the same flags mostly the same values."""
    recorded = re.search(r"^vllm:cache_config_info{(.*)}", (captures / "metrics-idle.txt").read_text(), re.MULTILINE)
    ours = re.search(r"^vllm:cache_config_info{(.*)}", await scrape(await make_client()), re.MULTILINE)
    assert recorded and ours
    pairs = [dict(re.findall(r'(\w+)="([^"]*)"', found[1])) for found in (recorded, ours)]
    assert list(pairs[0]) == list(pairs[1])
    assert {k for k in pairs[0] if pairs[0][k] != pairs[1][k]} == {"num_gpu_blocks"}


async def test_counters_follow_the_requests(make_client: MakeClient) -> None:
    """Tokens, cache hits, latencies and reasons add up to what the usage fields reported."""
    client = await make_client("--enable-prompt-tokens-details")
    body = {"prompt": "word " * 100, "max_tokens": 20, "ignore_eos": True}
    usages = [(await client.post("/v1/completions", body)).json["usage"] for _ in range(2)]
    text = await scrape(client)
    prompt = sum(u["prompt_tokens"] for u in usages)
    cached = usages[1]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 0
    assert (
        metric_value(text, "vllm:prompt_tokens_total")
        == metric_value(text, "vllm:prefix_cache_queries_total")
        == prompt
    )
    assert metric_value(text, "vllm:prefix_cache_hits_total") == cached
    assert metric_value(text, "vllm:prompt_tokens_by_source_total", source="local_compute") == prompt - cached
    assert metric_value(text, "vllm:generation_tokens_total") == 40
    assert metric_value(text, "vllm:request_success_total", finished_reason="length") == 2
    for histogram in ("time_to_first_token_seconds", "e2e_request_latency_seconds", "request_decode_time_seconds"):
        assert metric_value(text, f"vllm:{histogram}_count") == 2
    assert metric_value(text, "vllm:inter_token_latency_seconds_count") == 38
    assert metric_value(text, "http_requests_total", handler="/v1/completions", status="2xx") == 2


async def test_speculation_is_counted(make_client: MakeClient) -> None:
    """Drafted and accepted tokens explain the steps: tokens = steps + accepted."""
    client = await make_client(*SPECULATION)
    await client.post("/v1/completions", {"prompt": "x", "max_tokens": 100, "ignore_eos": True})
    text = await scrape(client)
    drafts = metric_value(text, "vllm:spec_decode_num_drafts_total")
    accepted = metric_value(text, "vllm:spec_decode_num_accepted_tokens_total")
    assert metric_value(text, "vllm:spec_decode_num_draft_tokens_total") == 5 * drafts
    assert 0 < metric_value(text, "vllm:spec_decode_num_accepted_tokens_per_pos_total", position="4") <= drafts
    assert metric_value(text, "vllm:inter_token_latency_seconds_count") + 1 + accepted == pytest.approx(100, abs=6)


def test_numbers_are_printed_as_prometheus_does() -> None:
    """Whole numbers end in .0, large ones have an exponent (metrics-idle.txt)."""
    assert [number(v) for v in (0, 13790, 25.68, 14264918016, 1795233877.1)] == [
        "0.0", "13790.0", "25.68", "1.4264918016e+10", "1.7952338771e+09",
    ]  # fmt: skip
