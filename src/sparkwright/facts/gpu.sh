# Sent to nodes by gpu.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: driver
show module "$R/proc/driver/nvidia/version"
printf '\n@@ nvidia-smi\n'
command -v nvidia-smi >/dev/null 2>&1 || exit 127
LC_ALL=C nvidia-smi -q

#: query
# $1: a query; $2: the same with fewer fields, asked where the driver does not know one of them and so answers nothing.
command -v nvidia-smi >/dev/null 2>&1 || exit 127
told=$(LC_ALL=C nvidia-smi "$1" --format=csv)
code=$?
case $code:$2:$told in
0:*) ;;
*:?*:*'not a valid field'*) LC_ALL=C exec nvidia-smi "$2" --format=csv ;;
esac
printf '%s\n' "$told"
exit $code
