"""`tune`: the search space, the search, trials, and the page about them; the verb is cli/tune.py."""
