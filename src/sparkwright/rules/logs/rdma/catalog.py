"""The rules of the family network-rdma, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.rdma import (
    lrdm001_gid_index,
    lrdm002_socket_fallback,
    lrdm003_ucx_tls,
    lrdm004_memlock,
    lrdm005_nccl_build,
    lrdm006_nccl_cuda,
    lrdm007_nccl_duplicates,
    lrdm008_nccl_ld_preload,
    lrdm009_nccl_versions_differ,
    lrdm010_nccl_aarch64_race,
    lrdm011_nccl_channels,
    lrdm012_nccl_not_found,
)

RULES: tuple[LogRule, ...] = (
    lrdm001_gid_index,
    lrdm002_socket_fallback,
    lrdm003_ucx_tls,
    lrdm004_memlock,
    lrdm005_nccl_build,
    lrdm006_nccl_cuda,
    lrdm007_nccl_duplicates,
    lrdm008_nccl_ld_preload,
    lrdm009_nccl_versions_differ,
    lrdm010_nccl_aarch64_race,
    lrdm011_nccl_channels,
    lrdm012_nccl_not_found,
)
