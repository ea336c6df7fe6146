"""The page: self-contained, forbidden the network, honest about what it shows."""

import hashlib
import json
import re
from base64 import b64encode
from dataclasses import replace
from importlib.resources import files

from fakes.runs import agent_plans, depth_plans
from sparkwright.domain.summary import RunSummary
from sparkwright.report.html import report_page
from unit.report.made import agent_levels, compared, level_summary, summary
from unit.report.test_agentic import TTFT

ASSETS = files("sparkwright.report") / "assets"
EVIL = "</script><img src=x onerror=alert(1)>"


def example(name: str = "r-1", **conditions: object) -> RunSummary:
    levels = [level_summary(plan, decode=40.0, ttft=0.3) for plan in depth_plans((0, 4096))]
    return summary([*levels, *agent_levels(agent_plans(), TTFT)], name, **conditions)


def test_the_page_asks_the_network_for_nothing() -> None:
    """Nothing is loaded by address, and a policy forbids it."""
    text = report_page([example()])
    assert not re.findall(r"<(?:link|img|iframe|script[^>]* src|base|object|embed)\b", text)
    assert "url(" not in text and "@import" not in text
    assert "default-src &#x27;none&#x27;" in text and "connect-src" not in text


def test_only_the_scripts_and_styles_of_the_page_may_run() -> None:
    """The policy holds their hashes, so what slips in as markup does not run."""
    text = report_page([example()])
    for kind in ("script", "style"):
        body = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert len(body) == 1
        digest = b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
        assert f"{kind}-src &#x27;sha256-{digest}&#x27;" in text
    assert "unsafe-inline" not in text and "style=" not in text.split("<script")[0].split("</style>")[1]


def test_a_name_that_is_markup_is_shown_as_text() -> None:
    """The name is text in the title, the tables and the data."""
    text = report_page([example(model=EVIL, engine=EVIL, nodes=(EVIL,))])
    assert "<img" not in text and text.count("</script>") == 2


def test_simulated_figures_are_marked_above_all_others() -> None:
    """The marked run is named if only one of them is simulated."""
    one = report_page([example()])
    assert 0 < one.index("SIMULATED") < one.index('class="figures"')
    both = report_page([example(), example("r-2", simulated=False, engine="sglang")])
    assert "Simulated: A." in both
    assert "SIMULATED" not in report_page([example(simulated=False)])


def test_tables_are_there_without_javascript() -> None:
    """Each plot has its values as a table, each run its levels and conditions."""
    text = report_page([example()]).split("</style>")[1].split('<script type="application/json"')[0]
    for wanted in (
        "Turn by turn",
        "cold takes 30 times as long",
        "5f1c09a4d2e7",
        "Values",
        "tg128",
        "/tokenize of the server",
    ):
        assert wanted in text, wanted


def test_missing_provenance_of_ours_is_reported_as_missing() -> None:
    """An empty line would look like nothing to know."""
    assert "not known" in report_page([example(flags=(), nodes=())])


def test_an_invalid_run_reports_why() -> None:
    """The badge and the reasons, as text."""
    text = report_page([replace(example(), invalid=("the client was 31 ms behind",))])
    assert '<span class="badge bad">not valid</span>' in text and "the client was 31 ms behind" in text


def test_runs_that_cannot_be_compared_report_why_and_are_still_drawn() -> None:
    """Both are there, with the reason between them."""
    refused = compared(rows=(), refused=("the models differ: a and b",))
    text = report_page([example(), example("r-2")], [refused])
    assert "Not comparable: the models differ: a and b" in text and 'id="plot-decode-depth"' in text


def test_a_run_without_a_single_figure_is_a_page_too() -> None:
    """All its requests failed: the page reports it and draws nothing."""
    failed = replace(level_summary(depth_plans((0,))[0]), good=0, errors={"refused": 12})
    text = report_page([replace(summary([failed]), invalid=("no request went well",))])
    assert "no request went well" in text and "refused" in text and 'class="plot"' not in text
    assert json.loads(re.findall(r'id="data">(.*?)</script>', text)[0])["plots"] == []


def test_vendored_files_are_what_their_note_reports() -> None:
    """Byte for byte what the package held; the licence goes with every page."""
    note = (ASSETS / "VENDOR.md").read_text()
    sums = dict(re.findall(r"^\| (uplot\.\w+) .* ([0-9a-f]{64}) \|$", note, re.MULTILINE))
    assert sums == {
        name: hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() for name in ("uplot.js", "uplot.css")
    }
    assert "Permission is hereby granted" in report_page([example()])
