"""The load generator: what is sent, when, what the times of the answers mean. Pure; adapters/load/ does the sending."""
