"""The rules of the family network-interface-selection, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.nic import (
    lnic001_gloo_loopback,
    lnic002_interface_name_missing,
    lnic003_host_ip_wrong,
    lnic004_hca_not_pinned,
    lnic005_nccl_socket_ifname,
    lnic006_cross_nic,
    lnic007_ucx_net_devices,
    lnic008_names_of_other_node,
)

RULES: tuple[LogRule, ...] = (
    lnic001_gloo_loopback,
    lnic002_interface_name_missing,
    lnic003_host_ip_wrong,
    lnic004_hca_not_pinned,
    lnic005_nccl_socket_ifname,
    lnic006_cross_nic,
    lnic007_ucx_net_devices,
    lnic008_names_of_other_node,
)
