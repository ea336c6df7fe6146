"""The drills of what comes back by itself and remembers (issue 41), with what must be printed."""

from drills import memory_faults as faults
from drills.outage import BEYOND, Expected
from drills.outage_drill import OutageDrill
from drills.outage_plan import KILLED, TENTH, UNTOUCHED, restart_pattern
from drills.stage import DrillStage

WATCHDOG_S = 40.0
"""Seconds until systemd has ended a program that gives no sign of life, and it serves again."""

POWER = OutageDrill(
    "power of the worker cut",
    "the worker is off at once, without a shutdown, and on again after 3 s",
    faults.cut_power(3.0),
    Expected(away=15.0, cause=r"rank 1 ", record=r"last record of spark-2[^\n]*It suggests: "),
    limit=150.0,
)
KEY_CHECK = OutageDrill(
    "key check stopped by SIGSTOP",
    "SIGSTOP to the service that checks keys; nobody continues it",
    faults.stop_unit(lambda unit: "door" in unit),
    Expected(incidents=None, away=WATCHDOG_S, record=restart_pattern("key check|keys|gateway")),
    limit=120.0,
)
HUNG_CADDY = OutageDrill(
    "Caddy stopped by SIGSTOP",
    "SIGSTOP to Caddy, for which systemd has no watchdog; nobody continues it",
    faults.stop_unit(lambda unit: "caddy" in unit),
    Expected(incidents=None, away=WATCHDOG_S, record=restart_pattern("caddy|gateway"), status="Caddy answers nothing"),
    limit=120.0,
)
GUARD = OutageDrill(
    "memory guard stopped while loading",
    "SIGKILL to rank 1, and SIGSTOP to the worker's memory guard while the relaunch loads",
    faults.stop_load_guard,
    Expected(cause=KILLED, record=r"memory guard of spark-2 gave no sign of life"),
    limit=300.0,
)
LONG_LOAD = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "1.5"}
"""A load of about a minute: a guard that hangs is ended after 30 s."""
PROMPTS = OutageDrill(
    "prompts kept over a kill",
    "a context of 10 KB is asked for three times, then SIGKILL to rank 1 (`serving.remember`)",
    faults.kept_prompts,
    Expected(away=BEYOND, cause=KILLED, status=r"kept prompts: [1-9]\d* prefix"),
    limit=120.0,
)
WEIGHTS = OutageDrill(
    "weights kept over a kill",
    "SIGKILL to rank 1; a process of its own has the weights (`loading.weight_cache`)",
    faults.kept_weights,
    Expected(away=BEYOND, cause=KILLED),
)
TOLD = OutageDrill(
    "notification of an outage",
    "SIGKILL to rank 1; a receiver of ntfy's form on the head",
    faults.told_of_outage,
    Expected(away=BEYOND, cause=KILLED),
)
LOOP = OutageDrill(
    "endless answer",
    "a streamed answer that repeats one sentence 400 times, and the sentence once (`serving.gateway.end_loops`)",
    faults.endless_answer,
    UNTOUCHED,
)
SLOTS = OutageDrill(
    "llama.cpp killed, its slots on a disk",
    "a context of 1,000 tokens, then SIGKILL to the real llama.cpp with random weights (`serving.disk_cache`)",
    faults.kept_slots,
    Expected(away=BEYOND, cause=r"rank 0 ", status=r"[1-9][\d,]* tokens restored after the start"),
    limit=120.0,
)
CACHE_DISK = OutageDrill(
    "disk of the engine's cache gone",
    "the disk below `serving.disk_cache` of the real llama.cpp is unmounted; later it is back",
    faults.lose_cache_disk,
    Expected(incidents=0, status=r"spark-1: /home/spark/kv/\S+ [^\n]*contexts are not kept there"),
    limit=120.0,
)
WITHOUT_DISK = OutageDrill(
    "llama.cpp killed, the disk of its cache away",
    "the disk below `serving.disk_cache` is unmounted, then SIGKILL to the real llama.cpp; it serves without the cache",
    faults.kill_without_cache_disk,
    Expected(away=BEYOND, cause=r"rank 0 ", status=r"was started without it"),
    limit=120.0,
)
GARBLED = OutageDrill(
    "garbled after the start",
    "`up` of the real llama.cpp with a model of random weights",
    faults.garbled_start,
    idle=True,
)
MEMORY = (
    *(DrillStage((drill,), runtime="process") for drill in (POWER, KEY_CHECK, HUNG_CADDY)),
    DrillStage((GUARD,), runtime="process", env=LONG_LOAD),
    DrillStage((PROMPTS,), runtime="process", changes={"serving": {"remember": "16 MiB"}}),
    DrillStage((WEIGHTS,), runtime="process", changes={"loading": {"weight_cache": True}}),
    DrillStage((TOLD,), runtime="process", before=faults.listen),
    DrillStage((LOOP,), runtime="process", changes=faults.ENDING_LOOPS),
    *(
        DrillStage((drill,), runtime="process", scale=TENTH, before=faults.put_model, changes=faults.LLAMA_ON_DISK)
        for drill in (SLOTS, CACHE_DISK, WITHOUT_DISK)
    ),
    DrillStage((GARBLED,), runtime="process"),
)
