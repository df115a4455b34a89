"""Time and memory of the automatic choice on comparisons with 400 landmarks, read from a mapped file.

Manhattan distances of ten classes of vectors to 400 of them, in a file of float64. Every size runs in a process of its
own; the peak counts the mapped pages too. ::

    python benchmarks/speed/similarity_few.py                  # 6250, 25,000 and 100,000 items
    python benchmarks/speed/similarity_few.py --items 6250 25000

Rows are merged into results/similarity_few.csv beside this file, so that sizes may be run apart.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

M = 400


def write(path, n):
    """Distances of n items to the first 400, in a file, and the labels."""
    random = np.random.RandomState(0)
    y = random.randint(10, size=n)
    X = 1.5 * random.normal(size=(10, 12))[y] + random.normal(size=(n, 12)) * random.uniform(
        0.5, 2.0, size=(n, 1)
    )
    C = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, M))
    for start in range(0, n, 2000):
        C[start : start + 2000] = np.abs(X[start : start + 2000, None] - X[:M]).sum(axis=2)
    C.flush()
    return y


def measure(n):
    """Fit on all but 1000 items of a file; print processor and clock seconds, the peak, and the accuracy."""
    from mercerless import SimilarityClassifier

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "comparisons.npy"
        y = write(path, n + 1000)
        C = np.load(path, mmap_mode="r")
        start, clock = time.process_time(), time.perf_counter()
        model = SimilarityClassifier("precomputed", landmarks=M, random_state=0).fit(C[:n], y[:n])
        row = {"items": n, "landmarks": M, "processor seconds": time.process_time() - start}
        row["seconds"] = time.perf_counter() - clock
        row["peak GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        row["accuracy"] = 100.0 * model.score(np.array(C[n:]), y[n:])
    print(json.dumps(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[6250, 25_000, 100_000])
    parser.add_argument("--one", type=int)
    arguments = parser.parse_args()
    if arguments.one:
        return measure(arguments.one)
    for n in arguments.items:
        command = [sys.executable, __file__, "--one", str(n)]
        # threads that wait for a busy core count as work
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        merge(json.loads(done.stdout))


def merge(row):
    """Put a row into the table, in the place of an earlier one of as many items, with exponents of growth."""
    path = Path(__file__).parent / "results" / "similarity_few.csv"
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
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    print(*table, sep="\n", flush=True)


if __name__ == "__main__":
    main()
