"""One node, sampled: memory, GPU, fabric counters and the kernel's log, in one stream that stays open."""

from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.sources.lines import lines
from sparkwright.domain.errors import NodeError
from sparkwright.domain.sample import GpuSample, Sample
from sparkwright.facts import sample as asking
from sparkwright.facts.sample import Samples

# The stream of a node that hangs stays open: so many samples missed, and the node counts as not seen.
_MISSED = 4
_LEAST = 5.0
# Whether a GPU computes while no token comes must be known within seconds.
_GPU_EVERY = 2.0


async def watch(senses: Senses, node: str) -> None:
    site, samples = senses.site, Samples()
    every, state = max(site.policy.sample_every, 0.5), site.world.cluster.node(node).paths.state
    command = asking.follow(every, min(every, _GPU_EVERY), site.now(), state)
    async for line in lines(site, lambda: site.world.hosts[node].stream(command)):
        if isinstance(line, NodeError):
            senses.heard.pop(node, None)
            senses.found(senses.detectors.lost(node, site.now(), line.message))
        elif sample := samples.feed(line):
            _sample(senses, node, sample)
        elif senses.serving and line.startswith("gpu ") and isinstance(samples.gpu, GpuSample):
            senses.found(senses.detectors.glance(node, samples.gpu, site.now()))


def _sample(senses: Senses, node: str, sample: Sample) -> None:
    site = senses.site
    senses.heard[node] = site.now()
    site.seen.sample(node, sample)
    senses.found(senses.detectors.sample(node, sample, site.now()))
    for line in sample.kernel if senses.serving else ():
        senses.read(f"kernel log of {node}", line)


def silent(senses: Senses) -> None:
    """Nodes whose samples stay away although their stream is open."""
    at = senses.site.now()
    limit = max(_MISSED * senses.site.policy.sample_every, _LEAST)
    for node, when in tuple(senses.heard.items()):
        if at - when > limit:
            del senses.heard[node]
            senses.found(senses.detectors.lost(node, at))
