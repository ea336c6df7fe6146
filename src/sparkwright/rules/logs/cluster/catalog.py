"""The rules of the family cluster-coordination, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.cluster import (
    lclu001_ray_placement,
    lclu002_rpc_op_unsupported,
    lclu003_stale_rendezvous,
    lclu004_ready_timeout,
    lclu005_multinode_ray_regression,
    lclu006_rpc_self_listed,
    lclu007_node_rank,
    lclu008_restart_race,
    lclu009_ssh,
    lclu010_peer_died,
    lclu011_rendezvous_missing,
    lclu012_ray_head_unreachable,
    lclu013_rpc_unreachable,
    lclu014_mpi_ghost,
    lclu015_logind_removes_ipc,
    lclu016_ranks_share_gpu,
    lclu017_loopback_master,
    lclu018_engine_core_died,
)

RULES: tuple[LogRule, ...] = (
    lclu001_ray_placement,
    lclu002_rpc_op_unsupported,
    lclu003_stale_rendezvous,
    lclu004_ready_timeout,
    lclu005_multinode_ray_regression,
    lclu006_rpc_self_listed,
    lclu007_node_rank,
    lclu008_restart_race,
    lclu009_ssh,
    lclu010_peer_died,
    lclu011_rendezvous_missing,
    lclu012_ray_head_unreachable,
    lclu013_rpc_unreachable,
    lclu014_mpi_ghost,
    lclu015_logind_removes_ipc,
    lclu016_ranks_share_gpu,
    lclu017_loopback_master,
    lclu018_engine_core_died,
)
