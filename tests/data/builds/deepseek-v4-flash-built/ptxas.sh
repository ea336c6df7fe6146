#!/bin/sh
# Triton's ptxas is the one of the base image: its own does not know GB10 (sm_121a).
set -eu
at=$(python3 -c 'from importlib.util import find_spec
print(*getattr(find_spec("triton"), "submodule_search_locations", ()))')
[ -n "$at" ] || exit 0
[ -x /usr/local/cuda/bin/ptxas ] || { echo "no /usr/local/cuda/bin/ptxas in the base image: take a -devel image of CUDA" >&2; exit 1; }
mkdir -p "$at/backends/nvidia/bin"
ln -sf /usr/local/cuda/bin/ptxas "$at/backends/nvidia/bin/ptxas"
/usr/local/cuda/bin/ptxas --help | grep -q "sm_121a" || { echo "/usr/local/cuda/bin/ptxas cannot compile for sm_121a" >&2; exit 1; }
