"""Real programs made to fail, one log a scenario: the cases of tests/data/failures-fresh."""
