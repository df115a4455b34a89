"""Time and memory of the learner on sparse hits: ten classes, 50 hits per item, of which 15 % are of its own class.

The other hits are of any item, so that one step says little and two steps say more. Every size runs in a process of
its own with one thread; the peak counts everything the process had, the hits included. ::

    python benchmarks/speed/similarity_hits.py                  # 6250, 25,000 and 100,000 items
    python benchmarks/speed/similarity_hits.py --items 6250 25000

Rows are merged into results/similarity_hits.csv beside this file, so that sizes may be run apart.
"""

import json
import resource
import time

import numpy as np
from growth import run_sizes
from scipy.sparse import coo_array, csr_array

HITS, CLASSES, SAME, NEW = 50, 10, 0.15, 1000


def planted(n, random):
    """Hits of n items and their classes."""
    y = random.integers(CLASSES, size=n)
    order = np.argsort(y, kind="stable")
    start = np.searchsorted(y[order], np.arange(CLASSES + 1))
    rows = np.repeat(np.arange(n), HITS)
    of_class = order[random.integers(start[y[rows]], start[y[rows] + 1])]
    is_same = random.uniform(size=len(rows)) < SAME
    columns = np.where(is_same, of_class, random.integers(n, size=len(rows)))
    values = random.uniform(10, 100, len(rows))
    return csr_array(coo_array((values, (rows, columns)), shape=(n, n))), y


def measure(n):
    """Fit on n items and predict others; print processor and clock seconds, the peak, and the accuracy."""
    from mercerless import HitsClassifier

    S, y = planted(n + NEW, np.random.default_rng(0))
    new, S = S[n:][:, :n], S[:n][:, :n]
    start, clock = time.process_time(), time.perf_counter()
    model = HitsClassifier(random_state=0).fit(S, y[:n])
    row = {"items": n, "hits": S.nnz, "processor seconds": time.process_time() - start}
    row["seconds"] = time.perf_counter() - clock
    row["accuracy"] = 100.0 * model.score(new, y[n:])
    row["peak GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps(row))


if __name__ == "__main__":
    run_sizes(__file__, measure, __doc__)
