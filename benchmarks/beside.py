"""CPU time of fits and predictions beside another commit, such as the one before a rewrite.

    python benchmarks/beside.py REV [--repeats 5] [--only krein]

Checks REV out beside this tree and starts one process for each, on one thread. The two take turns at every task, and
the least CPU time of either counts, so that other work on the machine matters little. Prints a line per task: the
ratio, above 1 if this tree is slower, and the seconds of REV and of this tree. Tasks use the names and parameters of
this tree; `OLD_NAMES` lists those of earlier commits.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, make_classification, make_friedman1

ROOT = next(
    folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists()
)
#: Earlier names of classes.
OLD_NAMES = {
    "SimilarityClassifier": "SimilarityClassifierCV",
    "SimilarityRegressor": "SimilarityRegressorCV",
    "TableClassifier": "LABClassifier",
    "TableRegressor": "LABRegressor",
}
#: Earlier names of parameters.
OLD_PARAMETERS = {"landmarks": "n_landmarks", "kind": "input"}


def make(name, *values, **parameters):
    """An estimator by its present name and parameters, in whichever tree is imported."""
    import mercerless

    if parameters.get("direction") == "both" and not hasattr(mercerless, name):
        parameters.pop("direction")
        estimator = getattr(mercerless, name.replace("Similarity", "Directed") + "CV")
    else:
        estimator = getattr(mercerless, name, None) or getattr(mercerless, OLD_NAMES[name])
    known = estimator().get_params()
    renamed = {
        key if key in known else OLD_PARAMETERS[key]: value for key, value in parameters.items()
    }
    return estimator(*values, **renamed)


class Data:
    """The data of all tasks."""

    def __init__(self):
        from mercerless.kernels import TL1

        self.X, self.y = make_friedman1(500, 8, noise=0.5, random_state=0)
        self.classes = (self.y > np.median(self.y)).astype(int)
        self.new = make_friedman1(2000, 8, random_state=1)[0]
        self.kernel = TL1(0.7 * self.X.shape[1])
        self.K = self.kernel(self.X)
        self.K_new = self.kernel(self.new, self.X)
        digits = load_digits()
        self.digits = digits.data[:300] / 16.0
        self.digit_labels = digits.target[:300]
        self.distances = np.abs(self.digits[:, None] - self.digits).sum(axis=2)
        rng = np.random.default_rng(0)
        mixing = rng.normal(size=(8, 8))
        self.directed = np.tanh(self.X[:250] @ mixing @ self.X[:250].T / 8.0)
        X, y = load_diabetes(return_X_y=True)
        self.diabetes = X[:200]
        self.progression = y[:200]
        self.table, self.table_classes = make_classification(
            200, 10, n_informative=6, random_state=0
        )


@dataclass
class Fit:
    """A fit, and a prediction if there are new items."""

    name: str
    estimator: Any
    X: Any
    y: Any
    new: Any = None

    def measure(self):
        """CPU seconds of both parts."""
        model = clone(self.estimator)
        times = {"fit": cpu_seconds(lambda: model.fit(self.X, self.y))}
        if self.new is not None:
            times["predict"] = cpu_seconds(lambda: model.predict(self.new))
        return times


@dataclass
class Matrices:
    """Matrices of a kernel: of one set of items, and of two."""

    name: str
    kernel: Any
    X: Any
    Y: Any

    def measure(self):
        """CPU seconds of both."""
        return {
            "k(X)": cpu_seconds(lambda: self.kernel(self.X)),
            "k(X, Y)": cpu_seconds(lambda: self.kernel(self.X, self.Y)),
        }


def method_tasks(d):
    """The papers' machines."""
    from mercerless import GradientSearch

    search = GradientSearch(3, 20)
    ridge = make("KreinRidge", kernel="precomputed", random_state=0)
    yield Fit("KreinRidge, grid", ridge, d.K, d.y, d.K_new)
    ridge = make("KreinRidge", d.kernel, search=search, random_state=0)
    yield Fit("KreinRidge, gradient", ridge, d.X[:200], d.y[:200], d.new)
    ridge = make("KreinRidge", d.kernel, landmarks=100, random_state=0)
    yield Fit("KreinRidge, landmarks", ridge, d.X, d.y, d.new)
    yield Fit("KreinSVC", make("KreinSVC", kernel="precomputed"), d.K, d.classes, d.K_new)
    yield Fit("KreinSVR", make("KreinSVR", kernel="precomputed"), d.K, d.y, d.K_new)
    yield Fit("DANKClassifier", make("DANKClassifier"), d.X, d.classes, d.new)
    yield Fit("DANKRegressor", make("DANKRegressor"), d.X, d.y, d.new)
    yield Fit("HyperRidge", make("HyperRidge", random_state=0), d.X[:90], d.K[:90, :90])
    yield Fit("HyperSVR", make("HyperSVR", random_state=0), d.X[:40], d.K[:40, :40])
    hyper = make("HyperRegressor", random_state=0)
    yield Fit("HyperRegressor", hyper, d.X[:60], d.y[:60], d.new)
    hyper = make("HyperClassifier", random_state=0)
    yield Fit("HyperClassifier", hyper, d.X[:60], d.classes[:60], d.new)
    lab = make("LABRegressor", 40, kernel="gaussian", random_state=0)
    yield Fit("LABRegressor, 40 support points", lab, d.X, d.y, d.new)
    ridge = make("AsymmetricRidge", kernel="precomputed", side="left", kind="similarity")
    yield Fit("AsymmetricRidge", ridge, d.directed, d.y[:250])


