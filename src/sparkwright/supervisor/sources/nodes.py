"""One node, sampled: memory, GPU, fabric counters and the kernel's log, in one stream that stays open."""

from sparkwright.domain.errors import NodeError
from sparkwright.domain.sample import GpuSample, Sample
from sparkwright.facts import sample as asking
from sparkwright.facts.sample import Samples
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.sources.lines import lines

# The stream of a node that hangs stays open: so many samples missed, and the node counts as not seen.
_MISSED = 4
_LEAST = 5.0
# Whether a GPU computes while no token comes must be known within seconds.
_GPU_EVERY = 2.0


async def watch(bus: EventBus, node: str) -> None:
    context, samples = bus.context, Samples()
    every, state = max(context.policy.sample_every, 0.5), context.services.cluster.node(node).paths.state
    command = asking.follow(every, min(every, _GPU_EVERY), context.now(), state)
    async for line in lines(context, lambda: context.services.hosts[node].stream(command)):
        if isinstance(line, NodeError):
            bus.heard.pop(node, None)
            bus.found(bus.detectors.lost(node, context.now(), line.message))
        elif sample := samples.feed(line):
            _sample(bus, node, sample)
        elif bus.serving and line.startswith("gpu ") and isinstance(samples.gpu, GpuSample):
            bus.found(bus.detectors.glance(node, samples.gpu, context.now()))


def _sample(bus: EventBus, node: str, sample: Sample) -> None:
    context = bus.context
    bus.heard[node] = context.now()
    context.seen.sample(node, sample)
    bus.found(bus.detectors.sample(node, sample, context.now()))
    for line in sample.kernel if bus.serving else ():
        bus.read(f"kernel log of {node}", line)


def silent(bus: EventBus) -> None:
    """Nodes whose samples stay away although their stream is open."""
    at = bus.context.now()
    limit = max(_MISSED * bus.context.policy.sample_every, _LEAST)
    for node, when in tuple(bus.heard.items()):
        if at - when > limit:
            del bus.heard[node]
            bus.found(bus.detectors.lost(node, at))
