"""Kubernetes' own API server, built from Debian's packages, judges what `plan --emit k8s` writes."""
