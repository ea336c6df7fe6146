"""The program on the head node: `python3 -m sparkwright.supervisor`, and the gateway's own small service."""
