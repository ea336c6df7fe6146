# Sent to nodes by gateway.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: look
# Nothing of the private key leaves the node; what is compared is the public half. The last line of `port` is a process
# of this deployment's gateway, told by the folder it runs in.
d="$(x "$1")/door"; h="$(x "$2")/door"
printf '@@ keys\n'; cat "$d/keys.json" 2>/dev/null
printf '\n@@ keys-mode\n'; stat -c %a "$d/keys.json" 2>/dev/null
printf '@@ keys-file\n%s\n' "$d/keys.json"
printf '@@ caddy\n'; PATH="$PATH:$HOME/.local/bin"; c=$(command -v caddy) && printf '%s\n%s\n' "$c" "$("$c" version)"
printf '@@ image\n'; docker image inspect --format '{{.Id}}' "$4" 2>/dev/null
printf '@@ host\n%s\n' "$(uname -n)"
printf '@@ addresses\n'; hostname -I 2>/dev/null
printf '@@ user\n%s:%s\n' "$(id -u)" "$(id -g)"
printf '@@ port\n'; LC_ALL=C ss -ltnpH "sport = :$3" 2>/dev/null
printf '@@ front\n'; cat "$h/gateway.json" 2>/dev/null
printf '\n@@ behind\n'
for f in "${h%/*/*}"/*/door/behind; do [ "$(cat "$f")" != "$3" ] || { f="${f%/door/behind}"; echo "${f##*/}"; }; done 2>/dev/null
printf '@@ ours\n'
find /proc/[0-9]*/cwd -maxdepth 0 -printf '%h %l\n' 2>/dev/null | while read -r p l; do
  [ "$l" != "$h" ] || { tr '\0' ' ' <"$p/cmdline"; echo; }; done 2>/dev/null
[ -n "$5" ] || exit 0
printf '@@ pair\n'
if [ ! -r "$5" ]; then echo no-certificate; elif [ ! -r "$6" ]; then echo no-key
elif command -v openssl >/dev/null; then
  LC_ALL=C; export LC_ALL
  a=$(openssl x509 -in "$5" -noout -pubkey 2>/dev/null); b=$(openssl pkey -in "$6" -passin pass: -pubout 2>/dev/null)
  if [ -z "$a" ]; then echo bad-certificate; elif [ -z "$b" ]; then echo bad-key
  elif [ "$a" != "$b" ]; then echo differs
  elif ! openssl x509 -in "$5" -noout -checkend 0 >/dev/null; then echo expired; else echo good; fi
  openssl x509 -in "$5" -noout -checkend "$7" >/dev/null 2>&1 || echo soon
  openssl x509 -in "$5" -noout -startdate -enddate 2>/dev/null; printf 'now=%s\n' "$(date -u '+%b %e %T %Y GMT')"
fi
printf 'mode=%s\n' "$(stat -Lc %a "$6" 2>/dev/null)"
exit 0

#: folders
# At each start Caddy sweeps empty folders out of its store, also what it has just made for a certificate, which it
# then tries to make again after a minute (seen with 2.6.2). A folder that holds something is left alone.
umask 077
for d in "$(x "$1")/door" "$(x "$1")/door/ca" "$(x "$2")/door"; do mkdir -p "$d" && chmod 700 "$d" || exit; done
shift 2; for d; do mkdir -p "$d" && : >"$d/keep" || exit; done

#: trust
# The certificate that clients were given, and `other` where the CA on the disk is another one, or gone.
g="$(x "$1")/door/given.crt"; [ -s "$g" ] || exit 0
cat "$g"; cmp -s "$g" "$(x "$2")" || printf '\nother\n'

#: give
umask 077; cd "$(x "$1")/door" && cat >given.new && sync given.new && mv -f given.new given.crt

#: behind
umask 077; d="$(x "$1")/door"; mkdir -p "$d" && chmod 700 "$d" && printf '%s\n' "$2" >"$d/behind"

#: swap
umask 077; d="$(x "$1")/door"; mkdir -p "$d" && chmod 700 "$d" && cd "$d" || exit 1
exec 9>keys.lock; flock -w 10 9 || exit 1
now=; [ ! -s keys.json ] || now=$(sha256sum <keys.json | cut -c1-64)
[ "$now" = "$2" ] || exit 75
cat >keys.new && sync keys.new && mv -f keys.new keys.json

#: programs
h="$(x "$1")"; d="$2"; shift 2
for n in "$@"; do
  p=$(cat "$h/services/$n/child" 2>/dev/null) ||
    p=$(cd /proc && printf '%s\n' [0-9]*/cgroup | xargs -n 40 grep -lsF "/sparkwright-$n-$d.service" | sort -n | head -n 1)
  p=${p%%/*}
  [ -z "$p" ] || echo "$n $p"
done

#: usage
PATH="$PATH:/usr/local/bin"; exec python3 -I - "$(x "$1")/door/usage.sqlite" "$2" "$3" <<'END'
import json, os, sqlite3, sys

path, since, most = sys.argv[1:]
found = []
if os.path.exists(path):
    link = sqlite3.connect("file:%s?mode=ro" % path.replace("%", "%25").replace("?", "%3f"), uri=True, timeout=5)
    columns = [row[1] for row in link.execute("PRAGMA table_info(usage)")]
    rows = link.execute("SELECT * FROM usage WHERE day >= ? ORDER BY day, key, model LIMIT ?", (since, int(most)))
    found = [dict(zip(columns, row)) for row in rows]
print(json.dumps(found))
END
