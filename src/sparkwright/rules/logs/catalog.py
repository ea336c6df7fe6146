"""All causes that logs tell, by family; `diagnose` and the supervisor read them, `check` and `plan` do not."""

from sparkwright.rules.log_rule import LogRule, StoryRule
from sparkwright.rules.logs.api import catalog as api
from sparkwright.rules.logs.benign import catalog as benign
from sparkwright.rules.logs.cli import catalog as cli
from sparkwright.rules.logs.cluster import catalog as cluster
from sparkwright.rules.logs.config import catalog as config
from sparkwright.rules.logs.cuda import catalog as cuda
from sparkwright.rules.logs.driver import catalog as driver
from sparkwright.rules.logs.files import catalog as files
from sparkwright.rules.logs.graphs import catalog as graphs
from sparkwright.rules.logs.held import catalog as held
from sparkwright.rules.logs.image import catalog as image
from sparkwright.rules.logs.kernels import catalog as kernels
from sparkwright.rules.logs.link import catalog as link
from sparkwright.rules.logs.nic import catalog as nic
from sparkwright.rules.logs.output import catalog as output
from sparkwright.rules.logs.perf import catalog as perf
from sparkwright.rules.logs.rdma import catalog as rdma
from sparkwright.rules.logs.sizing import catalog as sizing
from sparkwright.rules.logs.spec import catalog as spec
from sparkwright.rules.logs.uma import catalog as uma
from sparkwright.rules.logs.versions import catalog as versions
from sparkwright.rules.runtime import (
    live001_peer_never_came,
    live002_nccl_init_hangs,
    live003_spin,
    live004_capture_stands,
    live005_link_lost,
    live006_capped_rows,
    live007_swapping,
    live008_worker_silent,
    live009_killed_from_outside,
    live010_node_rebooted,
)

FAMILIES: dict[str, tuple[LogRule, ...]] = {
    "api-and-client": api.RULES,
    "benign": benign.RULES,
    "cli-and-config": cli.RULES,
    "cluster-coordination": cluster.RULES,
    "model-config": config.RULES,
    "cuda-toolchain": cuda.RULES,
    "driver-and-gpu-fault": driver.RULES,
    "model-files-and-hub": files.RULES,
    "graph-jit-runtime": graphs.RULES,
    "memory-held-or-leaked": held.RULES,
    "container-and-image": image.RULES,
    "sm12x-kernel-support": kernels.RULES,
    "network-reachability-and-link": link.RULES,
    "network-interface-selection": nic.RULES,
    "output-quality": output.RULES,
    "performance": perf.RULES,
    "network-rdma": rdma.RULES,
    "memory-sizing": sizing.RULES,
    "spec-decode": spec.RULES,
    "unified-memory-host": uma.RULES,
    "version-skew": versions.RULES,
}
LOG_RULES: tuple[LogRule, ...] = tuple(rule for rules in FAMILIES.values() for rule in rules)
# What a client did wrong, or was refused: no rank ends for that.
CLIENTS = frozenset(rule.CAUSE for rule in api.RULES if not rule.SEVERITY.stops)
# What degrades a service or goes along with it does not end one that has served.
WARNINGS = frozenset(rule.CAUSE for rule in LOG_RULES if not rule.SEVERITY.stops)
STORY_RULES: tuple[StoryRule, ...] = (
    live001_peer_never_came,
    live002_nccl_init_hangs,
    live003_spin,
    live004_capture_stands,
    live005_link_lost,
    live006_capped_rows,
    live007_swapping,
    live008_worker_silent,
    live009_killed_from_outside,
    live010_node_rebooted,
)
