"""Replaces a tool that needs hardware; prints what the tool's switch file names.

/opt/shims/TOOL/switch names a variant. Of these files the first that exists is the answer:
  VARIANT@ARG_ARG.txt   for exactly these arguments
  VARIANT.json          nvidia-smi only: a table that --query-gpu and --query-compute-apps are answered from
  VARIANT.txt           whatever the arguments
VARIANT.exit holds the exit code, VARIANT.err goes to stderr, VARIANT.sleep delays (seconds: a tool that hangs).
The variant `twin` (nvidia-smi) is what the simulators on this node do: `working`, `spinning`, `default`.
The variant `real` runs the next program of that name on PATH, `absent` behaves as if it were not installed.
"""

import json
import sys
import time

TOOL = sys.argv.pop(1)
HOME = "/opt/shims/" + TOOL
UNITS = ("MiB", "MHz", "W", "%")


def read(name, default=""):
    try:
        with open(HOME + "/" + name) as file:
            return file.read()
    except OSError:
        return default


def absent():
    print(f"{TOOL}: command not found", file=sys.stderr)
    sys.exit(127)


def simulators_do():
    """Marks in the node's network namespace, where ranks in containers are too."""
    with open("/proc/net/unix") as file:
        marks = {line.split("/")[1] for line in file if "@sparkwright-twin/" in line}
    return "working" if "work" in marks else "spinning" if "spin" in marks else "default"


def split_unit(value):
    number, _, unit = value.rpartition(" ")
    return (number, unit) if unit in UNITS else (value, "")


def row_text(row, fields, nounits):
    values = [str(row[field]) for field in fields]
    return ", ".join(split_unit(value)[0] if nounits else value for value in values)


def heading(rows, field):
    unit = next((split_unit(str(row[field]))[1] for row in rows), "")
    return f"{field} [{unit}]" if unit else field


def print_query(rows, known, asked, formats):
    fields = [field.strip() for field in asked.split(",")]
    wrong = [field for field in fields if field not in known]
    if wrong:
        print(f'Field "{wrong[0]}" is not a valid field to query.\n')
        sys.exit(2)
    if "noheader" not in formats:
        print(", ".join(heading(rows, field) for field in fields))
    for row in rows:
        print(row_text(row, fields, "nounits" in formats))


def answer_query(text):
    """True where the arguments asked for a table."""
    table = json.loads(text)
    options = dict(word.lstrip("-").partition("=")[::2] for word in sys.argv[1:])
    formats = options.get("format", "").split(",")
    for option, rows in (("query-gpu", table["gpu"]), ("query-compute-apps", table["apps"])):
        if option in options:
            print_query(rows, table["fields"][option], options[option], formats)
            return True
    return False


def main():
    variant = read("switch", "default").strip()
    if variant in ("absent", "real"):  # `shim` has found no real one
        absent()
    if variant == "twin":
        variant = simulators_do()
    time.sleep(float(read(variant + ".sleep", "0")))
    exact = read(f"{variant}@{'_'.join(sys.argv[1:])}.txt".replace("/", "_"), None)
    table = read(variant + ".json", None)
    if exact is not None:
        sys.stdout.write(exact)
    elif table is None or not answer_query(table):
        sys.stdout.write(read(variant + ".txt"))
    sys.stderr.write(read(variant + ".err"))
    sys.stdout.flush()
    sys.exit(int(read(variant + ".exit", "0")))


main()
