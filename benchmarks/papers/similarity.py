"""The automatic choice against single recipes, on real and generated indefinite data.

Every learner sees the same splits (two thirds to learn, a third to test) and is tuned by the same 5-fold
cross-validation on the training part: the penalty of the support vector machines over seven decades, the number of
neighbors over six values. `SimilarityClassifier` and `SimilarityRegressor` are used with their defaults. ::

    MERCERLESS_DATA=... python benchmarks/papers/similarity.py            # the real sets, 10 splits
    python benchmarks/papers/similarity.py --sets generated --splits 10   # needs no data folder
    python benchmarks/papers/similarity.py --sets generated --splits 1 --most 100   # at most so many items of a set
    MERCERLESS_DATA=... python benchmarks/papers/similarity.py --sets regression --splits 3
    MERCERLESS_DATA=... python benchmarks/papers/similarity.py --renew "SVC shift"   # other columns stay

Writes results/similarity_<sets>.csv (mean test accuracy, or R2, per set and learner, in per cent) beside this file.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from paper_sets import load
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from mercerless import SimilarityClassifier, SimilarityFeatures, SimilarityRegressor
from mercerless.datasets import load_digit_shapes, make_balls3d
from mercerless.kernels import TL1, Gaussian, Sigmoid
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer, symmetrize

PENALTIES = 10.0 ** np.arange(-2, 5)
NEIGHBORS = (1, 3, 5, 9, 15, 25)
GIVEN = " (given test rows)"


def real_sets():
    """Yield name, kind of input, matrix, labels, and the given test rows and labels if there are any."""
    amp = load("amp_edit")
    yield "amp_edit", "similarity", amp.K, amp.target, (amp.K_test, amp.target_test)
    coil = load("coilyork_half")
    yield (
        "coilyork_half",
        "distance",
        symmetrize(coil.D),
        coil.target,
        (coil.D_test, coil.target_test),
    )
    for name in ("protein", "dtw_ecg200", "balls3d_regen"):
        bunch = load(name)
        yield name, "distance", bunch.D, bunch.target, None
    shapes = load_digit_shapes()
    yield "digit_shapes", "distance", shapes.D, shapes.target, None


def generated_sets():
    """Yield the same for indefinite similarities made from bundled and random data."""
    random = np.random.RandomState(0)
    for name, loader in (
        ("wine", load_wine),
        ("iris", load_iris),
        ("breast_cancer", load_breast_cancer),
    ):
        X, y = loader(return_X_y=True)
        keep = random.permutation(len(y))[:300]
        X, y = StandardScaler().fit_transform(X[keep]), y[keep]
        width = X.shape[1]
        yield f"{name}_tl1", "similarity", TL1(0.7 * width)(X), y, None
        yield f"{name}_sigmoid", "similarity", Sigmoid(np.sqrt(width), offset=-0.5)(X), y, None
        K = Gaussian(np.sqrt(width / 2.0))(X)
        noise = random.normal(size=K.shape) * 0.5 * K.std()
        yield f"{name}_noise", "similarity", K + (noise + noise.T) / 2.0, y, None
        D = np.abs(X[:, None, :] - X[None, :, :])
        yield f"{name}_fractional", "distance", (np.sqrt(D).sum(axis=2)) ** 2, y, None
    X, y = load_digits(return_X_y=True)
    keep = random.permutation(len(y))[:300]
    yield (
        "digits_manhattan",
        "distance",
        np.abs(X[keep][:, None] - X[keep][None]).sum(axis=2),
        y[keep],
        None,
    )
    balls = make_balls3d(150, random_state=1)
    yield "balls3d", "distance", balls[0], balls[1], None
    for noise in (0.5, 1.5):
        X, y = _curves(180, noise, random)
        yield f"curves_dtw_{noise}", "distance", _dtw(X), y, None
    for mutations in (15, 30):
        words, y = _words(250, mutations, random)
        yield f"words_edit_{mutations}", "distance", _edit_distances(words), y, None


def regression_sets():
    """Yield the same for numbers to predict: indefinite similarities of bundled and public tables, and of series."""
    random = np.random.RandomState(0)
    tables = {"diabetes": load_diabetes(return_X_y=True)}
    for name in ("yacht", "mpg", "housing", "airfoil"):
        bunch = load(name)
        tables[name] = bunch.data, bunch.target
    for name, (X, y) in tables.items():
        keep = random.permutation(len(y))[:200]
        X, y = np.asarray(X, dtype=float)[keep], np.asarray(y, dtype=float)[keep]
        X = StandardScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0])
        width = X.shape[1]
        yield f"{name}_tl1", "similarity", TL1(0.7 * width)(X), y, None
        K = Gaussian(np.sqrt(width / 2.0))(X)
        noise = random.normal(size=K.shape) * 0.3 * K.std()
        yield f"{name}_noise", "similarity", K + (noise + noise.T) / 2.0, y, None
        D = np.abs(X[:, None, :] - X[None, :, :])
        yield f"{name}_fractional", "distance", (np.sqrt(D).sum(axis=2)) ** 2, y, None
    X, height = _pulses(150, 0.5, random)
    yield "pulses_dtw", "distance", _dtw(X), height, None


def _pulses(n, noise, random):
    """Series with one pulse, and its height over the noise: warping keeps heights and forgets lengths."""
    t, height = np.arange(64), random.uniform(1, 6, size=n)
    start, length = random.randint(4, 24, size=n), random.randint(8, 32, size=n)
    inside = (t >= start[:, None]) & (t <= (start + length)[:, None])
    return height[:, None] * inside + noise * random.normal(size=(n, 64)), height


def _curves(n, noise, random):
    """Cylinders, bells and funnels: three classes of series."""
    y, t = random.randint(3, size=n), np.arange(64)
    X = np.empty((n, 64))
    for row, label in zip(X, y):
        start = random.randint(8, 16)
        stop = start + random.randint(16, 46)
        inside = (t >= start) & (t <= stop)
        form = (np.ones(64), (t - start) / (stop - start), (stop - t) / (stop - start))[label]
        row[:] = (6 + random.normal()) * inside * form + random.normal(size=64)
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    return X + noise * random.normal(size=X.shape), y


def _dtw(X):
    """Dynamic time warping distances, all pairs at once."""
    first, second = np.triu_indices(len(X), 1)
    previous = np.full((len(first), X.shape[1] + 1), np.inf)
    previous[:, 0] = 0.0
    for i in range(X.shape[1]):
        current = np.full_like(previous, np.inf)
        for j in range(X.shape[1]):
            step = np.minimum(np.minimum(previous[:, j + 1], current[:, j]), previous[:, j])
            current[:, j + 1] = (X[first, i] - X[second, j]) ** 2 + step
        previous = current
    D = np.zeros((len(X), len(X)))
    D[first, second] = D[second, first] = np.sqrt(previous[:, -1])
    return D


def _words(n, mutations, random):
    """Mutated copies of three prototypes for each of three classes."""
    prototypes = random.randint(8, size=(3, 3, 30))
    y, words = random.randint(3, size=n), []
    for label in y:
        word = list(prototypes[label, random.randint(3)])
        for _ in range(random.randint(mutations // 2, mutations + 1)):
            place, kind = random.randint(len(word)), random.randint(3)
            if kind == 0:
                word[place] = random.randint(8)
            elif kind == 1 and len(word) > 5:
                del word[place]
            else:
                word.insert(place, random.randint(8))
        words.append("".join(chr(97 + letter) for letter in word))
    return words, y


def _edit_distances(words):
    from rapidfuzz.distance import Levenshtein

    return np.array([[Levenshtein.distance(a, b) for b in words] for a in words], dtype=float)


def _unit_diagonal(K):
    """The scale that brings the mean own similarity to 1, so that one grid of penalties fits all matrices."""
    return 1.0 / (np.abs(np.diagonal(K)).mean() or 1.0)


def recipes(kind, regression):
    """The single recipes: a preparation of the matrix, and learners that differ in one parameter."""
    center = [DissimilarityKernel()] if kind == "distance" else []
    machine, label = (SVR, "SVR") if regression else (SVC, "SVC")
    neighbors = KNeighborsRegressor if regression else KNeighborsClassifier
    machines = [machine(C=C, kernel="precomputed", max_iter=100_000) for C in PENALTIES]
    for mode in ("clip", "flip", "square", "shift"):
        yield f"{label} {mode}", make_pipeline(*center, SpectrumTransformer(mode)), machines
    yield f"{label} raw", make_pipeline(*center, FunctionTransformer()), machines
    features = make_pipeline(*center, SimilarityFeatures(kernel="precomputed"), StandardScaler())
    yield (
        f"{label} features",
        features,
        [machine(C=C, kernel="linear", max_iter=100_000) for C in PENALTIES],
    )
    yield "neighbors", "distances", [neighbors(k, metric="precomputed") for k in NEIGHBORS]


def _score(truth, predictions, regression):
    return r2_score(truth, predictions) if regression else np.mean(predictions == truth)


def _prepare(step, matrix, diag, kind, train, test):
    """Rows to learn from and rows to test, after the recipe's preparation fitted on the former."""
    inner, outer = matrix[np.ix_(train, train)], matrix[np.ix_(test, train)]
    if isinstance(step, str):
        if kind == "distance":
            return inner, outer
        square = (
            diag[train] - 2.0 * inner + diag[train][:, None],
            diag[train] - 2.0 * outer + diag[test][:, None],
        )
        return tuple(np.sqrt(np.maximum(part, 0.0)) for part in square)
    step = clone(step)
    inner, outer = step.fit_transform(inner), step.transform(outer)
    if inner.shape[0] == inner.shape[1] and not isinstance(step[-1], StandardScaler):
        scale = _unit_diagonal(inner)
    else:
        scale = 1.0 / np.sqrt(inner.shape[1])  # unit own similarity again
    return inner * scale, outer * scale


