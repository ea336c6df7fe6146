"""The causes that messages of engines state (causes/messages.txt)."""

from pathlib import Path

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes import diagnose, explanation, messages
from sparkwright.causes.load import families
from sparkwright.causes.messages import StatedCause, stated_by, stated_causes, stated_in
from sparkwright.causes.near_messages import MessageIndex
from sparkwright.engines.messages import PROGRAMS, SLOT, listed, message_of
from sparkwright.logscan.sign import LIKELY, POSSIBLE

TABLE = Path(messages.__file__).with_name("messages.txt").read_text(encoding="utf-8")
VALUES = ("7", "foo", "12", "bar")
# Each message, and the cause that a rule found by words of the same line before the table was there.
MISTAKEN = (
    ("ValueError: Not enough host memory for unified page-envelope backing. Requesting 96 GB but only have 41 GB free.",
     "host-out-of-memory", "model-weights-too-large-for-node"),
    ("RuntimeError: Decode peer is missing a transfer entry for model layer 7",
     "kv-transfer-between-servers-fails", "model-download-broke-off"),
)  # fmt: skip


def test_each_template_is_one_that_an_engine_has_and_states_a_cause_of_the_catalogue() -> None:
    """Guards a table that names what no engine prints, or a key that `diagnose` does not have."""
    keys = {cause.key for causes in families().values() for cause in causes}
    known = {row.split("\t")[1] for program in PROGRAMS for row in listed(program) if not row.startswith("# ")}
    stated = list(stated_causes(TABLE))
    assert {cause.key for _, cause in stated} <= keys
    assert {template for template, _ in stated} <= known
    assert len({template for template, _ in stated}) == len(stated)


def test_a_line_of_another_form_is_refused_with_its_number() -> None:
    """Guards a template that is silently lost by a typing mistake."""
    form = "# remark\n\n[a-key]\n= exact {}\n~ usual\n"
    assert list(stated_causes(form)) == [
        ("exact {}", StatedCause("a-key", LIKELY)),
        ("usual", StatedCause("a-key", POSSIBLE)),
    ]
    for wrong in ("= before any key", "[a-key]\n=no space", "[a-key\n"):
        with pytest.raises(ValueError, match=r"messages.txt:\d: expected"):
            list(stated_causes(wrong))


@pytest.mark.parametrize(("line", "key", "before"), MISTAKEN)
def test_what_a_message_states_comes_before_what_its_words_suggest(line: str, key: str, before: str) -> None:
    """Guards owners of current engines: four in ten of their refusals were taken for a neighbour's."""
    stated = stated_by(message_of(line.partition(": ")[2]))
    assert stated and stated.key == key
    assert examine([("log", [line.encode()])], 2026, {}).causes[0].key == key != before


def test_a_message_that_another_one_repeats_states_its_cause() -> None:
    """Guards errors that a caller prints behind its own: `X failed: Y`."""
    inner = "Can not found rewrite for architectures: ['NewForCausalLM']"
    for line in (f"RuntimeError: {inner}", f"ERROR: engine could not be made: {inner}", f"ERROR: a: b: {inner}"):
        found = examine([("log", [line.encode()])], 2026, {}).causes
        assert found and found[0].key == "model-architecture-unsupported"
    body = "the engine was made: all is well with the model"
    assert stated_in(body, message_of(body), str) is None


def test_a_short_message_is_its_program_s_only_where_the_log_names_the_program() -> None:
    """Guards what other programs print in the same few words."""
    line = "ERROR: failed to parse grammar\n"
    of_it, of_any = (examine([("log", [log.encode()])], 2026, {}) for log in (f"llama.cpp server\n{line}", line))
    assert [one.key for one in of_it.causes][:1] == ["request-grammar-invalid"]
    assert stated_in("failed to parse grammar", message_of("failed to parse grammar"), str) is None
    assert not of_any.causes or of_any.causes[0].confidence < LIKELY


def test_a_message_in_a_log_that_serves_names_nothing() -> None:
    """Guards healthy servers: the same words as information are no failure."""
    line = "INFO 11-30 10:00:00 [x.py:1] Decode peer is missing a transfer entry for model layer 7\n"
    served = line + "INFO:     Application startup complete.\n"
    assert not [
        cause for cause in examine([("log", [served.encode()])], 2026, {}).causes if cause.confidence >= POSSIBLE
    ]


@pytest.mark.full
def test_nearly_every_message_is_answered_with_the_cause_that_it_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the table against rules that take its lines, and the rules' need of it: alone they know a third."""
    stated = list(stated_causes(TABLE))
    assert _answered_as_stated(stated) > 0.96 * len(stated)
    monkeypatch.setattr(explanation, "stated_in", lambda body, message, log: None)
    monkeypatch.setattr(diagnose, "message_index", lambda: MessageIndex([]))
    assert _answered_as_stated(stated) < 0.4 * len(stated)


def _answered_as_stated(stated: list[tuple[str, StatedCause]]) -> int:
    right = 0
    for template, cause in stated:
        values = iter(VALUES * template.count(SLOT))
        text = "".join(part + (next(values) if more else "") for part, more in _pieces(template))
        program = message.program if (message := message_of(text)) else ""
        found = examine([("log", [f"{program} starts\nValueError: {text}\n".encode()])], 2026, {}).causes
        right += bool(found) and found[0].key == cause.key
    return right


def _pieces(template: str) -> list[tuple[str, bool]]:
    """Its own text in order, and whether a value follows."""
    parts = template.split(SLOT)
    return [(part, at + 1 < len(parts)) for at, part in enumerate(parts)]
