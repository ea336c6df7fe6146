"""The head node's history: what was deployed, what happened, and the incidents."""
