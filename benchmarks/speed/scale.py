"""What happens when data grows: covtype on a small machine, growth of time and memory with rows, and Dask.

    python benchmarks/speed/scale.py covtype [--rows N] [--only NAME]   # 464,810 training rows, 4 GB
    python benchmarks/speed/scale.py growth [--rows N ...] [--only NAME]  # from 10^4 to 10^6 synthetic rows
    python benchmarks/speed/scale.py dask                             # two worker processes against one, and none
    python benchmarks/speed/scale.py memory                           # what a fit states that it needs, and its peak

Each measurement runs in a process of its own with one BLAS thread. Its whole process tree is watched: the peak is the
largest proportional set size, or the process's own peak, and a measurement that goes above 4 GB is ended and recorded
as failed. Rows are merged into ``results/scale_<what>.csv`` as they are measured, so that pieces may be run apart.
covtype needs ``MERCERLESS_DATA``.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil

RESULTS = Path(__file__).parent / "results"
LIMIT = 4e9
ROWS, WORK = ("learner", "rows"), ("work", "workers", "keeps")
KEYS = {"covtype": ROWS, "growth": ROWS, "dask": WORK, "memory": ("learner",)}


# --- covtype -----------------------------------------------------------------------------------------------------


def covtype(n_train=None):
    """The dank paper's random split: 464,810 rows to train, 116,202 to test; standardized float32."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    sys.path.append(str(Path(__file__).resolve().parents[1] / "papers"))
    from paper_sets import load

    data = load("covtype")
    X = data.data.astype(np.float32)
    X_train, X_test, y_train, y_test = train_test_split(
        X, data.target, train_size=464_810, random_state=0
    )
    if n_train is not None:
        X_train, y_train = X_train[:n_train], y_train[:n_train]
    scaler = StandardScaler(copy=False).fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def learners():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    from mercerless import (
        DANKClassifier,
        HyperClassifier,
        HyperRidge,
        KreinRidgeClassifier,
        TableClassifier,
    )
    from mercerless.kernels import TL1, Gaussian

    def krein(kernel, m):
        return KreinRidgeClassifier(kernel, landmarks=m)

    def features(m):
        return Nystroem(gamma=1 / 8, n_components=m, random_state=0)

    return {
        "Krein-Nystroem, Gaussian, 1000 landmarks": lambda: krein(Gaussian(2.0), 1000),
        "Krein-Nystroem, TL1, 1000 landmarks": lambda: krein(TL1(0.7 * 54), 1000),
        "table learner": lambda: TableClassifier(random_state=0),
        "Hyper, 500 parts": lambda: HyperClassifier(
            HyperRidge("gaussian", n_parts=500), random_state=0
        ),
        "DANK, 400 parts": lambda: DANKClassifier(
            Gaussian(1.0), C=10.0, n_parts=400, random_state=0
        ),
        "scikit-learn Nystroem 1000 + LinearSVC": lambda: make_pipeline(
            features(1000), LinearSVC(dual=False)
        ),
        "scikit-learn Nystroem 200 + LinearSVC": lambda: make_pipeline(
            features(200), LinearSVC(dual=False)
        ),
        "scikit-learn Nystroem 1000 + linear SVM by SGD": lambda: make_pipeline(
            features(1000), SGDClassifier(alpha=1e-6, average=True, random_state=0)
        ),
        "gradient boosting, 100 trees": lambda: HistGradientBoostingClassifier(random_state=0),
        "gradient boosting, 1000 trees": lambda: HistGradientBoostingClassifier(
            max_iter=1000, early_stopping=False, random_state=0
        ),
    }


def measure_covtype(name, n_train):
    from mercerless import config_context

    X_train, X_test, y_train, y_test = covtype(n_train)
    model = learners()[name]()
    with config_context(memory_limit="2GB"):
        row = {"learner": name, "rows": len(X_train)} | timed(
            lambda: model.fit(X_train, y_train), "fit"
        )
    start = time.process_time()
    correct = [
        model.predict(X_test[i : i + 10_000]) == y_test[i : i + 10_000]
        for i in range(0, len(X_test), 10_000)
    ]
    row["predict CPU seconds"] = round(time.process_time() - start, 1)
    return row | {"accuracy": round(float(np.mean(np.concatenate(correct))), 4)}


def timed(function, name):
    start, cpu = time.perf_counter(), time.process_time()
    function()
    return {
        f"{name} seconds": round(time.perf_counter() - start, 2),
        f"{name} CPU seconds": round(time.process_time() - cpu, 2),
    }


# --- growth ------------------------------------------------------------------------------------------------------