def automatic_tasks(d):
    """The automatic learners."""
    given = {"kernel": "precomputed", "random_state": 0}
    classifier = make("SimilarityClassifier", **given)
    yield Fit("SimilarityClassifier, similarities", classifier, d.K, d.classes, d.K_new)
    name = "SimilarityClassifier, distances, 10 classes"
    yield Fit(name, classifier, d.distances, d.digit_labels)
    regressor = make("SimilarityRegressor", **given)
    yield Fit("SimilarityRegressor, similarities", regressor, d.K, d.y, d.K_new)
    few = make("SimilarityClassifier", d.kernel, landmarks=60, random_state=0)
    yield Fit("SimilarityClassifier, landmarks", few, d.X, d.classes, d.new)
    both = make("SimilarityClassifier", direction="both", **given)
    yield Fit("SimilarityClassifier, directed", both, d.directed, d.classes[:250])
    kernels = {"TL1": d.kernel, "gaussian": "gaussian"}
    two = make("SimilarityClassifier", kernels, random_state=0)
    yield Fit("SimilarityClassifier, two kernels", two, d.X[:200], d.classes[:200], d.new)
    table = make("TableRegressor", random_state=0)
    yield Fit("TableRegressor", table, d.diabetes, d.progression, d.diabetes)
    table = make("TableClassifier", random_state=0)
    yield Fit("TableClassifier", table, d.table, d.table_classes, d.table)


def kernel_tasks(d):
    """Kernels."""
    from mercerless import kernels

    yield Matrices("TL1", kernels.TL1(5.0), d.new, d.X)
    yield Matrices("Laplace", kernels.Laplace(2.0), d.new, d.X)
    yield Matrices("Gaussian", kernels.Gaussian(2.0), d.new, d.X)
    yield Matrices("Polynomial", kernels.Polynomial(), d.new, d.X)


def cpu_seconds(function, enough=0.2):
    """Least CPU seconds of a call; quick ones are repeated for this many seconds."""
    times = []
    while sum(times) < enough:
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def work():
    """Answer names of tasks from the standard input with CPU seconds."""
    warnings.simplefilter("ignore")
    data = Data()
    tasks = {}
    for group in (kernel_tasks, method_tasks, automatic_tasks):
        tasks |= {task.name: task for task in group(data)}
    print(*tasks, sep="\t", flush=True)
    for line in sys.stdin:
        times = tasks[line.strip()].measure()
        print(*(f"{part}\t{seconds}" for part, seconds in times.items()), sep="\t", flush=True)


class Worker:
    """A process that runs tasks by the source of one tree."""

    def __init__(self, tree):
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            env={**os.environ, **threads, "PYTHONPATH": str(tree / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.tasks = self._answer()

    def measure(self, task):
        """CPU seconds by part of the task."""
        self.process.stdin.write(f"{task}\n")
        self.process.stdin.flush()
        cells = self._answer()
        return dict(zip(cells[::2], map(float, cells[1::2])))

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("A process ended early; its error stands above.")
        return line.rstrip("\n").split("\t")


def compare(before, after, tasks, repeats):
    """Ratio, least seconds of both workers, which take turns, and name of every part of every task."""
    least = {}
    for repeat in range(repeats):
        for task in tasks:
            workers = {"before": before, "after": after}
            order = ["before", "after"] if repeat % 2 == 0 else ["after", "before"]
            for side in order:
                for part, seconds in workers[side].measure(task).items():
                    key = (task, part, side)
                    least[key] = min(seconds, least.get(key, np.inf))
            print(f"{repeat + 1} of {repeats}: {task}", file=sys.stderr, flush=True)
    for task, part in dict.fromkeys(key[:2] for key in least):
        old = least[task, part, "before"]
        new = least[task, part, "after"]
        yield f"{new / old:.3f}", f"{old:9.4g}", f"{new:9.4g}", f"{task}: {part}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", nargs="?", default="HEAD")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="tasks whose names contain this")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "tree"
        words = ["git", "worktree", "add", "--quiet", "--detach", str(other), arguments.revision]
        subprocess.run(words, cwd=ROOT, check=True)
        try:
            before = Worker(other)
            after = Worker(ROOT)
            tasks = [task for task in after.tasks if arguments.only.lower() in task.lower()]
            for row in compare(before, after, tasks, arguments.repeats):
                print(*row, sep="  ")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
