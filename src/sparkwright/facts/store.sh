# Sent to nodes by store.py: `#: NAME` begins a section; the comment lines right below it are not sent.
# DGX OS has python3 in /usr/bin; other machines in places that a session without a login does not look into.

#: supervised
PATH="$PATH:/usr/local/bin"; exec python3 -I - "$(x "$1")" <<'END'
import json, os, pwd, subprocess, sys, time

def text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""

def word(found, name):
    return found.get(name) if isinstance(found, dict) else None

def parsed(path):
    try:
        return json.loads(text(path))
    except ValueError:
        return None

def process(pid, home):
    words = text("/proc/%s/cmdline" % pid).split("\0")
    homes = [os.path.realpath(after) for word, after in zip(words, words[1:]) if word == "--home"]
    alive = isinstance(pid, int) and os.path.realpath(home) in homes  # a pid may be somebody else's by now
    folder, _, group = text("/proc/%s/cgroup" % pid).strip().rpartition("/") if alive else ("", "", "")
    ours = group.startswith("sparkwright") and group.endswith(".service")
    return alive, group if ours else "", ours and "/user@" in folder

def owner(path):
    number = os.stat(path).st_uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)

def unwritable(home):
    # Names of domain.live.Unwritable, then the owner's; "" where our user may write.
    try:
        if os.statvfs(home).f_flag & os.ST_RDONLY:
            return "read-only"
        if os.access(home, os.W_OK):
            return ""
        return "owned " + owner(home) if os.stat(home).st_uid != os.getuid() else "mode"
    except OSError:
        return ""

def comes_back(home):
    # Whether systemd, or the loop of a detached service, is about to start it again.
    pid, started = (text(home + "/services/supervisor/pid").split() + ["", ""])[:2]
    stat = text("/proc/%s/stat" % pid).rpartition(")")[2].split() if pid.isdigit() else []
    if len(stat) > 19 and stat[19] == started and stat[0] != "Z":
        return True
    unit = "sparkwright-supervisor-%s.service" % os.path.basename(home)
    places = {"--user": os.path.expanduser("~/.config/systemd/user"), "--system": "/etc/systemd/system"}
    os.environ.setdefault("XDG_RUNTIME_DIR", "/run/user/%d" % os.getuid())
    for manager in (m for m, place in places.items() if os.path.isfile(place + "/" + unit)):
        try:
            asked = ["systemctl", manager, "show", "-P", "ActiveState", unit]
            state = subprocess.run(asked, capture_output=True, text=True, timeout=3).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return False
        return state in ("active", "activating")
    return False

def fenced(root):
    # Why the gateway of this node may not serve, "" if it may: domain.standby.Term.
    term = parsed(root + "/_standby/term.json")
    if not isinstance(term, dict):
        return ""
    now, boot = float(text("/proc/uptime").split()[0]), text("/proc/sys/kernel/random/boot_id").strip()
    held = term.get("boot") == boot and now < float(term.get("until", 0))
    return "" if held else str(term.get("why") or "it has not the votes of most nodes")

def row(home, root):
    live, desired = parsed(home + "/live.json"), parsed(home + "/desired.json")
    alive, unit, users = process(word(live, "pid"), home)
    return {"users_unit": users, "unwritable": unwritable(home), "program": text(home + "/runtime").strip(),
            "deployment": os.path.basename(home), "live": live, "by": word(desired, "by") or "", "running": alive,
            "replica_of": word(word(desired, "replica"), "of") or "",
            "again": not alive and comes_back(home), "unit": unit, "endpoint": text(home + "/door/endpoint").strip(),
            "second": text(home + "/door/second").strip(), "fenced": fenced(root), "folder": os.path.dirname(root),
            "now": time.time()}

root = os.path.join(sys.argv[1], "supervision")
for folder in (sys.argv[1], root):
    if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK):
        print(json.dumps({"closed": folder, "owner": owner(folder)}))
        sys.exit(0)
