"""The filter of logs, the settings of clients, and limits of keys."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.console import connect, keys, logs
from sparkwright.console.board import DeploymentWatch, ReportBoard
from sparkwright.console.logs import Filter, LogLine, filter_of
from sparkwright.console.sessions import Visitor
from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import UsageError
from sparkwright.domain.live import Desired
from sparkwright.gateway.clients import clients
from sparkwright.gateway.keys import Key, Role
from sparkwright.report.markup import html_tag
from unit.cli.test_text import PLAN

ME = Visitor(Key("me", "0" * 64, role=Role.OPERATOR), "token")


def log_line(number: int, text: str, kind: str = "", rank: str = "0") -> LogLine:
    return LogLine(number, html_tag("div", text, class_=f"line {kind}".strip()), text, kind, rank)


LINES = (
    log_line(1, "Loading weights", rank="1"),
    log_line(2, 'INFO: "POST /v1/chat/completions HTTP/1.1" 200 OK', "access"),
    log_line(3, "WARNING slow", "doubt"),
    log_line(4, "ERROR worker died", "bad", "1"),
    log_line(5, "a worker died (RAY009, 95%)", "cause", "1"),
    log_line(6, "the ranks were started again", "note", ""),
)


@pytest.mark.parametrize(
    "wanted, numbers",
    [
        (Filter(), [1, 3, 4, 5, 6]),
        (Filter(access=True), [1, 2, 3, 4, 5, 6]),
        (Filter(words="WORKER"), [4, 5, 6]),
        (Filter(rank="1"), [1, 4, 5, 6]),
        (Filter(level="doubt"), [3, 4, 5, 6]),
        (Filter(level="cause", rank="0"), [6]),
    ],
)
def test_lines_are_found_by_words_rank_and_level(wanted: Filter, numbers: list[int]) -> None:
    """Guards a search: lines of answered requests are hidden unless asked for, notes of the page always shown."""
    assert [one.number for one in LINES if wanted.lets(one)] == numbers


def test_the_filter_works_without_a_script() -> None:
    """Guards the page as it is sent: what is hidden is there for the script, a search shows only what it found."""
    page = logs.logs_page(("chat",), "chat", LINES, Filter())
    assert '<div hidden class="line access"' in page and page.count("<div hidden") == 1
    found = logs.logs_page(("chat",), "chat", LINES, Filter(words="worker"))
    assert "Loading weights" not in found and "a worker died" in found and 'value="worker"' in found
    assert "no line matches" in logs.logs_page(("chat",), "chat", LINES[:1], Filter(words="x"))
    assert filter_of({"level": "x", "words": "w" * 999, "access": "yes"}) == Filter("w" * 200, access=True)
    assert logs.text_of(LINES[3:]).splitlines()[0] == "rank 1  ERROR worker died"


@pytest.mark.parametrize(
    "text",
    [
        '(APIServer pid=1) INFO:     127.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        "srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200",
        '[2026-11-26 12:00:00] INFO:     10.0.0.1:9 - "GET /health HTTP/1.1" 503 Service Unavailable',
    ],
)
def test_a_line_of_a_request_is_known(text: str) -> None:
    """Guards the formats of the engines' servers; a line that only names a route is none."""
    assert logs._ACCESS.search(text)
    assert not logs._ACCESS.search("Route: /v1/chat/completions, Methods: POST")


def watch_of(tmp_path: Path, endpoint: str) -> DeploymentWatch:
    home = tmp_path / "supervision" / "chat"
    (home / "door").mkdir(parents=True)
    (home / "door" / "endpoint").write_text(endpoint)
    recipe = replace(PLAN.recipe, serving=replace(PLAN.recipe.serving, context=65536))
    (home / "desired.json").write_text(to_json(Desired("chat", PLAN.cluster, recipe)))
    board = ReportBoard(tmp_path)
    board.refresh()
    return board.watches["chat"]


def test_settings_of_all_clients_are_there(tmp_path: Path) -> None:
    """Guards what is pasted: address, model, context, the key by its file and never itself, the authority with TLS."""
    where = connect.Where(watch_of(tmp_path, "https://spark-1:8443/v1"), "/home/ann")
    page = connect.connect_page(("chat", "other"), where)
    assert all(f"<summary>{one.title}</summary>" in page for one in clients().values())
    for part in (
        "https://spark-1:8443/v1",
        "65,536 tokens",
        "/home/ann/sparkwright.key",
        "/home/ann/sparkwright-ca.crt",
    ):
        assert part in page, part
    assert "<svg" in page and "/console/ca.crt" in page and "<<" not in page and "sk-sw" not in page
    curl = re.findall(r"<pre[^>]*>(read .*?)</pre>", page, re.S)[0].replace("&#x27;", "'").replace("&quot;", '"')
    words = shlex.split(curl.replace("\\\n", " "))
    assert (
        words[words.index("--cacert") + 1] == "/home/ann/sparkwright-ca.crt" and "Authorization: Bearer $KEY" in words
    )


def test_a_loopback_has_no_code_for_phones(tmp_path: Path) -> None:
    """Guards against a code that leads nowhere, and against folders that are no path."""
    page = connect.connect_page(("chat",), connect.Where(watch_of(tmp_path, "http://127.0.0.1:8443/v1")))
    assert "<svg" not in page and "Only this machine reaches it" in page and "cacert" not in page
    for bad in ("", "~/x", "/a'; rm -rf /", "/a/../b", "/" + "a" * 300):
        assert connect.folder_of({"folder": bad}) == connect.FOLDER
    assert connect.folder_of({"folder": "/home/ann/"}) == "/home/ann"


def test_a_new_key_has_limits_and_a_deployment() -> None:
    """Guards the form: numbers only, deployments that there are, and no more than the visitor's own key opens."""
    given = {"name": "ci", "role": "client", "deployment": "chat", "per_minute": "60", "tokens_a_day": "2,000,000"}
    new = keys.wanted(given, ME, ("chat",))
    assert (new.deployment, new.limits) == ("chat", {"per_minute": 60, "at_once": 0, "tokens_a_day": 2_000_000})
    for bad in ({"deployment": "x"}, {"role": "x"}, {"per_minute": "-1"}, {"at_once": "1e3"}, {"at_once": "9" * 13}):
        with pytest.raises(UsageError):
            keys.wanted(given | bad, ME, ("chat",))
    only = Visitor(replace(ME.key, deployment="chat"), "token")
    assert keys.wanted(given | {"deployment": ""}, only, ("chat", "other")).deployment == "chat"
    page = keys.keys_page([Key("ci", "1" * 64, per_minute=60)], ME, ("chat",))
    assert "only chat" in page and "all deployments" in page and "keys/limit?name=ci" in page
    assert 'value="60"' in keys.limits_form(Key("ci", "1" * 64, per_minute=60), ME)