def tuned_predictions(step, learners, matrix, kind, y, train, test, seed, regression):
    """Predictions for the test rows by the learner with the best 5-fold score on the training rows."""
    diag = np.diagonal(matrix)
    score = np.full(len(learners), 0.0)
    folds = (KFold if regression else StratifiedKFold)(5, shuffle=True, random_state=seed)
    for fit, check in folds.split(train, y[train]):
        inner, outer = _prepare(step, matrix, diag, kind, train[fit], train[check])
        for position, learner in enumerate(learners):
            if getattr(learner, "n_neighbors", 1) <= len(inner):
                predictions = learner.fit(inner, y[train[fit]]).predict(outer)
                score[position] += len(check) * _score(y[train[check]], predictions, regression)
            else:
                score[position] = -np.inf
    inner, outer = _prepare(step, matrix, diag, kind, train, test)
    return learners[int(np.argmax(score))].fit(inner, y[train]).predict(outer)


def compare(kind, matrix, y, train, test, seed, regression, renew=None):
    """Test accuracy (or R2) of every learner, or of one only, on one split."""
    score = {}
    if regression:
        # one grid of penalties and one tube fit all targets
        y = (y - y[train].mean()) / y[train].std()
    for name, step, learners in recipes(kind, regression):
        if renew not in (None, name):
            continue
        with warnings.catch_warnings():
            # raw indefinite machines do not converge, and classes smaller than five are in some sets
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            predictions = tuned_predictions(
                step, learners, matrix, kind, y, train, test, seed, regression
            )
        score[name] = _score(y[test], predictions, regression)
    if renew not in (None, "automatic"):
        return score
    automatic = SimilarityRegressor if regression else SimilarityClassifier
    model = automatic(kernel="precomputed", kind=kind, random_state=seed)
    model.fit(matrix[np.ix_(train, train)], y[train])
    diag = None if kind == "distance" else np.diagonal(matrix)[test]
    score["automatic"] = _score(
        y[test], model.predict(matrix[np.ix_(test, train)], diag=diag), regression
    )
    return score


