"""The automatic choice against a Krein support vector machine solved as a dense quadratic program.

The opponent is the machine published with the antimicrobial peptides of ``amp_edit``: squared hinge, one penalty for
the positive and one for the negative part, a dense dual quadratic program with nonnegative unknowns, both penalties
chosen from five values each by 5-fold cross-validation, the eigendecomposition of every fold shared. Two versions:

- as published: the program goes to the dense solver of cvxopt, with the identity as a dense constraint matrix, and
  the expansion coefficients are found by least squares (needs cvxopt);
- as well as the same program can be solved: an interior point method that needs one Cholesky factorization per
  iteration, and the coefficients from the eigenvectors, which cost nothing.

::

    MERCERLESS_DATA=... python benchmarks/speed/similarity.py              # n = 1424, some minutes
    python benchmarks/speed/similarity.py --generated 400                  # needs no data folder
    python benchmarks/speed/similarity.py --search 500 2000                # against a search of scikit-learn
    MERCERLESS_DATA=... python benchmarks/speed/similarity.py --ratios 200 1000 2000  # against eigh and SVC

    python benchmarks/speed/similarity.py --landmarks 200                  # against Nystroem and ridge, prints only

The third is another opponent: `GridSearchCV` over seven penalties of a support vector machine with the negative
eigenvalues clipped or flipped, 5 folds, on digits of ten classes under city block distances. A pipeline changes the
spectrum of every fold; with ``memory=`` it is decomposed once for every fold and mode, not once for every candidate.

The ratios are those of a fit to one symmetric eigendecomposition of as many rows, and of ``predict_proba`` of 1, 100
and 10,000 new items to ``SVC.predict`` on precomputed Gaussians, for letters of two and of ten classes under city
block distances; each pair of times alternates.

Processor times of one run; writes results/similarity.csv, similarity_search.csv or similarity_ratios.csv, beside this
file.
"""

import argparse
import csv
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from mercerless import SimilarityClassifier
from mercerless.kernels import Gaussian
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)


def nonnegative_program(P, tol=1e-7, max_iter=100):
    """``min b^T P b / 2 - sum(b), b >= 0`` for positive definite P: Mehrotra's predictor-corrector method."""
    n = len(P)
    b, z = np.ones(n), np.ones(n)
    for _ in range(max_iter):
        residual = P @ b - 1.0 - z
        gap = b @ z / n
        if gap <= tol * (1.0 + abs(b.sum())) / n and np.abs(residual).max() <= tol:
            break
        system = P.copy()
        system[np.diag_indices(n)] += z / b
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        affine = cho_solve(factor, -residual - z, check_finite=False)
        affine_z = -z - z / b * affine
        step = min(_longest(b, affine), _longest(z, affine_z))
        centering = (((b + step * affine) @ (z + step * affine_z)) / n / gap) ** 3
        target = centering * gap - affine * affine_z
        move = cho_solve(factor, -residual - z + target / b, check_finite=False)
        move_z = target / b - z - z / b * move
        step = 0.995 * min(_longest(b, move), _longest(z, move_z))
        b, z = b + step * move, z + step * move_z
    return b


def published_program(P):
    """The same by cvxopt, called as in the published code."""
    from cvxopt import matrix
    from cvxopt.solvers import qp

    n = len(P)
    solution = qp(
        P=matrix(P),
        q=matrix(np.full(n, -1.0)),
        G=matrix(-np.eye(n)),
        h=matrix(np.zeros(n)),
        options={"show_progress": False},
    )
    return np.array(solution["x"]).ravel()


def _longest(point, move):
    """The longest step up to 1 that keeps the point positive."""
    falling = move < 0.0
    return min(1.0, float(np.min(-point[falling] / move[falling], initial=np.inf)))


class DenseKreinMachine:
    """The published machine on a given eigendecomposition; times of its parts are added to ``seconds``."""

    def __init__(self, positive, negative, seconds, published):
        self.positive, self.negative, self.seconds, self.published = (
            positive,
            negative,
            seconds,
            published,
        )

    def fit(self, values, vectors, y):
        start = time.process_time()
        scale = np.abs(values) / np.where(values >= 0.0, self.positive, self.negative)
        regularized = (vectors * scale) @ vectors.T
        P = regularized * np.outer(y, y)
        P[np.diag_indices(len(y))] += 1.0
        signed = y * (
            published_program(P) if self.published else nonnegative_program((P + P.T) / 2.0)
        )
        self.seconds["program"] += time.process_time() - start
        start = time.process_time()
        if self.published:
            self.coef = np.linalg.lstsq(
                (vectors * values) @ vectors.T, regularized @ signed, rcond=None
            )[0]
        else:
            kept = np.abs(values) > 1e-12 * np.abs(values).max()
            ratio = np.divide(scale, values, out=np.zeros_like(values), where=kept)
            self.coef = vectors @ (ratio * (vectors.T @ signed))
        self.seconds["coefficients"] += time.process_time() - start
        return self

    def predict(self, rows):
        return np.where(rows @ self.coef >= 0.0, 1.0, -1.0)


