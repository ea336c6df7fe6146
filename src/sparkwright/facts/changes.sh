# Sent to nodes by changes.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: rights
if [ "$(id -u)" = 0 ]; then echo root; exit 0; fi
command -v sudo >/dev/null 2>&1 || exit 127
LC_ALL=C exec sudo -n true

#: as_root
# sudo empties the environment: what says where a test's tree is goes along by hand.
[ "$(id -u)" != 0 ] || exec "$@"
exec sudo -n ${SPARKWRIGHT_SYSROOT:+env "SPARKWRIGHT_SYSROOT=$SPARKWRIGHT_SYSROOT"} "$@"
