# Sent to nodes by node_ssh.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: key
umask 077; d="$1/ssh"; mkdir -p "$d" || exit 1
[ -s "$d/id_ed25519" ] && [ -s "$d/id_ed25519.pub" ] || {
  rm -f "$d/id_ed25519" "$d/id_ed25519.pub"; ssh-keygen -q -t ed25519 -N '' -C "$2" -f "$d/id_ed25519" || exit 1; }
cut -d' ' -f1,2 "$d/id_ed25519.pub"

#: try
# All at once: a cut cable costs its timeout once.
c="$1/ssh/config"; n="$2"; shift 2
for a in "$@"; do
  ( e=$(ssh -F "$c" -o HostName="$a" -o ControlPath=none -o ConnectTimeout=5 -- "$n" true 2>&1 </dev/null) && e=ok
    printf '%s\t%s\n' "$a" "$(printf %s "$e" | tail -n 1)" ) &
done
wait; exit 0

#: rewrite
# `rewrite TAG LINE`: ours under TAG becomes LINE, or nothing; prints `was` for a change. The file is replaced as a
# whole, under a lock, and only if nobody else has written it meanwhile: who loses it has no way in. Without locks there
# (NFS) that must do.
mark() { stat -c '%i %s %y %z' "$1" 2>/dev/null; }
rewrite() (
  umask 077; d="$HOME/.ssh"; n=; mkdir -p "$d" || exit 1
  exec 8<"$d"; flock -E 9 -w 30 8; [ $? != 9 ] || { echo "$d is locked by another process since 30 s" >&2; exit 1; }
  k=$(readlink -f "$d/authorized_keys") || exit 1
  rm -f "${k%/*}"/.authorized_keys.sparkwright.*
  trap 'rm -f "$n"' EXIT; trap 'exit 143' TERM INT HUP
  i=0; while [ $i -lt 50 ]; do
    i=$((i+1)); before=$(mark "$k"); n=$(mktemp "${k%/*}/.authorized_keys.sparkwright.XXXXXX") || exit 1
    if [ -e "$k" ]; then
      awk -v t="$1" '$NF != t' "$k" > "$n" && { chown --reference="$k" "$n" 2>/dev/null ||
        [ "$(stat -c %u "$n")" = "$(stat -c %u "$k")" ]; } || exit 1
    fi
    { [ -z "$2" ] || printf '%s\n' "$2" >> "$n"; } || exit 1
    ! cmp -s "$k" "$n" || exit 0
    { [ ! -e "$k" ] || chmod --reference="$k" "$n"; } && sync "$n" || exit 1
    if [ "$before" = "$(mark "$k")" ]; then mv -fT "$n" "$k" && sync "${k%/*}" && echo was; exit; fi
    rm -f "$n"
  done
  echo "$k is being written by somebody else all the time" >&2; exit 1
)

#: let_in
d="$HOME/.ssh"; [ -e "$d/authorized_keys" ] || { mkdir -p -m 700 "$d" && : >"$d/.made-by-sparkwright" || exit 1; }
rewrite "$2" "$1"

#: let_out
d="$HOME/.ssh"; [ -e "$d/authorized_keys" ] || exit 0
rewrite "$1" "" || exit 1
if [ -e "$d/.made-by-sparkwright" ] && [ ! -s "$d/authorized_keys" ]; then
  rm -f "$d/authorized_keys" "$d/.made-by-sparkwright"; rmdir "$d" 2>/dev/null || :
fi
