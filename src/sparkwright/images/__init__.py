"""What an image is built from, as text: the Dockerfile, the scripts beside it, and the name that follows from them."""
