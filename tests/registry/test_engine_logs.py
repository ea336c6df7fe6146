"""Rules for logs, metrics and routes, held to the newest wheels from the package index."""

from pathlib import Path

import pytest
from engine_data import VERSIONS, download
from engine_logs import report


@pytest.mark.full
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_no_rule_is_dead_in_the_newest_release(engine: str, tmp_path: Path) -> None:
    """The newest version whose flags are shipped: each rule, metric and route matches, and no new route is unknown."""
    newest = VERSIONS[engine][-1]
    try:
        wheel = download(engine, newest, tmp_path)
    except SystemExit as error:
        pytest.skip(f"no package index here: {error}")
    found = report(engine, newest, wheel)
    assert (found.rules, found.metrics, found.routes, found.new_routes) == ((), (), (), ())
