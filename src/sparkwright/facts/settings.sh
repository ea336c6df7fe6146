# Sent to nodes by settings.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: settings
# User and password in a proxy's address never leave the node; neither does any other variable.
p='^(export )?(NCCL_|GLOO_|UCX_|OMPI_MCA_|TP_SOCKET_|MN_IF_)[A-Z0-9_]*='
q='^(export )?(https?_proxy|HTTPS?_PROXY|all_proxy|ALL_PROXY|no_proxy|NO_PROXY)='
clean() { sed -e 's|://[^/@]*@|://|' -e 's/^export //'; }
from() { printf '@@ %s %s\n' "$1" "$2"; }
from session communication; env | grep -E "$p"
from session proxies; env | grep -E "$q" | clean
for f in /etc/environment /etc/nccl.conf "$HOME/.nccl.conf" "$HOME/.profile" "$HOME/.bashrc"; do
  g="$f"; [ "$f" = "$HOME${f#"$HOME"}" ] || g="$R$f"
  [ -r "$g" ] || continue
  from "$f" communication; grep -E "$p" "$g"
  from "$f" proxies; grep -E "$q" "$g" | clean
done
printf '@@ nccl\n'
for d in /usr/lib/aarch64-linux-gnu /usr/lib/x86_64-linux-gnu /usr/local/lib /usr/local/cuda/lib64 /opt/nccl/lib; do
  for l in "$R$d"/libnccl.so.*.*; do [ ! -f "$l" ] || [ -L "$l" ] || printf '%s\n' "$d/${l##*/}"; done
done
printf '@@ token\n'
t="${HF_TOKEN_PATH:-${HF_HOME:-$HOME/.cache/huggingface}/token}"
[ ! -e "$t" ] || stat -Lc '%a %n' "$t"
printf '@@ ssh\n'
grep -siElE '^[[:space:]]*StrictHostKeyChecking[[:space:]=]+(no|off)' "$HOME/.ssh/config" "$R"/etc/ssh/ssh_config \
  "$R"/etc/ssh/ssh_config.d/*.conf
exit 0

#: times
printf '@@ now\n'; date +%s.%N
show uptime "$R/proc/uptime"
[ -z "$R" ] || exit 0
printf '\n@@ sync\n'; LC_ALL=C timeout 3 timedatectl show -p NTP -p NTPSynchronized 2>/dev/null
printf '@@ boots\n'; LC_ALL=C last -x -n 12 reboot shutdown 2>/dev/null
exit 0
