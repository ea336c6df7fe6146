# What `docker build` runs for each source, and where a build names its compilers' target. recipes/dockerfile.py fills
# in the names between two @.
#: source
set -eux
mkdir -p /usr/src/@NAME@ && cd /usr/src/@NAME@
git init -q .
git fetch -q --depth 1 @REPOSITORY@ @COMMIT@
git checkout -q --detach FETCH_HEAD
[ "$(git rev-parse HEAD)" = @COMMIT@ ]
git submodule update -q --init --recursive --depth 1
cd @FOLDER@
@PREPARE@python3 -m pip wheel --no-deps --no-build-isolation --wheel-dir /usr/src/wheels .
python3 -m pip install@CONSTRAINT@ /usr/src/wheels/*.whl
rm -rf /usr/src/@NAME@ /usr/src/wheels

#: ptxas
set -eu
at=$(python3 -c 'from importlib.util import find_spec
print(*getattr(find_spec("triton"), "submodule_search_locations", ()))')
[ -n "$at" ] || exit 0
[ -x @PTXAS@ ] || { echo "no @PTXAS@ in the base image: take a -devel image of CUDA" >&2; exit 1; }
mkdir -p "$at/backends/nvidia/bin"
ln -sf @PTXAS@ "$at/backends/nvidia/bin/ptxas"
@PTXAS@ --help | grep -q "sm_@ARCH@" || { echo "@PTXAS@ cannot compile for sm_@ARCH@" >&2; exit 1; }
