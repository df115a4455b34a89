"""Run claims, one process each: alone into their own results, or all into a folder, within a limit, resuming."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from benchmarks.claims import CLAIMS, HERE
from benchmarks.machine import describe


def run(claim, words, script=None, limit=None, log=None):
    """One claim in a process group of its own; "done", "failed" or "limit", its seconds and processor seconds."""
    command = [sys.executable, str(script or claim.path), *words]
    start, before = time.monotonic(), processor_seconds()
    child = subprocess.Popen(
        command, stdout=log, stderr=subprocess.STDOUT if log else None, start_new_session=True
    )
    try:
        status = "done" if child.wait(limit) == 0 else "failed"
    except subprocess.TimeoutExpired:
        status = "limit"
    finally:  # also after Ctrl-C: no process goes on without us
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return status, round(time.monotonic() - start, 1), round(processor_seconds() - before, 1)


def processor_seconds():
    """Those of all ended children and theirs."""
    used = os.times()
    return used.children_user + used.children_system


def record(claim, options, seconds):
    """Write versions and machine beside the rows of a claim."""
    command = " ".join(["python -m benchmarks", claim.name, *options])
    path = claim.csv.parent / "machine" / f"{claim.results}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, {"command": command, "seconds": seconds} | describe())


def write(path, content):
    path.write_text(json.dumps(content, indent=1) + "\n")


# ---------------------------------------------------------------------------------------------------- all of them
def default_folder(full=False):
    return HERE / "runs" / ("full" if full else "reduced")


def known_runs():
    """The last reduced run of every claim that has one on record, by name."""
    path = default_folder() / "state.json"
    if not path.exists():
        return {}
    claims = json.loads(path.read_text())["claims"]
    return {name: entry for name, entry in sorted(claims.items()) if entry["status"] == "done"}


def plan(claims=CLAIMS):
    """A line per claim with its recorded processor seconds, and the sum beside what an hour has."""
    known = known_runs()
    lines = []
    for claim in claims:
        seconds = "not on record"
        if claim.name in known:
            entry = known[claim.name]
            seconds = f"{entry['cpu_seconds']:8.0f} s  {entry['commit']}"
        lines.append(f"{claim.name:30s} {seconds:26s} {claim.reduced}")
    on_record = [known[claim.name]["cpu_seconds"] for claim in claims if claim.name in known]
    lines.append(
        f"{len(on_record)} of {len(claims)} claims are on record with {sum(on_record) / 60:.0f} "
        "processor minutes in all; an hour of two cores has 120"
    )
    return "\n".join(lines)


def run_all(folder, claims=CLAIMS, full=False, limit=None, say=print):
    """Run all claims into a folder, except those that are done at this commit; True if nothing failed.

    The scripts are copied there: they write their rows beside themselves, and the published ones stay as they are.
    Claims of another commit stay in the folder, with its name, until they are run again.
    """
    machine = describe()
    state = resumed(folder, {key: machine[key] for key in ("processor", "versions")}, full)
    copy_scripts(folder)
    write(folder / "machine.json", machine)
    for claim in claims:
        entry = state["claims"].get(claim.name, {})
        is_current = entry.get("commit") == machine["commit"]
        if is_current and entry["status"] == "done":
            say(f"{claim.name:30s} finished before", flush=True)
            continue
        if not is_current and not claim.lacks_data():
            (folder / claim.csv.relative_to(HERE)).unlink(missing_ok=True)
        entry = measure(folder, claim, full, limit) | {"commit": machine["commit"]}
        state["claims"][claim.name] = entry
        write(folder / "state.json", state)
        say(f"{claim.name:30s} {entry['status']:16s} {entry['seconds']:8.1f} s", flush=True)
    ends = [state["claims"][claim.name]["status"] for claim in claims]
    counts = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
    say(f"{counts}; rows, machine and logs are in {folder}", flush=True)
    return "failed" not in ends


def resumed(folder, machine, full):
    """The state of earlier runs on the same machine with the same protocol; else a new one, and an empty folder.

    The versions of NumPy, SciPy and scikit-learn must be the same; rows name the commit of the library themselves.
    """
    path = folder / "state.json"
    same = machine | {"full": full}
    if path.exists():
        state = json.loads(path.read_text())
        if all(_comparable(state.get(key)) == _comparable(value) for key, value in same.items()):
            return state | same
        for group in ("papers", "speed", "logs"):
            shutil.rmtree(folder / group, ignore_errors=True)
    return same | {"claims": {}}


def _comparable(value):
    """Of versions only those of packages that every claim rests on."""
    if not isinstance(value, dict):
        return value
    return {name: value.get(name) for name in ("numpy", "scipy", "scikit-learn")}


def copy_scripts(folder):
    for name in ("papers/results", "speed/results", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for pattern in ("papers/*.py", "papers/*.csv", "speed/*.py"):
        for source in HERE.glob(pattern):
            shutil.copy(source, folder / source.relative_to(HERE))


def measure(folder, claim, full, limit):
    """Run one claim in the folder; how it ended."""
    if claim.lacks_data():
        return {"status": "no data", "seconds": 0.0}
    words = claim.words(claim.full if full else claim.reduced)
    script = folder / claim.path.relative_to(HERE)
    with open(folder / "logs" / f"{claim.name.replace(' ', '_')}.txt", "w") as log:
        status, seconds, used = run(claim, words, script, limit, log)
    return {"status": status, "seconds": seconds, "cpu_seconds": used, "words": words}
