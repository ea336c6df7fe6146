# Sent to nodes by gpu.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: driver
show module "$R/proc/driver/nvidia/version"
printf '\n@@ nvidia-smi\n'
command -v nvidia-smi >/dev/null 2>&1 || exit 127
LC_ALL=C nvidia-smi -q