def tuned_krein_machine(K, y, published):
    """Both penalties by 5-fold accuracy, then a fit on all rows; returns the machine and the seconds of its parts."""
    seconds = {"eigendecompositions": 0.0, "program": 0.0, "coefficients": 0.0}
    hits = np.zeros((len(PENALTIES), len(PENALTIES)))

    def decompose(rows):
        start = time.process_time()
        values, vectors = np.linalg.eigh(K[np.ix_(rows, rows)])
        seconds["eigendecompositions"] += time.process_time() - start
        return values, vectors

    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(K, y):
        values, vectors = decompose(train)
        for i, positive in enumerate(PENALTIES):
            for j, negative in enumerate(PENALTIES):
                machine = DenseKreinMachine(positive, negative, seconds, published).fit(
                    values, vectors, y[train]
                )
                hits[i, j] += np.sum(machine.predict(K[np.ix_(test, train)]) == y[test])
    i, j = np.unravel_index(np.argmax(hits), hits.shape)
    machine = DenseKreinMachine(PENALTIES[i], PENALTIES[j], seconds, published)
    return machine.fit(*decompose(np.arange(len(y))), y), seconds


def _generated(n):
    """Random words of two kinds, compared by the share of positions at which they agree, with noise."""
    random = np.random.RandomState(0)
    y = np.where(np.arange(2 * n) % 2 == 0, 1.0, -1.0)
    letters = random.randint(4, size=(2 * n, 30)) * (
        random.uniform(size=(2 * n, 30)) < 0.7 + 0.1 * y[:, None]
    )
    K = (letters[:, None] == letters).mean(axis=2) + 0.02 * random.normal(size=(2 * n, 2 * n))
    K = (K + K.T) / 2.0
    np.fill_diagonal(K, 1.0)
    return K[:n, :n], y[:n], K[n:, :n], y[n:]


def digits(n):
    """City block distances of n digits, with noisy copies where there are not enough, and their labels."""
    random, (X, y) = np.random.RandomState(0), load_digits(return_X_y=True)
    X, y = np.vstack([X, X + 2.0 * random.normal(size=X.shape)]), np.append(y, y)
    keep = random.permutation(len(y))[:n]
    return cdist(X[keep], X[keep], "cityblock"), y[keep]


def search(D, y, memory):
    """A tuned support vector machine; the penalties are those of own similarities of mean 1."""
    steps = [
        ("center", DissimilarityKernel()),
        ("spectrum", SpectrumTransformer()),
        ("machine", SVC()),
    ]
    grid = {
        "spectrum__mode": ["clip", "flip"],
        "machine__C": 10.0 ** np.arange(-2, 5) / (0.5 * D**2).mean(),
    }
    pipeline = Pipeline(steps, memory=memory).set_params(machine__kernel="precomputed")
    return GridSearchCV(pipeline, grid, cv=StratifiedKFold(5, shuffle=True, random_state=0)).fit(
        D, y
    )


def processor_seconds(work, *arguments):
    """Of one call."""
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start


