"""The program on the head node: `python3 -m sparkwright.supervisor`, and the front door's own small service."""
