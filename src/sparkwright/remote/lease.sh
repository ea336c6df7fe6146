# Sent to nodes by lease.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: where
l="${SPARKWRIGHT_LOCK_DIR:-/run/lock}"; [ -w "$l" ] || l=/tmp
d="$l/sparkwright"; f="$d/@OF@"
# Everybody may write in that folder: what is there under our name already, a link above all, is not written to.
fresh() { rm -f "$f.$2"; ( set -C; umask 022; printf %s "$1" > "$f.$2" ); }
room() { [ -d "$d" ] || { mkdir "$d" 2>/dev/null && chmod 0777 "$d"; }; [ -w "$d" ]; }
# What is no plain file there was laid there by somebody, and reading it could wait for ever.
odd() { [ ! -e "$f" ] && [ ! -L "$f" ] || [ -f "$f" ] || { stat -c '%F of user %U: %n' "$f" >&2; return 1; }; }
age() { echo "$(( $(date +%s) - $(stat -c %Y "$f") ))"; }
