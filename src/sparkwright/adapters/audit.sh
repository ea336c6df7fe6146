# Sent to nodes by audit.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: note
# The log may not be writable (disk full, home read-only) and `down` must work all the same: the shell's complaint
# then stands in the command's stderr, and the command runs.
(
umask 077; d=$(x @STATE@); mkdir -p "$d" &&
printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" @REST@ >>"$d/audit.log"
) </dev/null 3<&-
