#!/bin/sh
# vllm at one commit, the head of pull request 41834: fetched by its full hash, and checked before it is built.
set -eux
mkdir -p /usr/src/vllm && cd /usr/src/vllm
git init -q .
git fetch -q --depth 1 https://github.com/vllm-project/vllm 72261a7af149fa5d3fe2ed2b9956e92590731012
git checkout -q --detach FETCH_HEAD
[ "$(git rev-parse HEAD)" = 72261a7af149fa5d3fe2ed2b9956e92590731012 ]
git submodule update -q --init --recursive --depth 1
cd .
export SETUPTOOLS_SCM_PRETEND_VERSION=0.23.1rc1.dev0+g72261a7af
python3 use_existing_torch.py
sed -i '/flashinfer/d' requirements/cuda.txt
python3 -m pip install --constraint /opt/sparkwright/build/constraints.txt --requirement requirements/build/cuda.txt
python3 -m pip wheel --no-deps --no-build-isolation --wheel-dir /usr/src/wheels .
python3 -m pip install --constraint /opt/sparkwright/build/constraints.txt /usr/src/wheels/*.whl
rm -rf /usr/src/vllm /usr/src/wheels
