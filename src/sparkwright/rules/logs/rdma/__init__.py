"""Causes of the family network-rdma; codes LRDM."""
