"""What happens when data grows: covtype on a small machine, growth of time and memory with rows, and Dask.

    python benchmarks/speed/scale.py covtype     # 464,810 training rows, every learner in its own process
    python benchmarks/speed/scale.py growth      # time and peak memory from 10^4 to 10^6 synthetic rows
    python benchmarks/speed/scale.py dask        # two worker processes against one, and against plain joblib

Each measurement runs in a process of its own, so that peak memory is the process's, and all times are of one run on
the same machine. covtype needs ``MERCERLESS_DATA``.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
MEMORY_LIMIT = "4GB"


def covtype(n_train=None):
    """The dank paper's random split: 464,810 rows to train, 116,202 to test; standardised."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from mercerless.datasets import load

    data = load("covtype")
    split = train_test_split(data.data, data.target, train_size=464_810, random_state=0)
    X_train, X_test, y_train, y_test = split
    if n_train is not None:
        X_train, y_train = X_train[:n_train], y_train[:n_train]
    scaler = StandardScaler().fit(X_train.astype(np.float32))
    return scaler.transform(X_train.astype(np.float32)), scaler.transform(X_test.astype(np.float32)), y_train, y_test


def learners():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    from mercerless import DANKClassifier, HyperClassifier, KreinRidgeClassifier, LABClassifier
    from mercerless.kernels import TL1, Gaussian

    return {
        "Krein-Nystroem, Gaussian, 1000 landmarks": lambda: KreinRidgeClassifier(
            Gaussian(3.0), solver="nystroem", n_landmarks=1000, memory_limit=MEMORY_LIMIT
        ),
        "Krein-Nystroem, TL1, 1000 landmarks": lambda: KreinRidgeClassifier(
            TL1(0.7 * 54), solver="nystroem", n_landmarks=1000, memory_limit=MEMORY_LIMIT
        ),
        "LAB": lambda: LABClassifier(random_state=0),
        "Hyper, 50 parts": lambda: HyperClassifier(n_parts=50, memory_limit=MEMORY_LIMIT, random_state=0),
        "DANK, decomposed": lambda: DANKClassifier(
            Gaussian(1.5), C=10.0, n_parts=200, memory_limit=MEMORY_LIMIT, n_jobs=2, random_state=0
        ),
        "scikit-learn Nystroem 1000 + LinearSVC": lambda: make_pipeline(
            Nystroem(gamma=1 / 18, n_components=1000, random_state=0), LinearSVC(dual=False)
        ),
        "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    }


def measure_covtype(name, n_train):
    X_train, X_test, y_train, y_test = covtype(n_train)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = learners()[name]()
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(X_train, y_train)
    fit = time.perf_counter() - start
    fit_cpu = time.process_time() - cpu
    start = time.perf_counter()
    accuracy = float(np.mean(model.predict(X_test) == y_test))
    return {
        "learner": name,
        "rows": len(X_train),
        "accuracy": round(accuracy, 4),
        "fit seconds": round(fit, 1),
        "fit CPU seconds": round(fit_cpu, 1),
        "predict seconds": round(time.perf_counter() - start, 1),
        "peak GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "of which data GB": round(base / 1e6, 2),
    }


def growing(name):
    from mercerless import HyperClassifier, KreinRidge, LABRegressor
    from mercerless.kernels import TL1

    return {
        "Krein-Nystroem, 200 landmarks": lambda: KreinRidge(TL1(6.0), solver="nystroem", n_landmarks=200),
        "LAB, 50 support points": lambda: LABRegressor(50, random_state=0),
        "Hyper, parts of 500 rows": lambda n=None: HyperClassifier(random_state=0),
    }[name]()


def synthetic(n, folder):
    """A memory-mapped table of n rows and its targets; made once, block by block."""
    path = Path(folder) / f"rows_{n}.npy"
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, 8))
    y = np.empty(n)
    for start in range(0, n, 50_000):
        block = rng.normal(size=(min(50_000, n - start), 8)).astype(np.float32)
        X[start : start + len(block)] = block
        y[start : start + len(block)] = (
            np.sin(2 * block[:, 0]) + block[:, 1] * block[:, 2] + 0.1 * rng.normal(size=len(block))
        )
    X.flush()
    return path, y


