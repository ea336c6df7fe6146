"""Logs of the real vLLM 0.21.0 made to fail (tools/gpu/failures.py): the first cause named is the true one."""

from pathlib import Path

import pytest

from sparkwright.causes.diagnose import Reader, diagnosis, log_book

LOGS = Path(__file__).resolve().parents[2] / "data" / "captures_logs"
# By the log itself; docs/acceptance/diagnose-vllm-0.21.0.md tells what was done. "": it serves, and nothing is named.
CAUSES = {
    "architecture-unknown": "model-architecture-unsupported",
    "backend-not-for-model": "attention-backend-unsupported-head-size",
    "backend-unknown": "attention-backend-name-unknown",
    "batch-below-context": "max-num-batched-tokens-too-small",
    "cache-not-writable": "cache-dir-permission-denied",
    "config-broken": "checkpoint-file-truncated-or-corrupt",
    "context-over-model": "max-model-len-above-model-limit",
    "custom-code": "trust-remote-code-required",
    "disk-full": "disk-full",
    "dp-gpus": "parallel-size-exceeds-gpus",
    "flag-misspelt": "cli-flag-renamed-or-removed",
    "flag-removed": "cli-flag-renamed-or-removed",
    "flag-unknown": "cli-flag-renamed-or-removed",
    "flag-without-value": "cli-flag-typo-or-quoting",
    "gloo-interface": "gloo-interface-name-missing-on-node",
    "gpu-hidden": "no-gpu-visible-in-container",
    "gpu-number": "no-gpu-visible-in-container",
    "host-ip-elsewhere": "host-ip-autodetect-wrong-interface",
    "host-not-here": "bind-address-not-available",
    "hub-unreachable": "hf-hub-unreachable",
    "killed-serving": "engine-core-died",
    "kv-none": "kv-cache-no-memory-left",
    "kv-too-small": "max-model-len-exceeds-kv-cache",
    "lora-missing": "model-path-or-repo-not-found",
    "master-unreachable": "firewall-or-routing-blocks-nccl",
    "memory-crowded": "other-process-holds-gpu-memory",
    "memory-held": "other-process-holds-gpu-memory",
    "model-folder-empty": "model-path-or-repo-not-found",
    "model-not-in-cache": "hf-cache-incomplete-offline",
    "model-type-unknown": "transformers-too-old-for-architecture",
    "no-linker": "host-compiler-missing-or-unsupported",
    "node-rank": "node-rank-misassigned",
    "open-files": "open-files-limit",
    "port-in-use": "port-already-in-use",
    "pp-gpus": "parallel-size-exceeds-gpus",
    "quantization-none": "quantization-flag-mismatch-checkpoint",
    "quantization-other": "quantization-flag-mismatch-checkpoint",
    "ray-not-installed": "optional-dependency-missing-in-image",
    "reasoning-parser-unknown": "cli-flag-value-unknown",
    "request-embeddings": "endpoint-unsupported-for-task",
    "request-max-tokens": "request-exceeds-max-model-len",
    "request-model": "served-model-name-mismatch",
    "request-no-key": "api-key-required-401",
    "request-picture": "endpoint-unsupported-for-task",
    "request-schema": "request-grammar-invalid",
    "request-too-long": "request-exceeds-max-model-len",
    "request-tools": "tool-call-parser-wrong-or-missing",
    "request-wrong-key": "api-key-required-401",
    "shape-mismatch": "",
    "shard-cut": "checkpoint-file-truncated-or-corrupt",
    "shard-missing": "",
    "shard-pointer": "checkpoint-file-truncated-or-corrupt",
    "speculation-method": "cli-flag-value-unknown",
    "speculation-no-head": "spec-decode-method-unsupported",
    "template-file-missing": "chat-template-missing",
    "template-missing": "chat-template-missing",
    "tokenizer-missing": "tokenizer-files-missing",
    "tool-parser-missing": "tool-call-parser-wrong-or-missing",
    "tool-parser-unknown": "tool-call-parser-wrong-or-missing",
    "tp-heads": "parallel-size-exceeds-gpus",
    "user-without-name": "container-user-without-name",
    "value-json": "cli-flag-typo-or-quoting",
    "value-json-key": "cli-flag-typo-or-quoting",
    "value-kv-dtype": "cli-flag-value-unknown",
    "value-length": "cli-flag-value-unknown",
    "value-seqs-zero": "cli-flag-value-unknown",
    "value-utilization": "cli-flag-value-unknown",
    "warmup-oom": "sampler-warmup-oom",
    "weights-missing": "checkpoint-shards-missing",
    "weights-too-large": "model-weights-too-large-for-node",
}
# What is still named wrongly, and why: neither may be told with confidence.
MISSED = {
    "killed-at-start": "engine-core-died",  # the log has no line of its own for it
    "worker-never-comes": "rendezvous-peer-missing",  # the address of the head is loopback, which is named
}


def first_cause(name: str) -> tuple[str, float]:
    """Key and confidence of the cause named first."""
    reader = Reader(log_book(), name, 2026)
    reader.feed((LOGS / f"d-{name}.log").read_bytes())
    reader.close()
    return next(((cause.key, cause.confidence) for cause in diagnosis([reader], {}).causes), ("", 0.0))


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(CAUSES))
def test_real_failures_are_named_by_their_cause(name: str) -> None:
    """Guards what users of the real engine see, not what we think that it prints."""
    assert first_cause(name)[0] == CAUSES[name]


@pytest.mark.parametrize("name", sorted(MISSED))
def test_what_is_missed_is_not_reported_with_confidence(name: str) -> None:
    """Guards the worst error: a wrong cause that reads as certain."""
    key, sure = first_cause(name)
    assert key == MISSED[name] or sure < 0.9


def test_every_recorded_failure_is_checked() -> None:
    """Guards against recordings that nothing inspects."""
    assert {path.stem.removeprefix("d-") for path in LOGS.glob("d-*.log")} == {*CAUSES, *MISSED}
