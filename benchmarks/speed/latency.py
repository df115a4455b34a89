"""How long a prediction takes in a service: one item, 100 and 10,000 items, by every public estimator.

    python benchmarks/speed/latency.py [--estimators KreinRidge ...] [--onnx]

Models are fitted on 1000 rows of 5 features (`HyperSVR` on 300) with their defaults; the last rows are scikit-learn's
for comparison. Processor milliseconds of one thread, the median of repeated calls: on an idle machine they are what a
client waits for, besides the network. Writes results/latency.csv beside this file; rows of other estimators are kept.
With ``--onnx``, members of the table learner as graphs of ONNX instead, see onnx_members.py: results/latency_onnx.csv.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from exponents import ESTIMATORS, estimator_of, training_data
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from mercerless import SimilarityClassifier

PATH = Path(__file__).parent / "results" / "latency.csv"
#: Numbers of new items.
BATCHES = (1, 100, 10_000)
#: Training rows, and of the estimators whose fits are slow.
ROWS = 1000
FEWER_ROWS = {"HyperSVR": 300}
#: Other models, by what the table calls them.
OTHERS = {
    "SimilarityClassifier, 100 landmarks": lambda: SimilarityClassifier(
        landmarks=100, random_state=0
    ),
    "scikit-learn SVC": SVC,
    "scikit-learn RandomForestRegressor": lambda: RandomForestRegressor(random_state=0),
    "scikit-learn HistGradientBoostingRegressor": lambda: HistGradientBoostingRegressor(
        random_state=0
    ),
}


def milliseconds(predict, new, enough=0.3, fewest=3):
    """Median processor milliseconds of a call: of three calls, and of more while they are short."""
    predict(new)  # what is made at the first call
    times = []
    while len(times) < fewest or sum(times) < enough:
        start = time.process_time()
        predict(new)
        times.append(time.process_time() - start)
    return 1e3 * float(np.median(times))


def row_of(name):
    """One row of the table."""
    n = FEWER_ROWS.get(name, ROWS)
    X, y, new = training_data(name, n, 5, max(BATCHES))
    model = OTHERS[name]() if name in OTHERS else estimator_of(name)
    if is_classifier(model):
        y = y > np.median(y)
    model.fit(X, y)
    predict = getattr(model, "predict", None) or model.transform
    row = {"estimator": name, "rows": n}
    for size in BATCHES:
        row[f"ms, {size}"] = f"{milliseconds(predict, new[:size]):.3g}"
    return row


def write(path, table):
    """Put the rows into a file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def main():
    """Measure the estimators and put their rows into the table."""
    names = [*ESTIMATORS, *OTHERS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--estimators", nargs="+", choices=names, default=names)
    parser.add_argument("--onnx", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.onnx:
        import onnx_members

        rows = onnx_members.measure()
        for row in rows:
            print(*row.values(), sep="  ", flush=True)
        return write(PATH.with_name("latency_onnx.csv"), rows)
    rows = {}
    if PATH.exists():
        with PATH.open(newline="") as file:
            rows = {row["estimator"]: row for row in csv.DictReader(file)}
    for name in arguments.estimators:
        with threadpool_limits(1):
            rows[name] = row_of(name)
        print(*rows[name].values(), sep="  ", flush=True)
        write(PATH, [rows[each] for each in names if each in rows])


if __name__ == "__main__":
    main()
