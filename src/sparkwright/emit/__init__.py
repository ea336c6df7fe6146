FORM_NAMES = ("compose", "shell", "k8s", "systemd")
"""What `plan --emit` takes, in the order of `catalog.FORMS`: known without loading any of them."""