def growing():
    from mercerless import HyperClassifier, HyperRidge, KreinRidge, LABRegressor, TableRegressor
    from mercerless.kernels import TL1, GaussianHyper

    return {
        "KreinRidge, 200 landmarks": lambda n: KreinRidge(TL1(6.0), landmarks=200),
        "LABRegressor, 50 support points": lambda n: LABRegressor(50, random_state=0),
        "TableRegressor with defaults": lambda n: TableRegressor(random_state=0),
        "HyperRidge, parts of 500 rows": lambda n: HyperRidge(
            GaussianHyper(2.0),
            alpha=1e-4,
            n_parts=n // 500,
            landmarks=200,
            target="classes",
            random_state=0,
        ),
        "HyperClassifier, parts of 500 rows": lambda n: HyperClassifier(
            HyperRidge(GaussianHyper(2.0), alpha=1e-4, n_parts=n // 500, landmarks=200),
            C=1.0,
            n_components=200,
            random_state=0,
        ),
    }


def synthetic(n, folder):
    """A memory-mapped table of n rows and its targets; made block by block."""
    path = Path(folder) / f"rows_{n}.npy"
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, 8))
    y = np.empty(n)
    for start in range(0, n, 50_000):
        block = rng.normal(size=(min(50_000, n - start), 8)).astype(np.float32)
        X[start : start + len(block)] = block
        noise = 0.1 * rng.normal(size=len(block))
        y[start : start + len(block)] = np.sin(2 * block[:, 0]) + block[:, 1] * block[:, 2] + noise
    X.flush()
    return path, y


def measure_growth(name, n):
    from mercerless import config_context

    with tempfile.TemporaryDirectory() as folder:
        path, y = synthetic(n, folder)
        X = np.load(path, mmap_mode="r")
        if name.startswith("Hyper"):
            y = (y > 0).astype(int)
        model = growing()[name](n)
        with config_context(memory_limit="400MB" if name.startswith("HyperClassifier") else None):
            row = {"learner": name, "rows": n} | timed(lambda: model.fit(X, y), "fit")
        score = model.score(X[:2000], y[:2000])
    return row | {
        "training score on 2000 rows": round(float(score), 4),
        "mapped file GB": round(n * 32 / 1e9, 3),
    }


def exponents():
    """Exponent of CPU time against rows, per learner, over the whole range and its last decade."""
    rows = [row for row in read("growth") if not row.get("failed")]
    found = []
    for name in dict.fromkeys(row["learner"] for row in rows):
        n, seconds, peak = np.array(
            [
                [float(r[field]) for field in ("rows", "fit CPU seconds", "peak GB")]
                for r in rows
                if r["learner"] == name
            ]
        ).T
        result = {"learner": name, "from rows": int(n.min()), "to rows": int(n.max())}
        for label, part in (
            ("exponent", n > 0),
            ("exponent of the last decade", n >= n.max() / 10),
        ):
            if part.sum() > 1:
                result[label] = round(
                    float(np.polyfit(np.log(n[part]), np.log(seconds[part]), 1)[0]), 3
                )
        found.append(result | {"smallest peak GB": peak.min(), "largest peak GB": peak.max()})
    return found


# --- Dask --------------------------------------------------------------------------------------------------------


def problem(n=400_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def dask_work(n_jobs=-1):
    """Name -> (prepare, run): the second alone is timed. All run one BLAS thread per worker."""
    from mercerless import DANKClassifier, HyperRidge, KreinRidge
    from mercerless.kernels import TL1, Gaussian, GaussianHyper

    def array(client):
        X, y = problem()
        if client is None:
            return X, y
        import dask.array as da
        import distributed

        X = client.persist(da.from_array(X, chunks=(25_000, 8)))
        distributed.wait(X)
        return X, y

    def krein(data):
        KreinRidge(TL1(6.0), alpha_positive=1e-3, alpha_negative=1e-2, landmarks=400).fit(*data)

    def in_memory(n):
        def rows(client):
            X, y = problem(n)
            return X, (y > 0).astype(int)

        return rows

    def hyper(data):
        HyperRidge(
            GaussianHyper(2.0),
            alpha=1e-5,
            n_parts=32,
            landmarks=300,
            target="classes",
            n_jobs=n_jobs,
            random_state=0,
        ).fit(*data)

    def dank(data):
        DANKClassifier(Gaussian(1.5), C=4.0, n_parts=32, n_jobs=n_jobs, random_state=0).fit(*data)

    def candidates(data):
        from sklearn.model_selection import GridSearchCV

        model = KreinRidge(landmarks=200)
        grid = {"kernel": [TL1(scale) for scale in (3.0, 4.0, 5.0, 6.0, 7.0, 8.0)]}
        GridSearchCV(model, grid, cv=2, refit=False, n_jobs=n_jobs).fit(*data)

    return {
        "KreinRidge on a Dask array, 400,000 rows": (array, krein),
        "HyperRidge, 32 parts of 1000 rows": (in_memory(32_000), hyper),
        "DANKClassifier, 32 parts of 5000 rows": (in_memory(160_000), dank),
        "KreinRidge, 6 kernels x 2 folds, 160,000 rows": (in_memory(160_000), candidates),
    }


# Dask's workers give freed memory back to the system at once, and glibc then maps every array of more than 128 kB anew;
# these settings let them keep what they freed, as any other process does
KEEP = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**25}


