"""Keys in text that people are shown."""

from sparkwright.domain.known_keys import mask_keys
from unit.for_each import for_each

HF, SK = "hf_" + "aB3dE" * 7, "sk-" + "q1W2" * 12


@for_each(
    "text, shown",
    [
        (f"401 for token {HF}: denied", "401 for token hf_***: denied"),
        (f"api_key={SK}", "api_key=sk-***"),
        ("sk-sw-" + "1f" * 24, "sk-***"),
        ("sk-proj-" + "Ab_9" * 10 + ", next", "sk-***, next"),
        (f"Authorization: Bearer {HF}.x", "Authorization: Bearer ***"),
        ("authorization: bearer abcdefgh12345678", "authorization: bearer ***"),
        ("nvapi-" + "x9" * 20, "nvapi-***"),
    ],
)
def test_keys_are_masked(text: str, shown: str) -> None:
    """Guards incidents and messages: an engine that prints its key must not have it sent to a chat."""
    assert mask_keys(text) == shown


def test_words_that_only_look_alike_stay() -> None:
    """Guards the evidence itself: file names, kinds of trouble and ordinary words are no keys."""
    for text in (
        "hf_quant_config.json",
        "disk-cache-slots",
        "risk-free, task-1234567890123",
        "a bearer of 12 letters",
        "sk-learn",
        "rank 1 on spark-2",
        "/models/hf_cache/models--org--name",
    ):
        assert mask_keys(text) == text


def test_a_long_text_takes_no_long_time() -> None:
    """Guards the supervisor's loop: megabytes of what nearly are keys are read once."""
    assert mask_keys("sk-" * 50_000 + "bearer " * 10_000).startswith("sk-sk-")
