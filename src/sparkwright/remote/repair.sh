# Sent to nodes by repair.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: set
# The file is read at each boot; what stood in it before is kept beside it for the way back.
set -e; f="$R/etc/sysctl.d/90-sparkwright-$3.conf"; mkdir -p "${f%/*}"
sysctl -q -w "$1=$2"
[ ! -e "$f" ] || cp -p "$f" "$f.before"
printf '# Set by sparkwright check --fix.\n%s = %s\n' "$1" "$2" >"$f"

#: restore
set -e; f="$R/etc/sysctl.d/90-sparkwright-$3.conf"
if [ -e "$f.before" ]; then mv -f "$f.before" "$f"; else rm -f "$f"; fi
sysctl -q -w "$1=$2"
