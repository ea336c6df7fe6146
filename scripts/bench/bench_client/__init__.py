"""`make bench-client`: our load client and its peers against a server whose times are known, in one session."""
