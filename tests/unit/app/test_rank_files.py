"""Files that a rank comes with: written before it starts, closed where they hold a secret, and no part of who it is."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from fakes.host import FakeHost
from sparkwright.app.plan.planning import spec_hash
from sparkwright.app.ranks import Way, start
from sparkwright.domain.command import Completed, Secret
from sparkwright.domain.plan import RankFile, RankSpec
from sparkwright.domain.recipe import Runtime

SPEC = RankSpec(1, "spark-2", ("serve",), {}, Runtime.PROCESS)


def with_files(*files: RankFile) -> RankSpec:
    return replace(SPEC, files=files)


async def test_files_lie_there_before_the_rank_starts() -> None:
    """A launcher can be read by a container's user; a file with a secret by its owner only."""
    host = FakeHost("spark-2", default=Completed(0, ""))
    services: Any = SimpleNamespace(hosts={"spark-2": host})
    plan: Any = SimpleNamespace(deployment="demo")
    await start(services, plan, with_files(RankFile("a.py", "1"), RankFile("k", secret=Secret("x"))), Way("/state"))
    folder = "/state/deployments/demo/rank1/files"
    assert host.files == {f"{folder}/a.py": b"1", f"{folder}/k": b"x"}
    assert host.modes == {f"{folder}/a.py": 0o644, f"{folder}/k": 0o600}


def test_the_hash_knows_a_file_but_not_its_secret() -> None:
    """Another launcher is another rank; a new key for each launch is the same rank."""
    assert spec_hash(with_files(RankFile("a", "1"))) != spec_hash(with_files(RankFile("a", "2")))
    one, two = (with_files(RankFile("a", secret=Secret(text))) for text in ("x", "y"))
    assert spec_hash(one) == spec_hash(two) != spec_hash(SPEC)
