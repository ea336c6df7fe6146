"""Under what a run is measured: all that must be known to believe its figures, or to measure them again."""

from dataclasses import replace

from sparkwright.app.bench.tools import Bench, Order, Ours
from sparkwright.domain.run import Conditions


def conditions(bench: Bench, order: Order, tokenizer: str) -> Conditions:
    """The engine's own word about its version wins over what the recipe says."""
    probed, ours = order.probed, order.ours
    outside = Conditions(
        endpoint=order.target.name if ours is None else _where(ours),
        model=probed.model,
        engine=probed.engine,
        engine_version=probed.engine_version,
        max_context=probed.context,
        tokenizer=tokenizer,
        client=bench.machine.client,
        client_host=bench.machine.host,
        seed=order.workload.seed,
        clock=bench.machine.clock,
        simulated=probed.simulated or (ours is not None and ours.head.simulated),
    )
    return outside if ours is None else _with(outside, ours)


def _where(ours: Ours) -> str:
    place = f"gateway {ours.gateway}" if ours.gateway else f"rank 0 on {ours.head.node}, port {ours.head.port}"
    return f"{ours.head.deployment} ({place}{' through ssh' if ours.tunnelled else ''})"


def _with(found: Conditions, ours: Ours) -> Conditions:
    head = ours.head
    engine, _, version = head.engine.partition(" ")
    return replace(
        found,
        ours=True,
        deployment=head.deployment,
        front_door=ours.gateway,
        recipe=head.recipe,
        recipe_hash=head.recipe_hash,
        image=ours.launched.image,
        engine=engine or found.engine,
        engine_version=found.engine_version or version,
        flags=ours.launched.argv,
        nodes=ours.nodes,
    )