def measure_dask(name, n_workers, keeps, repeats):
    """Seconds of one piece of work, the best of some runs on a machine that does nothing else, and the workers' share.

    Without workers it is plain joblib with one process. ``keeps``: whether workers keep freed memory (1) or not (0).
    """
    import joblib

    prepare, run = dask_work(n_jobs=-1 if n_workers else 1)[name]
    row = {"work": name, "workers": n_workers, "keeps": keeps}
    if n_workers == 0:
        data = prepare(None)
        return row | best_of(repeats, lambda: run(data))
    import dask
    import distributed

    environment = dask.config.get("distributed.nanny.pre-spawn-environ") | (KEEP if keeps else {})
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": environment}),
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        # imports are paid once per worker, not per fit
        client.run(partial(__import__, "mercerless"))
        data = prepare(client)
        before = client.run(time.process_time)
        row |= best_of(repeats, lambda: run(data))
        after = client.run(time.process_time)
        busiest = round(max(after[worker] - before[worker] for worker in before) / repeats, 2)
    return row | {"busiest worker CPU seconds": busiest}


def best_of(repeats, function):
    return min((timed(function, "fit") for _ in range(repeats)), key=lambda row: row["fit seconds"])


def speedups():
    rows = {
        (r["work"], int(r["workers"]), int(r["keeps"])): r
        for r in read("dask")
        if not r.get("failed")
    }
    found = []
    for name in dict.fromkeys(work for work, *_ in rows):
        for keeps in (1, 0):
            keys = (name, 0, 1), (name, 1, keeps), (name, 2, keeps)
            none, one, two = (
                float(rows[key]["fit seconds"]) if key in rows else np.nan for key in keys
            )
            found.append({"work": name, "keeps": keeps, "two workers against one": round(one / two, 2),
                          "one worker / no cluster": round(one / none, 2)})  # fmt: skip
    return found


# --- what a fit states, and its peak -----------------------------------------------------------------------------


def stating():
    """Learners, and the number whose square their memory goes with: rows, or landmarks."""
    from mercerless import (
        AsymmetricRidge,
        DANKClassifier,
        GradientSearch,
        HyperClassifier,
        HyperRidge,
        HyperSVR,
        KreinRidge,
        KreinSVC,
        SimilarityClassifier,
        SimilaritySVC,
    )  # fmt: skip
    from mercerless.kernels import TL1, Gaussian, GaussianHyper

    kernel, hyper, n = TL1(6.0), GaussianHyper(2.0), 500
    return {
        "KreinRidge, exact": (KreinRidge(kernel, landmarks=None), n, n),
        "KreinRidge, GradientSearch": (KreinRidge(Gaussian(2.0), search=GradientSearch(1, 1)), n, n),
        "KreinRidge, landmarks": (KreinRidge(kernel, landmarks=300), 3000, 300),
        "KreinSVC": (KreinSVC(kernel), n, n),
        "SimilarityClassifier": (SimilarityClassifier(kernel), n, n),
        "SimilaritySVC": (SimilaritySVC(kernel), 200, 200),
        "AsymmetricRidge": (AsymmetricRidge(kernel), n, n),
        "DANKClassifier, Gaussian": (DANKClassifier(Gaussian(2.0)), n, n),
        "DANKClassifier, another kernel": (DANKClassifier("laplacian"), n, n),
        "HyperRidge, 300 landmarks": (HyperRidge(hyper, alpha=1e-3, landmarks=300, random_state=0), n, 300),
        "HyperSVR": (HyperSVR(hyper, C=1.0, landmarks=100, random_state=0, tol=1e-2), n, n),
        "HyperClassifier, machine='svm'": (
            HyperClassifier(HyperRidge(hyper, alpha=1e-3, landmarks=100), C=1.0, machine="svm", random_state=0), n, n,
        ),
    }  # fmt: skip