def against_search(sizes):
    """Write the table of ratios to the search, by the number of items."""
    with open(Path(__file__).parent / "results" / "similarity_search.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "search", "ratio_of_automatic"])
        for n in sizes:
            data = digits(n)
            model = SimilarityClassifier(
                "precomputed", kind="distance", landmarks=None, random_state=0
            )
            mine = processor_seconds(model.fit, *data)
            with tempfile.TemporaryDirectory() as folder:
                rows = [
                    (n, "spectra once per fold", mine / processor_seconds(search, *data, folder))
                ]
            if n <= 1000:
                rows.append(
                    (n, "spectra per candidate", mine / processor_seconds(search, *data, None))
                )
            for row in rows:
                print(*row, f"(automatic {mine:.1f} s)", flush=True)
                writer.writerow([*row[:2], f"{row[2]:.2f}"])


def letters(n, n_classes, n_new):
    """City block distances of n letters of so many classes, their labels, and distances of new ones to them."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "papers"))
    from paper_sets import load

    letter = load("letter")
    X, y = letter.data.astype(float), letter.target
    rows = np.flatnonzero(np.isin(y, np.unique(y)[:n_classes]))
    rows = np.random.RandomState(0).permutation(rows)
    n = min(n, len(rows) * 3 // 4)  # two letters have few rows
    X = X / X.std(axis=0)
    known = rows[:n]
    new = np.resize(rows[n:], n_new)
    return cdist(X[known], X[known], "cityblock"), y[known], cdist(X[new], X[known], "cityblock")


def ratios(sizes, n_new=(1, 100, 10_000)):
    """Write the table of ratios to an eigendecomposition and to the predictions of a support vector machine."""
    path = Path(__file__).parent / "results" / "similarity_ratios.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "classes", "fit_to_eigh", *(f"predict_{m}" for m in n_new)])
        for n in sizes:
            repeats = 5 if n <= 500 else 1 if n > 1000 else 3
            for n_classes in (2, 10):
                D, y, new = letters(n, n_classes, max(n_new))
                model = SimilarityClassifier(
                    "precomputed", kind="distance", landmarks=None, random_state=0
                )
                times = [
                    (processor_seconds(model.fit, D, y), processor_seconds(decompose, -(D**2)))
                    for _ in range(repeats)
                ]
                mine, other = np.median(times, axis=0)
                row = [len(y), n_classes, mine / other]
                unit = np.median(D) ** 2
                machine = SVC(kernel="precomputed").fit(np.exp(-(D**2) / unit), y)
                kernel = np.exp(-(new**2) / unit)
                for m in n_new:
                    times = [
                        (
                            processor_seconds(model.predict_proba, new[:m]),
                            processor_seconds(machine.predict, kernel[:m]),
                        )
                        for _ in range(20 if m <= 100 else 1)
                    ]
                    mine, other = np.median(times, axis=0)
                    row.append(mine / other)
                print(*row[:2], *(f"{ratio:.1f}" for ratio in row[2:]), flush=True)
                writer.writerow([*row[:2], *(f"{ratio:.1f}" for ratio in row[2:])])


def against_nystroem(n_landmarks, n=10_000, repeats=2):
    """Print the CPU seconds of a fit on landmarks and of a Nystroem map with a ridge classifier, for 10,000 rows."""
    random = np.random.RandomState(0)
    X = random.normal(size=(n, 10))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * random.normal(size=n)
    for n_classes in (2, 10):
        y = np.digitize(signal, np.linspace(-1.5, 1.5, n_classes + 1)[1:-1])
        models = {
            "landmarks": SimilarityClassifier(Gaussian(3.0), landmarks=n_landmarks, random_state=0),
            "Nystroem": make_pipeline(
                Nystroem(gamma=1 / 18, n_components=n_landmarks, random_state=0),
                RidgeClassifierCV(np.logspace(-6, 3, 10)),
            ),
        }
        best = dict.fromkeys(models, np.inf)
        for _ in range(repeats):
            for name, model in models.items():
                start = time.process_time()
                model.fit(X, y)
                best[name] = min(best[name], time.process_time() - start)
        ratio = best["landmarks"] / best["Nystroem"]
        print(
            f"{n_classes} classes: {best['landmarks']:.2f} s, {ratio:.1f} times Nystroem and ridge"
        )


def decompose(A):
    """All eigenvalues and eigenvectors by divide and conquer, the fastest of LAPACK's."""
    return eigh(A, driver="evd", check_finite=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--generated", type=int, default=0, metavar="N", help="use N generated items"
    )
    parser.add_argument(
        "--search",
        type=int,
        nargs="*",
        metavar="N",
        help="against scikit-learn's search on N items",
    )
    parser.add_argument(
        "--ratios", type=int, nargs="*", metavar="N", help="against eigh and SVC, for N items"
    )
    parser.add_argument(
        "--landmarks", type=int, metavar="M", help="a fit on M landmarks against Nystroem and ridge"
    )
    arguments = parser.parse_args()
    if arguments.landmarks:
        return against_nystroem(arguments.landmarks)
    if arguments.ratios is not None:
        return ratios(arguments.ratios or (200, 500, 1000, 2000))
    if arguments.search is not None:
        return against_search(arguments.search or (500, 2000))
    if arguments.generated:
        K, y, K_test, y_test = _generated(arguments.generated)
    else:
        sys.path.append(str(Path(__file__).resolve().parents[1] / "papers"))
        from paper_sets import load

        amp = load("amp_edit")
        K, y, K_test, y_test = amp.K, amp.target, amp.K_test, amp.target_test
    start = time.process_time()
    model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(K, y)
    mine = time.process_time() - start
    rows = [("automatic", mine, 1.0, model.score(K_test, y_test))]
    variants = [("Krein machine, dense program, at its best", False)]
    if importlib.util.find_spec("cvxopt") is None:
        print("cvxopt is not installed: the published version is left out")
    else:
        variants.append(("Krein machine, dense program, as published", True))
    for name, published in variants:
        machine, seconds = tuned_krein_machine(K, y, published)
        total = sum(seconds.values())
        rows.append((name, total, total / mine, np.mean(machine.predict(K_test) == y_test)))
        print(name, {part: round(value, 1) for part, value in seconds.items()}, flush=True)
    print(
        f"n = {len(y)}, {'generated' if arguments.generated else 'amp_edit'}, processor time, tuning included"
    )
    for name, seconds, ratio, accuracy in rows:
        print(
            f"{name:48s} {seconds:8.1f} s  {ratio:6.1f} times  test accuracy {100 * accuracy:.2f}"
        )
    path = Path(__file__).parent / "results" / "similarity.csv"
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["learner", "n", "ratio_to_automatic", "test_accuracy"])
        writer.writerows(
            [name, len(y), f"{ratio:.1f}", f"{100 * accuracy:.2f}"]
            for name, _, ratio, accuracy in rows
        )


if __name__ == "__main__":
    main()
