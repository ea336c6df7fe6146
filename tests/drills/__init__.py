"""The drills: real faults on the two-node testbed, with clients at the front door, and every figure measured."""