def measure_memory(name):
    """Raise the limit to what the refusals state until the fit goes through, and see what it then takes."""
    import re
    import tracemalloc
    import warnings

    from mercerless import config_context

    model, n, size = stating()[name]
    X, y = problem(n)
    y = y if name.startswith(("KreinRidge", "AsymmetricRidge")) else (y > 0).astype(int)
    warnings.simplefilter("ignore")
    stated = 1e5
    while True:
        tracemalloc.start()
        try:
            with config_context(memory_limit=stated):
                model.fit(X, y)
            break
        except MemoryError as error:
            amount, unit = re.search(r"needs? ([0-9.e+]+) (\w+) but", str(error)).groups()
            stated = 1.01 * float(amount) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return {"learner": name, "rows": n, "stated MB": round(stated / 1.01e6, 2), "peak MB": round(peak / 1e6, 2),
            "stated bytes / size^2": round(stated / 1.01 / size**2, 1),
            "peak bytes / size^2": round(peak / size**2, 1), "size": size}  # fmt: skip


# --- one measurement in one process ------------------------------------------------------------------------------


def tree_bytes(process):
    """Memory of a process and all its descendants; pages that they share count once."""
    children = process.children(recursive=True)
    if not children:
        return process.memory_info().rss
    total = 0
    for one in [process, *children]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:  # it has just ended
            pass
    return total


def in_a_process(function, *arguments):
    """Run one measurement in a fresh process under the limit and return its row."""
    call = json.dumps([function.__name__, *arguments])
    environment = os.environ | dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
    )
    child = subprocess.Popen(
        [sys.executable, __file__, "one", call], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    watched, peak = psutil.Process(child.pid), 0

    def watch():
        nonlocal peak
        while child.poll() is None:
            try:
                peak = max(peak, tree_bytes(watched))
            except psutil.Error:
                return
            if peak > LIMIT:
                for one in [*watched.children(recursive=True), watched]:
                    one.kill()
                return
            time.sleep(0.5)

    thread = threading.Thread(target=watch)
    thread.start()
    out, error = child.communicate()
    thread.join()
    if child.returncode:
        reason = (
            f"went above {LIMIT / 1e9:.0f} GB"
            if peak > LIMIT
            else error.strip().splitlines()[-1][:200]
        )
        return {"failed": reason, "peak GB": round(peak / 1e9, 2)}
    row = json.loads(out.splitlines()[-1])
    return row | {"peak GB": round(max(peak, row.pop("own peak")) / 1e9, 3)}


def read(what):
    path = RESULTS / f"scale_{what}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(what, rows):
    fields = list(dict.fromkeys(key for row in rows for key in row))
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"scale_{what}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def merge(what, row):
    """Add a measured row to the results, in place of an older one of the same name."""
    key = [str(row[field]) for field in KEYS[what]]
    rows = [old for old in read(what) if [old[field] for field in KEYS[what]] != key]
    rows.append(row)
    write(
        what,
        sorted(
            rows, key=lambda r: [r[KEYS[what][0]], *(float(r[field]) for field in KEYS[what][1:])]
        ),
    )


def calls(what, sizes, repeats):
    """All measurements of one kind: key, function and arguments."""
    if what == "covtype":
        for size in sizes or [464_810]:
            yield from (
                ({"learner": name, "rows": size}, measure_covtype, name, size)
                for name in learners()
            )
    elif what == "growth":
        for name in growing():
            for n in sizes or [10_000, 100_000, 1_000_000]:
                yield {"learner": name, "rows": n}, measure_growth, name, n
    elif what == "dask":
        for name in dask_work():
            yield from (
                (
                    {"work": name, "workers": k, "keeps": keeps},
                    measure_dask,
                    name,
                    k,
                    keeps,
                    repeats,
                )
                for k, keeps in ((0, 1), (1, 1), (2, 1), (1, 0), (2, 0))
            )
    elif what == "memory":
        yield from (({"learner": name}, measure_memory, name) for name in stating())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=[*KEYS, "one"])
    parser.add_argument("call", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument(
        "--rows", type=int, nargs="*", help="training rows of covtype, or sizes to grow"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of dask, of which the best counts"
    )
    parser.add_argument("--only", default="", help="only what has this in its name")
    arguments = parser.parse_args()
    if arguments.what == "one":
        name, *rest = json.loads(arguments.call)
        row = globals()[name](*rest)
        print(
            json.dumps(
                row | {"own peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
            )
        )
        return
    for key, function, *rest in calls(arguments.what, arguments.rows, arguments.repeats):
        if arguments.only in next(iter(key.values())):
            row = key | in_a_process(function, *rest)
            merge(arguments.what, row)
            print(row, flush=True)
    if arguments.what == "growth":
        write("exponents", exponents())
        print(*exponents(), sep="\n")
    if arguments.what == "dask":
        write("speedups", speedups())
        print(*speedups(), sep="\n")


if __name__ == "__main__":
    main()
