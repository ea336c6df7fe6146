"""The disk of the engine's KV cache: its room, and whether it is mounted."""

from dataclasses import replace

from sparkwright.domain.check import Context
from sparkwright.domain.facts import Disk
from sparkwright.domain.finding import Severity
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import GIB
from unit.checks.samples import RECIPE, context, run_check
from unit.checks.test_rules import cached
from unit.for_each import for_each


@for_each(
    "mount, total, free, told",
    [
        ("/data", 500, 150, ("little room for the KV cache on /data", Severity.INFO)),
        ("/data", 100, 90, ("no room for the KV cache on /data", Severity.WARN)),
        ("/", 900, 800, ("the KV cache is on the system's disk", Severity.INFO)),
    ],
)
def test_the_disk_of_a_kv_cache(mount: str, total: int, free: int, told: tuple[str, Severity]) -> None:
    """Guards a disk that is too small for ever, one that is full now, and one that is not mounted."""
    assert {(one.title, one.severity) for one in run_check("DISK005", cached(mount, total, free))} == {told}


def lmcache(folder: str, size: str, mounts: tuple[str, ...], runtime: Runtime = Runtime.DOCKER) -> Context:
    """LMCache with these variables, on a node whose disk at /data has 90 of 100 GiB free."""
    env = {"LMCACHE_LOCAL_DISK": folder, "LMCACHE_MAX_LOCAL_DISK_SIZE": size}
    recipe = replace(RECIPE, env=env, mounts=mounts, engine=replace(RECIPE.engine, runtime=runtime))
    return context({"disks": (Disk("/data/kv/lm", "/data", 100 * GIB, 90 * GIB),)}, recipe)


def test_the_disk_of_lmcache_is_checked_as_the_node_has_it() -> None:
    """Guards LMCache's own setting: the folder in the container is the node's by the recipe's mounts."""
    (told,) = run_check("DISK005", lmcache("file:///kv/lm/", "200", ("/data/kv:/kv",)))
    assert told.title == "no room for the KV cache on /data"
    assert told.evidence.startswith("LMCACHE_LOCAL_DISK: /data/kv/lm on /data: 200.0 GiB")
    assert "LMCACHE_MAX_LOCAL_DISK_SIZE" in told.remedy
    (told,) = run_check("DISK005", lmcache("file:///data/kv/lm/", "200", (), Runtime.PROCESS))
    assert told.severity is Severity.WARN


def test_a_cache_that_is_on_no_disk_of_the_node_is_no_finding() -> None:
    """Guards recipes without such a tier: a folder inside the container, no size, an odd path."""
    for folder, size, mounts in (
        ("file:///kv/", "200", ("/data/kv:/kvs",)),
        ("file:///kv/lm/", "0", ("/data/kv:/kv",)),
        ("file:///kv/lm/", "much", ("/data/kv:/kv",)),
        ("/kv/lm", "200", ("/data/kv:/kv",)),
        ("file:///kv/lm/", "50", ("/data/kv:/kv",)),
    ):
        assert not run_check("DISK005", lmcache(folder, size, mounts))
