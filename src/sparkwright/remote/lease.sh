# Sent to nodes by lease.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: where
l="${SPARKWRIGHT_LOCK_DIR:-/run/lock}"; [ -w "$l" ] || l=/tmp
d="$l/sparkwright"; f="$d/@OF@"
# Everybody may write in that folder: what is there under our name already, a link above all, is not written to.
fresh() { rm -f "$f.$2"; ( set -C; umask 022; printf %s "$1" > "$f.$2" ); }
room() { [ -d "$d" ] || { mkdir "$d" 2>/dev/null && chmod 0777 "$d"; }; [ -w "$d" ]; }
# What is no plain file there was laid there by somebody, and reading it could wait for ever. One that is gone at the
# second look was given back meanwhile.
odd() {
  case $(stat -L -c %f "$f" 2>/dev/null) in 8???) return 0 ;; esac
  s=$(stat -c '%f %F of user %U: %n' "$f" 2>/dev/null)
  case $s in '' | 8???' '*) return 0 ;; esac
  echo "${s#* }" >&2; return 1
}
age() { echo "$(( $(date +%s) - $(stat -c %Y "$f") ))"; }