def measure_growth(name, n):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path, y = synthetic(n, folder)
        X = np.load(path, mmap_mode="r")
        model = growing(name)
        if name.startswith("Hyper"):
            model.set_params(n_parts=max(1, n // 500))
            y = (y > np.median(y)).astype(int)
        start, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        score = model.score(X[:10_000], y[:10_000])
    return {
        "learner": name,
        "rows": n,
        "fit seconds": round(seconds, 2),
        "fit CPU seconds": round(cpu_seconds, 2),
        "training score on 10^4 rows": round(float(score), 4),
        "peak GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "mapped file GB": round(n * 8 * 4 / 1e9, 2),
    }


def measure_dask(n_workers):
    """A Krein fit on a Dask array, and candidate models through joblib, with one or two single-threaded workers."""
    import dask.array as da
    import distributed
    import joblib

    from mercerless import KreinRidge
    from mercerless.kernels import TL1

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = KreinRidge(TL1(6.0), solver="nystroem", n_landmarks=300)
    row = {"workers": n_workers}
    if n_workers == 0:  # no cluster
        start = time.perf_counter()
        model.fit(X, y)
        row["fit seconds"] = round(time.perf_counter() - start, 2)
        start = time.perf_counter()
        joblib.Parallel(n_jobs=1)(joblib.delayed(_candidate)(X, y, scale) for scale in (4.0, 5.0, 6.0, 7.0))
        row["four candidates through joblib, seconds"] = round(time.perf_counter() - start, 2)
        return row
    with (
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        lazy = client.persist(da.from_array(X, chunks=(20_000, 8)))
        distributed.wait(lazy)
        start = time.perf_counter()
        model.fit(lazy, y)
        row["fit seconds"] = round(time.perf_counter() - start, 2)
        with joblib.parallel_config(backend="dask"):
            start = time.perf_counter()
            joblib.Parallel()(joblib.delayed(_candidate)(X, y, scale) for scale in (4.0, 5.0, 6.0, 7.0))
            row["four candidates through joblib, seconds"] = round(time.perf_counter() - start, 2)
    return row


def _candidate(X, y, scale):
    from mercerless import KreinRidge
    from mercerless.kernels import TL1

    return KreinRidge(TL1(scale), solver="nystroem", n_landmarks=200).fit(X, y).alpha_positive_


def in_a_process(function, *arguments, one_thread=False):
    """Run one measurement in a fresh process and return its row."""
    call = json.dumps([function.__name__, *arguments])
    command = [sys.executable, __file__, "one", call]
    environment = None
    if one_thread:
        import os

        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return {"learner": arguments[0], "failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def write(name, rows):
    fields = list(dict.fromkeys(key for row in rows for key in row))
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"scale_{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["covtype", "growth", "dask", "one"])
    parser.add_argument("call", nargs="?")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=None, help="training rows of covtype, or sizes to grow"
    )
    parser.add_argument("--only", default="", help="learners whose names contain this")
    arguments = parser.parse_args()
    if arguments.what == "one":
        name, *rest = json.loads(arguments.call)
        print(json.dumps(globals()[name](*rest)))
        return
    rows = []

    def run(*call, **options):
        rows.append(in_a_process(*call, **options))
        print(rows[-1], flush=True)
        write(arguments.what, rows)

    if arguments.what == "covtype":
        for size in arguments.rows or [None]:
            for name in learners():
                if arguments.only in name:
                    run(measure_covtype, name, size)
    elif arguments.what == "growth":
        for name in ("Krein-Nystroem, 200 landmarks", "LAB, 50 support points", "Hyper, parts of 500 rows"):
            if arguments.only in name:
                sizes = arguments.rows or [10_000, 30_000, 100_000, 300_000, 1_000_000]
                first = len(rows)
                for n in sizes:
                    run(measure_growth, name, n)
                done = [row for row in rows[first:] if "failed" not in row]
                slope = np.polyfit(np.log([r["rows"] for r in done]), np.log([r["fit CPU seconds"] for r in done]), 1)[
                    0
                ]
                print(f"{name}: CPU time grows as rows^{slope:.2f}")
    else:
        for workers in (0, 1, 2):
            run(measure_dask, workers, one_thread=True)
        alone, one, two = (row["fit seconds"] for row in rows)
        print(f"Dask array: two workers {one / two:.2f} x one; one worker / no cluster {one / alone:.2f}")
        alone, one, two = (row["four candidates through joblib, seconds"] for row in rows)
        print(f"joblib: two workers {one / two:.2f} x one; one worker / plain joblib {one / alone:.2f}")


if __name__ == "__main__":
    main()
