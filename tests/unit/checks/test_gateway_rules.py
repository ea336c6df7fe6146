"""The rules about the gateway, each in a context where it fires and in some where it must not."""

from dataclasses import replace

from sparkwright.checks.catalog import check_all
from sparkwright.domain.check import Context
from sparkwright.domain.finding import Severity
from sparkwright.domain.service import PairTrouble
from unit.checks.gateway_cases import FIRING, SILENT, gateway, pair_context
from unit.checks.samples import run_check
from unit.for_each import for_each


@for_each("code", FIRING)
def test_rule_fires(code: str) -> None:
    """Guards that the defect is reported with all that a user needs, and that it never stops the engine."""
    findings = run_check(code, FIRING[code])
    assert findings
    for finding in findings:
        assert all((finding.subject, finding.title, finding.evidence, finding.cause, finding.remedy))
        assert finding.severity is Severity.WARN
    assert [f.code for f in check_all(replace(FIRING[code], recipe=None, facts={}))] in ([code], [])


@for_each("code, why, where", SILENT, ids=lambda value: value if isinstance(value, str) else "")
def test_rule_is_silent(code: str, why: str, where: Context) -> None:
    """Guards that what looks like the defect and is none is not reported."""
    assert run_check(code, where) == []


@for_each("trouble", PairTrouble)
def test_every_trouble_of_a_certificate_has_words(trouble: PairTrouble) -> None:
    """Guards that none is left without its remedy."""
    (finding,) = run_check("DOOR003", pair_context(trouble=trouble))
    assert finding.remedy.startswith("on spark-1: ")


def test_a_private_key_that_all_can_read_is_reported_next_to_the_keys_file() -> None:
    """Guards that both secrets are inspected, each with its own remedy."""
    both = replace(gateway(keys_mode="666"), gateway=replace(pair_context(key_mode="644").gateway, keys_mode="666"))  # type: ignore[type-var]
    assert [f.remedy.split(": ")[1].split(" /")[0] for f in run_check("DOOR005", both)] == ["chmod 600", "chmod o="]


def test_who_holds_the_port_is_named_as_far_as_it_is_known() -> None:
    """Guards that a program of another user is not called by a question mark."""
    assert "nginx" in run_check("DOOR006", gateway(holder="nginx"))[0].title
    assert "another user" in run_check("DOOR006", gateway(holder="?"))[0].title