def report(name, rows, columns):
    mean = {column: 100.0 * np.mean([row[column] for row in rows]) for column in columns}
    print(f"{name:24s}" + "".join(f"{mean[column]:14.2f}" for column in columns), flush=True)
    return mean


def read(path):
    """The columns of the file, its sets with their scores, averages, the automatic choice on given test rows."""
    with open(path, newline="") as file:
        header, *lines = list(csv.reader(file))
    columns = header[1:]
    table = {line[0]: dict(zip(columns, map(float, line[1:]))) for line in lines if line[1]}
    averages = table.pop("average")
    given = [(line[0].removesuffix(GIVEN), float(line[-1]), "") for line in lines if not line[1]]
    return columns, table, averages, given


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", choices=("real", "generated", "regression"), default="real")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--most", type=int, help="items per set; without the given test rows")
    parser.add_argument("--renew", metavar="COLUMN", help="one learner; other columns stay")
    arguments = parser.parse_args()
    path = Path(__file__).parent / "results" / f"similarity_{arguments.sets}.csv"
    start, columns, table, given = time.process_time(), None, {}, []
    if arguments.renew:
        columns, table, averages, given = read(path)
    sets = {"real": real_sets, "generated": generated_sets, "regression": regression_sets}[
        arguments.sets
    ]
    regression = arguments.sets == "regression"
    for name, kind, matrix, y, test_part in sets():
        rows = []
        if arguments.most:
            keep = np.sort(np.random.RandomState(0).permutation(len(y))[: arguments.most])
            matrix, y, test_part = matrix[np.ix_(keep, keep)], np.asarray(y)[keep], None
        splitter = ShuffleSplit if regression else StratifiedShuffleSplit
        splits = splitter(arguments.splits, test_size=1 / 3, random_state=0).split(matrix, y)
        for seed, (train, test) in enumerate(splits):
            rows.append(compare(kind, matrix, y, train, test, seed, regression, arguments.renew))
        if arguments.renew:
            table[name] |= report(name, rows, [arguments.renew])
            continue
        if columns is None:
            columns = list(rows[0])
            title = "test R2, per cent" if regression else "test accuracy, per cent"
            print(f"{title:24s}" + "".join(f"{column:>14s}" for column in columns))
        table[name] = report(name, rows, columns)
        if test_part is not None:
            model = SimilarityClassifier(kernel="precomputed", kind=kind, random_state=0).fit(
                matrix, y
            )
            given.append((name, 100.0 * model.score(*test_part), str(model.negative_spectrum_)))
    average = {
        column: float(np.mean([row[column] for row in table.values()])) for column in columns
    }
    if arguments.renew:  # the others were rounded once
        average = averages | {arguments.renew: average[arguments.renew]}
    report("average", [{c: v / 100.0 for c, v in average.items()}], columns)
    singles = [column for column in columns if column != "automatic"]
    hindsight = np.mean([max(row[c] for c in singles) for row in table.values()])
    print(f"best single recipe of each set in hindsight: {hindsight:.2f}; automatic minus that: "
          f"{average['automatic'] - hindsight:+.2f} points")  # fmt: skip
    for name, accuracy, sentence in given:
        print(f"{name}: automatic on the given test rows {accuracy:.2f}. {sentence}")
    print(f"{time.process_time() - start:.0f} s of processor time")
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["set", *columns])
        for name, row in [*table.items(), ("average", average)]:
            writer.writerow([name, *(f"{row[column]:.2f}" for column in columns)])
        for name, accuracy, _ in given:
            writer.writerow([f"{name}{GIVEN}", *[""] * (len(columns) - 1), f"{accuracy:.2f}"])


if __name__ == "__main__":
    main()
