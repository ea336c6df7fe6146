#!/bin/sh
set -eux
python3 -c 'import torch; assert torch.version.cuda, "torch was replaced by one without CUDA"'
