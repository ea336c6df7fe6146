"""What is done about a deployment, one at a time. Each ends in the one event that the machine waits for."""
