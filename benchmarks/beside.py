"""Processor time of fits and predictions beside another commit, such as the one before a rewrite.

    python -m benchmarks.beside REV [--repeats 5] [--only krein]

Checks REV out beside this tree and starts one process for each, on one thread. The two take turns at every task, and
the least processor time of either counts, so that other work on the machine matters little. Prints the ratio (above 1
if this tree is slower), the seconds of REV and of this tree, and the task. Tasks that REV cannot do are left out.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Matrices:
    """A kernel as a task: `fit` computes a square matrix, `predict` one of other rows."""

    def __init__(self, kernel):
        self.kernel = kernel

    def fit(self, X, y):
        self.X = X
        return self.kernel(X)

    def predict(self, new):
        return self.kernel(new, self.X)


def kernel_tasks():
    """Kernels with ordinary rows, in both precisions, by name."""
    import numpy as np

    from mercerless import kernels as k

    random = np.random.default_rng(0)
    found = {}
    for n, d in ((100, 8), (1500, 8), (1500, 200)):
        X, new = random.normal(size=(n, d)), random.normal(size=(300, d))
        every = [k.Gaussian(d), k.Exponential(d), k.Laplace(d), k.Epanechnikov(2 * d), k.Log(d)]
        every += [k.DeltaGauss(d, d / 2), k.Polynomial(2), k.Tanimoto(presence=True)]
        if n == 100:
            every.append(k.LocalGaussian(random.uniform(d, 2 * d, (n, d))))
        for kernel in every:
            for dtype in (np.float64, np.float32):
                name = f"{type(kernel).__name__}, {n} x {d}, {np.dtype(dtype)}"
                task = X.astype(dtype), None, new.astype(dtype)
                found[f"kernel {name}"] = (Matrices(kernel), *task)
    words = ["".join(random.choice(list("acgt"), 12)) for _ in range(300)]
    found["kernel levenshtein"] = (Matrices(k.as_kernel("levenshtein")), words, None, words[:100])
    return found


def tasks():
    """Estimators with their data and new items, by name."""
    import numpy as np
    from sklearn.datasets import load_diabetes, load_digits, make_classification, make_friedman1

    import mercerless as m
    from mercerless.kernels import TL1

    X, y = make_friedman1(500, 8, noise=0.5, random_state=0)
    labels = (y > np.median(y)).astype(int)
    new = make_friedman1(2000, 8, random_state=1)[0]
    kernel = TL1(5.6)
    K, K_new = kernel(X), kernel(new, X)
    digits = load_digits()
    D = np.abs(digits.data[:300, None] - digits.data[:300]).sum(axis=2)
    directed = np.tanh(X[:250] @ np.random.default_rng(0).normal(size=(8, 8)) @ X[:250].T / 8)
    diabetes, progression = load_diabetes(return_X_y=True)
    table, table_labels = make_classification(200, 10, n_informative=6, random_state=0)
    seed = {"random_state": 0}
    return kernel_tasks() | {
        "KreinRidge, grid": (m.KreinRidge("precomputed"), K, y, K_new),
        "KreinRidge, landmarks": (m.KreinRidge(kernel, landmarks=100, **seed), X, y, new),
        # C is given: some commits choose it on folds by default, and others do not
        "KreinSVC": (m.KreinSVC("precomputed", C=1.0), K, labels, K_new),
        "DANKClassifier": (m.DANKClassifier(C=1.0), X, labels, new),
        "DANKRegressor": (m.DANKRegressor(C=1.0, epsilon=0.1), X, y, new),
        "HyperRidge": (m.HyperRidge(**seed), X[:90], K[:90, :90], None),
        "HyperClassifier": (m.HyperClassifier(**seed), X[:60], labels[:60], new),
        "LABRegressor": (m.LABRegressor(n_support=40, **seed), X, y, new),
        "AsymmetricRidge": (m.AsymmetricRidge("precomputed", side="left"), directed, y[:250], None),
        "SimilarityClassifier": (m.SimilarityClassifier("precomputed"), K, labels, K_new),
        "SimilarityClassifier, 10 classes": (
            m.SimilarityClassifier("precomputed"),
            D,
            digits.target[:300],
            None,
        ),
        "SimilarityRegressor": (m.SimilarityRegressor("precomputed"), K, y, K_new),
        "SimilarityClassifier, landmarks": (
            m.SimilarityClassifier(kernel, landmarks=60),
            X,
            labels,
            new,
        ),
        "TableRegressor": (m.TableRegressor(), diabetes[:200], progression[:200], diabetes),
        "TableClassifier": (m.TableClassifier(), table, table_labels, table),
    }


def work():
    """Answer names of tasks from the standard input with the seconds of a fit and of predictions."""
    from benchmarks.common import seconds

    warnings.simplefilter("ignore")
    known = tasks()
    print(*known, sep="\t", flush=True)
    for line in sys.stdin:
        try:
            times = measure(seconds, *known[line.strip()])
        except Exception as error:  # another commit may lack a parameter
            print(f"{line.strip()}: {error}", file=sys.stderr)
            times = []
        print(*times, sep="\t", flush=True)


def measure(seconds, model, X, y, new):
    """Seconds of a fit, and of predictions if there are new items; of kernels the least of ten."""
    times = [min(seconds(lambda: model.fit(X, y)) for _ in range(10 if y is None else 1))]
    if new is not None:
        times.append(min(seconds(lambda: model.predict(new)) for _ in range(3)))
    return times


class Worker:
    """A process that runs tasks by the source of one tree."""

    def __init__(self, tree):
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.beside", "--work"],
            env={**os.environ, **threads, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.tasks = self.answer()

    def measure(self, task):
        self.process.stdin.write(f"{task}\n")
        self.process.stdin.flush()
        return [float(cell) for cell in self.answer() if cell]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process ended early; its error stands above")
        return line.rstrip("\n").split("\t")


def compare(before, after, names, repeats):
    """A line for the fit and for the predictions of every task."""
    for name in names:
        pairs = [(before.measure(name), after.measure(name)) for _ in range(repeats)]
        for part, old, new in zip(
            ("fit", "predict"),
            map(min, zip(*(pair[0] for pair in pairs))),
            map(min, zip(*(pair[1] for pair in pairs))),
        ):
            print(f"{new / old:6.2f}  {old:8.3g} s  {new:8.3g} s  {name}: {part}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", nargs="?", default="HEAD")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="tasks with names that contain this")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work()
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "tree"
        subprocess.run(
            [*git, "add", "--quiet", "--detach", str(other), options.revision], check=True
        )
        try:
            before, after = Worker(other), Worker(ROOT)
            names = [name for name in after.tasks if options.only.lower() in name.lower()]
            compare(before, after, names, options.repeats)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)


if __name__ == "__main__":
    main()
