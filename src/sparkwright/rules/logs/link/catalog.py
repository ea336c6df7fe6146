"""The rules of the family network-reachability-and-link, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.link import (
    llnk001_firewall_nccl,
    llnk002_port_in_use,
    llnk003_bind_not_available,
    llnk004_fabric_ip_unreachable,
    llnk005_hotplug_power_cap,
    llnk006_bound_to_loopback,
    llnk007_single_hca,
    llnk008_link_down,
    llnk009_firewall_api,
    llnk010_http_proxy,
    llnk011_mtu_mismatch,
    llnk012_nic_firmware,
    llnk013_nic_detached,
    llnk014_nic_fault,
    llnk015_name_not_resolved,
    llnk016_wifi_drops,
    llnk017_packet_loss,
)

RULES: tuple[LogRule, ...] = (
    llnk001_firewall_nccl,
    llnk002_port_in_use,
    llnk003_bind_not_available,
    llnk004_fabric_ip_unreachable,
    llnk005_hotplug_power_cap,
    llnk006_bound_to_loopback,
    llnk007_single_hca,
    llnk008_link_down,
    llnk009_firewall_api,
    llnk010_http_proxy,
    llnk011_mtu_mismatch,
    llnk012_nic_firmware,
    llnk013_nic_detached,
    llnk014_nic_fault,
    llnk015_name_not_resolved,
    llnk016_wifi_drops,
    llnk017_packet_loss,
)
