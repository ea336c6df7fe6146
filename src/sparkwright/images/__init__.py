"""What an image is built from, as text: the Dockerfile, the scripts with it, and the name that follows from them."""