def rows(root):
    names = sorted(os.listdir(root)) if os.path.isdir(root) else []
    homes = [os.path.join(root, name) for name in names]
    return [row(home, root) for home in homes if os.path.isfile(home + "/desired.json")]

# The standby's copies count while it supervises, but for those that cannot do without the head.
copies = os.path.join(root, "_standby", "state", "supervision")
taken = rows(copies) if os.path.isfile(copies + "/_standby/term.json") and not fenced(copies) else []
taken = [one for one in taken if not os.path.exists(os.path.join(copies, one["deployment"], "needs-head"))]
print(json.dumps(rows(root) + [dict(one, taken=True) for one in taken]))
END

#: incidents
PATH="$PATH:/usr/local/bin"; exec python3 -I - "$(x "$1")" "$2" "$3" <<'END'
import glob, json, os, sqlite3, sys

state, only, known = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
COLUMNS = ("number deployment kind what opened_at evidence cause code fix closed_at outcome serving_at folder "
           "simulated").split()
SINCE_VERSION_3 = ["away_seconds", "away_word"]

def text(path, most=-1):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except OSError:
        return ""

def opened():
    # Read-only; what is left of a writer that was killed is recovered by the next writer, or read past by `immutable`.
    for how in ("mode=ro", "mode=ro&immutable=1"):
        database = sqlite3.connect("file:%s?%s" % (path.replace("%", "%25").replace("?", "%3f"), how), uri=True)
        try:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version > known:
                raise sqlite3.DatabaseError("it is of a newer version: %d, not %d" % (version, known))
            return database, "", COLUMNS + SINCE_VERSION_3 * (version >= 3)
        except sqlite3.Error as error:
            why = str(error)
            database.close()
    return None, why, ()

def rows():
    if not os.path.exists(path):
        return {}, ""
    database, why, columns = opened()
    if database is None:
        return {}, why
    try:
        where = " WHERE number = %d" % only if only else ""
        asked = "SELECT %s FROM incidents%s ORDER BY number DESC LIMIT 200" % (", ".join(columns), where)
        found = {row[0]: dict(zip(columns, row)) for row in database.execute(asked)}
        for one in found.values():
            one.update(evidence=json.loads(one["evidence"]), fix=json.loads(one["fix"]), events=[],
                       simulated=bool(one["simulated"]))
        for number, at, kind, what in database.execute(
                "SELECT incident, at, kind, text FROM events WHERE incident = ? ORDER BY id LIMIT 1000", (only,)):
            if number in found:
                found[number]["events"].append({"at": at, "kind": kind, "text": what})
        if not only:
            restarts.extend(database.execute(
                "SELECT deployment, at, kind, text FROM events WHERE kind = 'restarted' ORDER BY id DESC LIMIT 200"))
        return found, ""
    except (sqlite3.Error, ValueError) as error:
        return {}, str(error)
    finally:
        database.close()

path, restarts = os.path.join(state, "store.sqlite"), []
found, why = rows()
for record in glob.glob(os.path.join(glob.escape(state), "incidents", "*", "*", "incident.json")):
    try:
        one = json.loads(text(record))
        if only in (0, one["number"]):
            events = one.get("events") or []
            if not only:  # of a list only what shows if an open one is watched
                told = [] if one.get("closed_at") else [each for each in events if isinstance(each, dict)]
                events = [each for each in told if each.get("kind") in ("unwatched", "watched")]
            found[one["number"]] = dict(one, folder=os.path.dirname(record), events=events)
    except (ValueError, KeyError, TypeError):
        pass
answer = {"why": why, "restarts": restarts, "incidents": [found[number] for number in sorted(found, reverse=True)]}
if only and only in found:
    folder = found[only].get("folder") or ""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    answer["files"] = [[name, os.path.getsize(os.path.join(folder, name))] for name in names]
    answer["diagnosis"] = text(os.path.join(folder, "diagnosis.json"), 1000000)
print(json.dumps(answer))
END
