"""What tells the loop: ranks' logs and ends, samples of the nodes, the engine's figures, the canary, the listing."""
