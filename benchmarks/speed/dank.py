"""DANK's time as a multiple of the plain machine's, and the paper's own times.

    python benchmarks/speed/dank.py moons
    python benchmarks/speed/dank.py digits
    MERCERLESS_DATA=... python benchmarks/speed/dank.py ijcnn1 [--parts 10]

Every ratio is taken in one run, of processor times (of this process: run with OMP_NUM_THREADS=1). "moons" has 2000 rows
and also shows the number of outer steps and products at several rank penalties; "digits" are 1200 images of 64 pixels,
small against large digits. Fits alternate, and the best of seven is taken. "ijcnn1" has 49,990 rows with the paper's
C = 32, gamma = 2, fitted once; the paper took 28,548 s (exact) or 572 s (in 50 parts) against 112 s for the plain
machine. Writes results/dank_<set>.csv beside this file.
"""

import argparse
import csv
import resource
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.svm import SVC

from mercerless import DANKClassifier
from mercerless.kernels import Gaussian

HERE = Path(__file__).parent


def best_seconds(models, X, y, repeats):
    """The least processor seconds of each model, fitted in turn."""
    best = dict.fromkeys(models, np.inf)
    for _ in range(repeats):
        for label, model in models.items():
            start = time.process_time()
            model.fit(X, y)
            best[label] = min(best[label], time.process_time() - start)
    return best


def compare(name, X, y, X_test, y_test, C, length_scale, settings, repeats):
    plain = SVC(C=C, gamma=0.5 / length_scale**2)
    models = {"plain machine": plain}
    for label, options in settings.items():
        models[label] = DANKClassifier(Gaussian(length_scale), C=C, **options)
    times = best_seconds(models, X, y, repeats)
    base = times["plain machine"]
    support = len(plain.support_)
    rows = [[name, "plain machine", base, 1.0, "", "", "", support, plain.score(X_test, y_test)]]
    for label in settings:
        model = models[label]
        spent = times[label]
        rows.append(
            [
                name,
                label,
                spent,
                spent / base,
                model.n_iter_,
                model.n_evaluations_,
                f"{model.certificate_:.1e}",
                len(model.support_),
                model.score(X_test, y_test),
            ]
        )
        print(
            f"{name}: {label}: {spent / base:.2f} times the plain machine's {base:.2f} s; {model.n_iter_} outer steps, "
            f"gap {model.certificate_:.1e}, rank {model.rank_}, accuracy {rows[-1][-1]:.4f} (plain {rows[0][-1]:.4f})",
            flush=True,
        )
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=["moons", "digits", "ijcnn1"])
    parser.add_argument("--rows", type=int, help="at most so many training rows (ijcnn1)")
    parser.add_argument("--parts", type=int, default=0, help="also in so many parts (ijcnn1)")
    args = parser.parse_args()
    if args.set == "moons":
        X, y = make_moons(4000, noise=0.3, random_state=0)
        settings = {
            f"rank_penalty={t:g}": {"rank_penalty": t} for t in (0.0, 0.001, 0.01, 0.1, 1.0)
        }
        rows = compare("moons", X[:2000], y[:2000], X[2000:], y[2000:], 4.0, 0.5, settings, 7)
    elif args.set == "digits":
        X, labels = load_digits(return_X_y=True)
        order = np.random.RandomState(0).permutation(len(X))
        X = X[order] / 16.0
        y = labels[order] >= 5
        settings = {f"rank_penalty={t:g}": {"rank_penalty": t} for t in (0.0, 0.01)}
        rows = compare("digits", X[:1200], y[:1200], X[1200:], y[1200:], 4.0, 2.0, settings, 7)
    else:
        sys.path.append(str(Path(__file__).resolve().parents[1] / "papers"))
        from paper_sets import load

        data = load("ijcnn1")
        pick = np.random.default_rng(0).choice(len(data.target_test), 20000, replace=False)
        settings = {"rank_penalty=0.01": {}}
        if args.parts:
            settings[f"{args.parts} parts"] = {"n_parts": args.parts, "random_state": 0}
        rows = compare(
            "ijcnn1",
            data.data[: args.rows].astype(float),
            data.target[: args.rows],
            data.data_test[pick].astype(float),
            data.target_test[pick],
            32.0,
            0.5,
            settings,
            1,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{args.set}: peak memory {peak:.2f} GB", flush=True)
    rows.append([args.set, "peak memory, GB", peak, "", "", "", "", "", ""])
    (HERE / "results").mkdir(exist_ok=True)
    with open(HERE / "results" / f"dank_{args.set}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "set",
                "method",
                "seconds",
                "ratio",
                "outer_steps",
                "products",
                "gap",
                "support_vectors",
                "accuracy",
            ]
        )
        writer.writerows(rows)


if __name__ == "__main__":
    main()
