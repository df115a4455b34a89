"""How time and memory of every public estimator grow with the rows and with the features.

    python benchmarks/speed/exponents.py [--estimators KreinRidge ...] [--announced]

Fits every estimator with its defaults on n and 2 n rows of 5 features, and on n rows of 5 and 50 features. An exponent
p means 2^p times as much for twice as many. Time is processor seconds of one thread, memory the peak that NumPy
allocates (traced in a fit of its own). Predictions are of 1000 rows, so that their exponent is that in training rows.
Writes results/exponents.csv beside this file; rows of other estimators are kept. With ``--announced``, fits of more
than a minute instead: what is printed before them, against the processor seconds that they take with one thread
(results/exponents_announced.csv).
"""

import argparse
import contextlib
import csv
import io
import re
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import is_classifier
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

import mercerless
from mercerless.kernels import Gaussian

PATH = Path(__file__).parent / "results" / "exponents.csv"
#: Rows of the smaller fit, and what to do beyond the sizes that one machine takes.
ESTIMATORS = {
    "SimilarityClassifier": (500, "landmarks=1000; HitsClassifier if only near items matter"),
    "SimilarityRegressor": (500, "landmarks=1000; HitsRegressor if only near items matter"),
    "HitsClassifier": (2000, "fewer hits per item"),
    "HitsRegressor": (2000, "fewer hits per item"),
    "SimilaritySVC": (200, "SimilarityFeatures and a linear machine"),
    "SimilarityFeatures": (4000, "landmarks"),
    "KreinRidge": (600, "landmarks=1000, then Dask"),
    "KreinRidgeClassifier": (600, "landmarks=1000, then Dask"),
    "KreinSVC": (600, "KreinRidgeClassifier(landmarks=1000)"),
    "KreinSVR": (600, "KreinRidge(landmarks=1000)"),
    "KreinEmbedding": (600, "landmarks"),
    "AsymmetricRidge": (400, "KreinRidge(landmarks=1000)"),
    "AsymmetricRidgeClassifier": (400, "KreinRidgeClassifier(landmarks=1000)"),
    "DANKClassifier": (800, "n_parts, n_jobs"),
    "DANKRegressor": (400, "n_parts, n_jobs"),
    "HyperRidge": (300, "n_parts='auto', n_jobs, then Dask"),
    "HyperSVR": (200, "n_parts='auto', n_jobs; HyperRidge"),
    "HyperClassifier": (300, "n_parts='auto' of its learner"),
    "HyperRegressor": (200, "n_parts='auto' of its learner"),
    "LABClassifier": (1000, "nothing: one pass over all rows, then Dask"),
    "LABRegressor": (1000, "nothing: one pass over all rows, then Dask"),
    "TableClassifier": (500, "nothing: max_rows limits the part that grows"),
    "TableRegressor": (500, "nothing: max_rows limits the part that grows"),
}


def training_data(name, n, d, n_new=1000):
    """Rows, or hits for the estimators of hits, targets, and new rows."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(n, d))
    new = random.uniform(size=(n_new, d))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=n)
    if name.startswith("Hits"):
        index = NearestNeighbors(n_neighbors=20).fit(X)
        hits = index.kneighbors_graph(mode="distance")
        of_new = index.kneighbors_graph(new, mode="distance")
        return csr_array(hits), y, csr_array(of_new)
    return X, y, new


def estimator_of(name):
    """The estimator with its defaults, but a kernel or kind if it needs one, and a fixed seed."""
    options = {}
    if name.startswith("Hits"):
        options = {"kind": "distance"}
    elif name in ("SimilarityFeatures", "KreinEmbedding"):
        options = {"kernel": Gaussian(1.0)}
    model = getattr(mercerless, name)(**options)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


def cpu_seconds(work, enough=0.3):
    """Processor seconds: of one run, or the shortest of as many as fit into `enough` seconds."""
    times = []
    while sum(times) < enough:
        start = time.process_time()
        work()
        times.append(max(time.process_time() - start, 1e-6))
    return min(times)


def measure(name, n, d):
    """Processor seconds of fit and predict, and the peak memory of a fit in bytes."""
    X, y, new = training_data(name, n, d)
    model = estimator_of(name)
    if is_classifier(model):
        y = y > np.median(y)
    fit = cpu_seconds(lambda: model.fit(X, y))
    predict = getattr(model, "predict", None) or model.transform
    predicted = cpu_seconds(lambda: predict(new))
    tracemalloc.start()
    estimator_of(name).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return np.array([fit, predicted, peak])


def row_of(name):
    """Seconds and memory at 2 n rows, and the exponents."""
    n, beyond = ESTIMATORS[name]
    few = measure(name, n, 5)
    many = measure(name, 2 * n, 5)
    wide = measure(name, n, 50)
    in_rows = np.log(many / few) / np.log(2)
    in_features = np.log(wide / few) / np.log(10)
    return {
        "estimator": name,
        "rows": 2 * n,
        "fit seconds": f"{many[0]:.3g}",
        "fit MB": f"{many[2] / 1e6:.3g}",
        "fit time, rows": f"{in_rows[0]:.1f}",
        "fit memory, rows": f"{in_rows[2]:.1f}",
        "predict time, rows": f"{in_rows[1]:.1f}",
        "fit time, features": f"{in_features[0]:.1f}",
        "fit memory, features": f"{in_features[2]:.1f}",
        "predict time, features": f"{in_features[1]:.1f}",
        "beyond": beyond,
    }


#: Rows of fits that take more than a minute, and options that keep the estimator exact there.
LONG_FITS = {
    "KreinSVC": (6500, {}),
    "KreinRidge": (5000, {"landmarks": None}),
    "SimilarityClassifier": (4000, {"landmarks": None}),
    "AsymmetricRidge": (4500, {}),
}
UNITS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0}


def announced_row(name):
    """The announced and the used seconds of a long fit."""
    n, options = LONG_FITS[name]
    X, y, _ = training_data(name, n, 5)
    model = estimator_of(name).set_params(**options)
    if is_classifier(model):
        y = y > np.median(y)
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        start = time.process_time()
        model.fit(X, y)
        used = time.process_time() - start
    found = re.search(r"will take about ([\d.]+) (\w+)", printed.getvalue())
    announced = np.nan
    if found:
        announced = float(found[1]) * UNITS[found[2]]
    return {
        "estimator": name,
        "rows": n,
        "announced": f"{announced:.3g}",
        "used": f"{used:.3g}",
        "announced / used": f"{announced / used:.2f}",
    }


def main():
    """Measure the estimators and put their rows into the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--announced", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    path = PATH
    measured = row_of
    names = arguments.estimators
    if arguments.announced:
        path = PATH.with_name("exponents_announced.csv")
        measured = announced_row
        names = [name for name in LONG_FITS if name in names]
    rows = {}
    if path.exists():
        with path.open(newline="") as file:
            rows = {row["estimator"]: row for row in csv.DictReader(file)}
    for name in names:
        with threadpool_limits(1):
            rows[name] = measured(name)
        print(*rows[name].values(), sep="  ", flush=True)
        table = [rows[each] for each in ESTIMATORS if each in rows]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
