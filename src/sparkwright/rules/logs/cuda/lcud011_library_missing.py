"""A shared library is missing.

Detects: The loader that cannot find a library which is neither the driver's nor CUDA 12's.
Why: the library belongs to a package that is not installed (cuDNN, NVSHMEM, MPI, libnuma, libgomp), or its directory
  is not searched.
Evidence: The loader's line.
Remedy: Install the package that brings it, or add its directory.
References: https://man7.org/linux/man-pages/man8/ld.so.8.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LCUD011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a shared library is missing"
CAUSE = "shared-library-not-found"
SIGNS = (
    line(
        r"(?P<lib>lib[\w+-]+\.so[.\d]*): cannot open shared object file",
        LIKELY,
        unless=r"libcuda\.so|libnvidia-ml|libcudart\.so\.12|libcublas(?:Lt)?\.so\.12|libnvrtc\.so\.12"
        r"|libnvJitLink\.so\.12|libcupti\.so\.12|libtorch_cuda",
    ),
    line(r"Could not load library (?P<lib>lib\S+\.so\S*)", LIKELY),
    line(r"Unable to load any of \{(?P<lib>lib[^}]+)\}", LIKELY),
    line(r"(?P<lib>lib[\w+-]+\.so[.\d]*) => not found", LIKELY, unless=r"libcuda\.so|libcudart\.so\.12"),
    line(
        r"(?P<lib>lib[\w+-]+\.so[.\d]*) (?:is missing|was not found|could not be found|cannot be found)",
        LIKELY,
        unless=r"libcuda\.so|libcudart\.so\.12",
    ),
    line(r"Could not load this library: \S{0,300}(?P<lib>lib[\w+-]+\.so)", 0.7),
    line(r"Could not load (?P<lib>libtorchcodec|libsndfile|libavcodec|ffmpeg)\b", LIKELY),
)
FIX = (
    "ldconfig -p | grep {lib}; find / -name '{lib}*' -not -path '/proc/*' 2>/dev/null   # is it anywhere?",
    "apt-file search {lib}   # which package brings it: install that one in the image",
    "where it lies outside the searched directories: export LD_LIBRARY_PATH=<its directory>:$LD_LIBRARY_PATH",
)
EXPLAINS = ()
