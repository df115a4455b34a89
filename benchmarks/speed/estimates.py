"""What is announced before a long fit, against what it then takes.

    python benchmarks/speed/estimates.py [--estimators KreinRidge ...] [--small]

Fits of more than a minute with one thread, one after another; the estimate is the one that would be printed, the
processor seconds are those of the whole fit. About ten minutes; ``--small`` takes a third of the rows, in half a
minute, with the announcement's limit lowered, and writes nothing. Writes results/estimates.csv beside this file; rows
of other estimators are kept.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from exponents import estimator_of, training_data
from sklearn.base import is_classifier
from threadpoolctl import threadpool_limits

from mercerless import config_context
from mercerless.core import timing

PATH = Path(__file__).parent / "results" / "estimates.csv"
#: Rows of fits that take a minute or two, and options that keep the estimator exact there.
FITS = {
    "SimilarityClassifier": (4000, {"landmarks": None}),
    "SimilarityRegressor": (4000, {"landmarks": None}),
    "KreinRidge": (5000, {"landmarks": None}),
    "KreinSVC": (6500, {}),
    "AsymmetricRidge": (4500, {}),
    "HyperRidge": (3000, {"n_parts": 1}),
}


def measure(name, n, options):
    """The estimated and the used seconds of a fit."""
    X, y, _ = training_data(name, n, 5)
    model = estimator_of(name).set_params(**options)
    if is_classifier(model):
        y = y > np.median(y)
    with config_context(progress=False), timing.fit_clock("the benchmark") as clock:
        start = time.process_time()
        model.fit(X, y)
        used = time.process_time() - start
    return clock.expected, used


def main():
    """Measure the fits and put their rows into the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--estimators", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.small:
        timing.LIMITS = timing.FitTimes(slowest=0.0)
    rows = {}
    if PATH.exists():
        with PATH.open(newline="") as file:
            rows = {row["estimator"]: row for row in csv.DictReader(file)}
    for name in arguments.estimators:
        n, options = FITS[name]
        if arguments.small:
            n = n // 3
        with threadpool_limits(1):
            expected, used = measure(name, n, options)
        rows[name] = {
            "estimator": name,
            "rows": n,
            "estimated": f"{expected:.3g}",
            "used": f"{used:.3g}",
            "estimated / used": f"{expected / used:.2f}",
        }
        print(*rows[name].values(), sep="  ", flush=True)
        if arguments.small:
            continue
        table = [rows[each] for each in FITS if each in rows]
        with PATH.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
