"""Logs of the real vLLM 0.33.0 made to fail (tools/gpu/failures.py): the cause that `diagnose` names first."""

from pathlib import Path

import pytest

from sparkwright.causes.diagnose import Reader, diagnosis, log_book
from unit.causes.test_real_failures import CAUSES

LOGS = Path(__file__).resolve().parents[2] / "data" / "captures" / "vllm-0.33.0-failures"
# Differently from 0.21.0: a missing shard is refused, and an address of another machine is not used on one node.
CHANGED = {
    "shard-missing": "checkpoint-shards-missing",
    "host-ip-elsewhere": "",
    "kv-region-left": "container-shm-too-small",  # not named before this log
    "kernel-package-missing": "optional-dependency-missing-in-image",
}
# What is not named first.
MISSED = {
    "gloo-interface": "gloo-interface-name-missing-on-node",  # `sparkwright diagnose FILE` names it first, at 0.50
    "worker-never-comes": "rendezvous-peer-missing",
    "tokenizer-not-loaded": "",
    "config-key-missing": "",
}
NAMES = sorted(path.stem for path in LOGS.glob("*.log"))


def first_cause(name: str) -> tuple[str, float]:
    """Key and confidence of the cause named first."""
    reader = Reader(log_book(), name, 2026)
    reader.feed((LOGS / f"{name}.log").read_bytes())
    reader.close()
    return next(((cause.key, cause.confidence) for cause in diagnosis([reader], {}).causes), ("", 0.0))


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in NAMES if name not in MISSED])
def test_failures_of_a_newer_release_are_named_by_their_cause(name: str) -> None:
    assert first_cause(name)[0] == (CAUSES | CHANGED)[name]


@pytest.mark.parametrize("name", sorted(MISSED))
def test_what_is_missed_is_not_reported_with_confidence(name: str) -> None:
    """Guards the worst error: a wrong cause that reads as certain."""
    key, sure = first_cause(name)
    assert key == MISSED[name] or sure < 0.9
