"""One size after another, each in a process of its own: rows of time and memory, with exponents of growth."""

import argparse
import csv
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np


def run_sizes(script, measure, description):
    """The command line of a script whose `measure(n)` prints one row as JSON; rows go into its results."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[6250, 25_000, 100_000])
    parser.add_argument("--one", type=int)
    arguments = parser.parse_args()
    if arguments.one:
        return measure(arguments.one)
    script = Path(script)
    for n in arguments.items:
        command = [sys.executable, str(script), "--one", str(n)]
        # threads that wait for a busy core count as work
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        merge(script.parent / "results" / f"{script.stem}.csv", json.loads(done.stdout))


def merge(path, row):
    """Put a row into the table, in the place of an earlier one of as many items, with exponents of growth."""
    rows = {}
    if path.exists():
        with open(path, newline="") as file:
            rows = {int(old["items"]): old for old in csv.DictReader(file)}
    rows[row["items"]] = {key: round(value, 3) for key, value in row.items()}
    table = [rows[n] | {"exponent": ""} for n in sorted(rows)]
    for less, more in pairwise(table):
        growth = np.log(float(more["processor seconds"]) / float(less["processor seconds"]))
        more["exponent"] = round(growth / np.log(int(more["items"]) / int(less["items"])), 3)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    print(*table, sep="\n", flush=True)
