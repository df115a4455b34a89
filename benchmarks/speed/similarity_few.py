"""Time and memory of the automatic choice on comparisons with 400 landmarks, read from a mapped file.

Manhattan distances of ten classes of vectors to 400 of them, in a file of float64. Every size runs in a process of its
own; the peak counts the mapped pages too. ::

    python benchmarks/speed/similarity_few.py                  # 6250, 25,000 and 100,000 items
    python benchmarks/speed/similarity_few.py --items 6250 25000

Rows are merged into results/similarity_few.csv beside this file, so that sizes may be run apart.
"""

import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from growth import run_sizes

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


if __name__ == "__main__":
    run_sizes(__file__, measure, __doc__)
