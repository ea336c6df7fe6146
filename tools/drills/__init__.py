"""The drills: real faults on the two-node testbed, with clients at the gateway, and every figure measured."""
