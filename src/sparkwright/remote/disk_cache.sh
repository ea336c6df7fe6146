# Sent to nodes by disk_cache.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: prepare
# prepare FOLDER BYTES w: exits with the reason where it cannot be made or, with w, be written. A disk that hangs is
# away, too. In front of prune.
d=$(x "$1")
timeout 20 mkdir -p "$d" 2>&1 || { [ $? -lt 124 ] || echo "its disk does not answer"; exit @AWAY@; }
case ",$(timeout 20 findmnt -n -o OPTIONS -T "$d" 2>/dev/null | tail -n 1)," in *,ro,*)
  echo "its disk is mounted read-only"; exit @AWAY@ ;; esac
[ -z "$3" ] || timeout 20 test -w "$d" || { echo "it cannot be written"; exit @AWAY@; }

#: prune
# prune FOLDER BYTES: the oldest files go until the rest fits. Nothing but files of that folder, and no link is followed.
cd "$(x "$1")" 2>/dev/null || exit 0
timeout 50 find . -xdev -type f ! -name '*
*' -printf '%T@ %s %p\n' 2>/dev/null | sort -rn | awk -v most="$2" '
  { sum += $2 } sum > most { sub(/^[^ ]+ [^ ]+ /, ""); print }' | tr '\n' '\0' | xargs -0 -r rm -f --
exit 0

#: usage
# usage FOLDER: bytes in it and bytes free on its disk; `gone` where it cannot be read, `read-only` where not written.
d=$(x "$1")
[ -d "$d" ] || { echo gone; exit 0; }
u=$(timeout 20 du -s -B1 -x "$d" 2>/dev/null) || { echo gone; exit 0; }
f=$(df -P -B1 -- "$d" 2>/dev/null | tail -n 1 | awk '{ print $4 }')
[ -w "$d" ] || { echo read-only; exit 0; }
printf 'used %s %s\n' "${u%%[!0-9]*}" "${f:-0}"

#: slots
# slots FOLDER: the files of slots in it that hold something.
d=$(x "$1")
f=$(timeout 20 find "$d" -maxdepth 1 -type f -size +0 -name 'slot-[0-9]*.bin' -printf ' %f' 2>/dev/null) || exit 0
printf 'slots%s\n' "$f"

#: rename
# rename FOLDER OLD NEW: what was written is on the disk before it has its name.
d=$(x "$1")
timeout 110 sync "$d/$2" && timeout 5 mv -f -- "$d/$2" "$d/$3"
