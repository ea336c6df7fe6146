"""The rules of the family cuda-toolchain, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.cuda import (
    lcud001_triton_ptxas,
    lcud002_cuda12_wheel,
    lcud003_toolkit_too_old,
    lcud004_nvcc_missing,
    lcud005_python_headers,
    lcud006_cpu_torch,
    lcud007_arch_list,
    lcud008_compat_libs,
    lcud009_cuda_home,
    lcud010_library_path,
    lcud011_library_missing,
    lcud012_host_compiler,
    lcud013_libcuda_link,
    lcud014_cuda_headers,
    lcud015_build_jobs,
    lcud016_old_archs,
    lcud017_truncated_library,
)

RULES: tuple[LogRule, ...] = (
    lcud001_triton_ptxas,
    lcud002_cuda12_wheel,
    lcud003_toolkit_too_old,
    lcud004_nvcc_missing,
    lcud005_python_headers,
    lcud006_cpu_torch,
    lcud007_arch_list,
    lcud008_compat_libs,
    lcud009_cuda_home,
    lcud010_library_path,
    lcud011_library_missing,
    lcud012_host_compiler,
    lcud013_libcuda_link,
    lcud014_cuda_headers,
    lcud015_build_jobs,
    lcud016_old_archs,
    lcud017_truncated_library,
)
