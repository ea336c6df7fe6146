"""Every parser on pasted output of the real tools' formats."""

import dataclasses

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Driver, Unknown
from unit.facts.subjects import ALL_FACTS, DATA, SUBJECTS, FactSample, picked, plain_value, samples
from unit.for_each import for_each

SAMPLES = samples()


@for_each("sample", SAMPLES, ids=lambda s: f"{s.subject}/{s.name}")
def test_sample_is_read_as_its_file_states(sample: FactSample) -> None:
    """Guards what the sample's own `guards` sentence reports."""
    found = plain_value(SUBJECTS[sample.subject](sample.done))
    assert picked(found, sample.expect) == sample.expect, sample.guards


def test_every_folder_has_a_parser_and_every_text_its_expectation() -> None:
    """Guards that a pasted sample cannot lie around unread."""
    assert {path.name for path in DATA.iterdir() if path.is_dir()} == set(SUBJECTS)
    assert {p.with_suffix("") for p in DATA.glob("*/*.txt")} == {p.with_suffix("") for p in DATA.glob("*/*.json")}
    assert all(sample.guards.endswith(".") for sample in SAMPLES)


def test_serial_number_never_leaves_the_parser() -> None:
    """Guards that a machine's serial number is in no fact, even if dgx-release came whole."""
    done = next(s.done for s in SAMPLES if (s.subject, s.name) == ("identity", "full-release"))
    assert "S3CR3T" in done.stdout
    assert "S3CR3T" not in repr(ALL_FACTS["identity"].read(done))
    assert "S3CR3T" not in repr(ALL_FACTS["identity"].read(dataclasses.replace(done, stdout=done.stdout[80:])))


@for_each("name", ALL_FACTS)
def test_a_command_killed_at_its_timeout_is_unknown(name: str) -> None:
    """Guards that half an answer is not taken for a whole one."""
    fact = ALL_FACTS[name]
    found = fact.read(Completed(124, "@@ ss\n@@ rdma\n@@ exit\n0\n", ""))
    assert isinstance(found, Unknown)
    assert found.why == f"no answer within {fact.command.timeout:g} s"


def test_torn_driver_needs_both_versions() -> None:
    """Guards that an unknown firmware version is neither torn nor paired."""
    assert Driver("580.1", "580.2").torn is True
    assert Driver("580.1", "580.1").torn is False
    assert isinstance(Driver("580.1", Unknown("")).torn, Unknown)


def test_facts_only_read() -> None:
    """Guards that gathering facts changes nothing on a node, which its audit log would have to show."""
    assert [name for name, fact in ALL_FACTS.items() if fact.command.changes] == []
