"""The source of an image as text: the Dockerfile, its scripts, and the name derived from them."""
