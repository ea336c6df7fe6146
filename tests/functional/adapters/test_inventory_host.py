"""The listing of all checkpoints on a node behind a real sshd, and on this machine."""

from pathlib import Path

from functional.hub_cache import hub_entry
from sparkwright.adapters.node_host import NodeHost
from sparkwright.facts.inventory import inventory, parse


async def test_all_of_a_cache_in_one_round_trip(node_host: NodeHost, tmp_path: Path) -> None:
    """A script of some kilobytes travels as it is, and so does what it reports of many models."""
    for number in range(10):
        hub_entry(tmp_path / "a hub", f"org/model-{number}", "gpt-oss-120b")
    found = parse(await node_host.run(inventory(f"{tmp_path}/a hub", "~/none", ("/no/such",))), "here")
    assert isinstance(found, tuple)
    assert [(one.id, one.complete, one.format) for one in found] == [
        (f"org/model-{number}", True, "mxfp4 experts, bf16") for number in range(10)
    ]
