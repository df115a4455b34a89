"""Run claims, one process each: alone into their own results, or all into a folder, within a limit, resuming."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.claims import CLAIMS, HERE
from benchmarks.machine import describe

RECORD = HERE / "reduced.csv"
RECORDED = ("claim", "status", "cpu_seconds", "seconds", "commit", "processor")


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
    path = claim.csv.parent / "machine" / f"{claim.results}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = " ".join(["python -m benchmarks", claim.name, *options])
    path.write_text(
        json.dumps({"command": command, "seconds": seconds} | describe(), indent=1) + "\n"
    )


def known_runs():
    """The last reduced run of every claim that has one on record."""
    with open(RECORD, newline="", encoding="utf-8") as file:
        return {row["claim"]: row for row in csv.DictReader(file)}


def plan(claims=CLAIMS):
    """A line per claim with its recorded processor seconds, and the sum beside what an hour has."""
    known = known_runs()
    lines = []
    minutes = 0.0
    for claim in claims:
        seconds = "not on record"
        if claim.name in known:
            row = known[claim.name]
            seconds = f"{float(row['cpu_seconds']):8.0f} s  {row['commit']}"
            minutes += float(row["cpu_seconds"]) / 60
        lines.append(f"{claim.name:30s} {seconds:26s} {claim.reduced}")
    count = sum(claim.name in known for claim in claims)
    lines.append(
        f"{count} of {len(claims)} claims are on record with {minutes:.0f} processor minutes in all; "
        "an hour of two cores has 120"
    )
    return "\n".join(lines)


class Evidence:
    """A run of claims into a folder, which remembers what is finished for this commit on this machine.

    The scripts are copied there: they write their rows beside themselves, and the published ones stay as they are.
    Claims of another commit stay in the folder, with its name, until they are run again.
    """

    def __init__(self, folder, full=False, claims=CLAIMS):
        self.folder, self.full, self.claims = Path(folder), full, claims
        self.machine = describe()
        self.state = self._resumed()

    def _resumed(self):
        """What earlier runs on the same machine with the same protocol have finished; else an empty folder."""
        path = self.folder / "state.json"
        same = {key: self.machine[key] for key in ("processor", "versions")} | {"full": self.full}
        if path.exists():
            state = json.loads(path.read_text())
            if {key: state.get(key) for key in same} == same:
                return state
            for group in ("papers", "speed", "logs"):
                shutil.rmtree(self.folder / group, ignore_errors=True)
        return same | {"claims": {}}

    def __call__(self, limit=None, total=None, say=print):
        """Measure what is not finished within `limit` seconds each or `total` seconds; True if nothing failed."""
        self.copy_scripts()
        start = time.monotonic()
        claims = self.cheap_first()
        for k, claim in enumerate(claims):
            if total is not None:
                left = max(1.0, total - (time.monotonic() - start))
                limit = left / (len(claims) - k)
            if self.finished(claim, limit):
                entry = self.state["claims"][claim.name] | {"status": "finished before"}
            else:
                entry = self.measure(claim, limit)
            say(f"{claim.name:30s} {entry['status']:16s} {entry['seconds']:8.1f} s", flush=True)
        self.remember()
        ends = [self.state["claims"][claim.name]["status"] for claim in self.claims]
        counts = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
        say(f"{counts}; rows, machine and logs are in {self.folder}", flush=True)
        return "failed" not in ends

    def copy_scripts(self):
        for pattern in ("papers/*.py", "papers/*.csv", "speed/*.py"):
            for source in HERE.glob(pattern):
                target = self.folder / source.relative_to(HERE)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        for name in ("papers/results", "speed/results", "logs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "machine.json").write_text(json.dumps(self.machine, indent=1) + "\n")

    def cheap_first(self):
        """What cheap claims leave of their share of the time is for the others."""
        known = known_runs()
        unknown = {"cpu_seconds": "inf"}
        return sorted(self.claims, key=lambda c: float(known.get(c.name, unknown)["cpu_seconds"]))

    def finished(self, claim, limit):
        """Whether a claim is done, or ended at a limit that was no smaller, at this commit."""
        known = self.state["claims"].get(claim.name, {})
        if known.get("commit") != self.machine["commit"]:
            return False
        at_limit = known["status"] == "limit" and limit is not None and known["limit"] >= limit
        return known["status"] == "done" or at_limit

    def measure(self, claim, limit):
        """Run one claim and write down how it ended; the rows of another commit go first."""
        commit = self.machine["commit"]
        if claim.needs_data == "yes" and not os.environ.get("MERCERLESS_DATA"):
            entry = {"status": "no data", "seconds": 0.0}
        else:
            words = claim.words(claim.full if self.full else claim.reduced)
            script = self.folder / claim.path.relative_to(HERE)
            if self.state["claims"].get(claim.name, {}).get("commit") != commit:
                (self.folder / claim.csv.relative_to(HERE)).unlink(missing_ok=True)
            with open(self.folder / "logs" / f"{claim.name.replace(' ', '_')}.txt", "w") as log:
                status, seconds, used = run(claim, words, script, limit, log)
            entry = {"status": status, "seconds": seconds, "cpu_seconds": used, "limit": limit}
            entry["words"] = words
        self.state["claims"][claim.name] = entry | {"commit": commit}
        (self.folder / "state.json").write_text(json.dumps(self.state, indent=1) + "\n")
        return entry

    def remember(self):
        """Write down the processor seconds of reduced runs, for the plan and the order of the next run."""
        known = known_runs()
        for name, entry in self.state["claims"].items():
            if entry["status"] == "done" and not self.full:
                row = {"claim": name, "processor": self.state["processor"]}
                known[name] = row | {key: entry[key] for key in RECORDED[1:5]}
        with open(RECORD, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, RECORDED, lineterminator="\n")
            writer.writeheader()
            writer.writerows(known[name] for name in sorted(known))
