"""One node as a virtual machine with a kernel, memory and a slow disk of its own: for what containers cannot show."""
