"""The automatic choice beside eleven tuned recipes on a bank of more than thirty sets: accuracy, log-loss and rank.

The sets of `similarity.py` (at most 300 items of each), and single similarities of the groups of
`similarity_several.py`: series under elastic distances, pen trajectories, images, radar returns, first names. Two
thirds learn, a third is tested. A recipe is tuned by the 5-fold accuracy of its grid on the training part: seven
penalties of a support vector machine or a logistic regression, with five widths for the Gaussian, six numbers of
neighbors. The held-out scores of what is chosen then calibrate it as the automatic choice calibrates its members (a
slope and a bias per class), so that every recipe has the best probabilities we can give it. ::

    MERCERLESS_DATA=... python benchmarks/papers/similarity_bank.py --splits 2

Writes results/similarity_bank.csv: mean test accuracy in per cent and log-loss per set and learner, beside this file.
With ``--renew`` only the automatic choice (or the learner named) is run, on the same splits; the other rows are kept.

The best of eleven recipes in hindsight is partly luck. A run of all learners therefore also writes
results/similarity_bank_luck.csv: the accuracy of the best recipe in hindsight, and that of the recipe with the most
hits on four fifths of the items, counted on the other fifth (mean over 20 divisions of the items into fifths).
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
import similarity
import similarity_several
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercerless import SimilarityClassifier
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer

RESULT = Path(__file__).parent / "results" / "similarity_bank.csv"
LUCK = RESULT.with_name("similarity_bank_luck.csv")
WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
CHOSEN = {
    "heartbeats": ("msm", "twed"), "sonar echoes": ("erp", "twed"), "pen digits": ("hausdorff", "directions"),
    "digit images": ("divergence", "row and column sums"), "radar": ("cosine", "largest difference"),
    "first names": ("jaro_winkler", "levenshtein"),
}  # fmt: skip


def sets(most):
    """Yield name, kind, matrix and labels, of at most so many items."""
    for name, kind, matrix, y, _ in (*similarity.real_sets(), *similarity.generated_sets()):
        keep = np.sort(np.random.RandomState(0).permutation(len(y))[:most])
        yield name, kind, matrix[np.ix_(keep, keep)], np.asarray(y)[keep]
    for group, matrices, y in similarity_several.groups():
        for name in CHOSEN[group]:
            yield f"{group}, {name}", "distance", matrices[name], np.asarray(y)


def squares(kind, matrix):
    """Squared distances."""
    if kind == "distance":
        return matrix**2
    own = np.diagonal(matrix)
    return np.maximum(own + own[:, None] - 2.0 * matrix, 0.0)


class Spectrum:
    """The matrix of similarities with its spectrum changed, own similarities of mean 1."""

    def __init__(self, mode, kind, matrix):
        self.mode, self.center, self.matrix = mode, kind == "distance", matrix

    def __call__(self, train, test):
        inner, outer = self.matrix[np.ix_(train, train)], self.matrix[np.ix_(test, train)]
        for step in [DissimilarityKernel()] * self.center + [SpectrumTransformer(self.mode)] * (
            self.mode != "raw"
        ):
            inner, outer = step.fit_transform(inner), step.transform(outer)
        scale = np.abs(np.diagonal(inner)).mean() or 1.0
        return inner / scale, outer / scale


def columns(matrix):
    """Standardized columns as features, rows of length about 1."""

    def prepare(train, test):
        scaler = StandardScaler().fit(matrix[np.ix_(train, train)])
        parts = (scaler.transform(matrix[np.ix_(rows, train)]) for rows in (train, test))
        return tuple(part / np.sqrt(len(train)) for part in parts)

    return prepare


def gaussian(squared, width):
    """``exp(-width d^2 / median)``."""

    def prepare(train, test):
        unit = np.median(squared[np.ix_(train, train)]) or 1.0
        return tuple(
            np.exp(squared[np.ix_(rows, train)] * (-width / unit)) for rows in (train, test)
        )

    return prepare


def distances(squared):
    """Distances as they are."""
    return lambda train, test: tuple(
        np.sqrt(squared[np.ix_(rows, train)]) for rows in (train, test)
    )


def recipes(kind, matrix):
    """Every recipe: pairs of a preparation and its learners."""
    squared, similar = squares(kind, matrix), -0.5 * matrix**2 if kind == "distance" else matrix
    precomputed = [SVC(C=C, kernel="precomputed", max_iter=50_000) for C in similarity.PENALTIES]
    linear = [SVC(C=C, kernel="linear", max_iter=50_000) for C in similarity.PENALTIES]
    logistic = [LogisticRegression(C=C, max_iter=300) for C in similarity.PENALTIES]
    for mode in ("clip", "flip", "square", "shift", "raw"):
        yield f"SVC {mode}", [(Spectrum(mode, kind, matrix), precomputed)]
    yield "SVC similarities", [(columns(similar), linear)]
    yield "SVC distances", [(columns(np.sqrt(squared)), linear)]
    yield "SVC gaussian", [(gaussian(squared, width), precomputed) for width in WIDTHS]
    yield "logistic distances", [(columns(np.sqrt(squared)), logistic)]
    for name, how in (("neighbors", "uniform"), ("weighted neighbors", "distance")):
        learners = [
            KNeighborsClassifier(k, metric="precomputed", weights=how) for k in similarity.NEIGHBORS
        ]
        yield name, [(distances(squared), learners)]


def scores_of(learner, rows):
    """A column per class: log-probabilities of neighbors (never certain), decision values of the others."""
    if isinstance(learner, KNeighborsClassifier):
        proba = learner.predict_proba(rows)
        return np.log(proba + 1.0 / (proba.shape[1] * (1 + learner.n_neighbors)))
    values = learner.decision_function(rows)
    return np.column_stack([-values, values]) / 2.0 if values.ndim == 1 else values


def calibrated(held, y, scores):
    """Probabilities of scores by the slope and the biases that suit the held-out ones, under a weak prior."""
    shift, scale = held.mean(), held.std() or 1.0

    def logs(theta, values):
        return log_softmax(theta[0] * (values - shift) / scale + theta[1:], axis=1)

    def loss(theta):
        prior = 0.05 * (theta[0] - 1.0) ** 2 + 0.5 * (theta[1:] ** 2).sum()
        return prior / 2.0 - logs(theta, held)[np.arange(len(y)), y].sum()

    start, bounds = (
        np.append(1.0, np.zeros(held.shape[1])),
        [(0.01, None)] + [(None, None)] * held.shape[1],
    )
    return np.exp(logs(minimize(loss, start, method="L-BFGS-B", bounds=bounds).x, scores))


def tuned(grid, y, train, test, seed):
    """Labels and probabilities of the test items by the candidate with the best 5-fold accuracy."""
    best, hits = None, -1.0
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(train, y[train]))
    for prepare, learners in grid:
        prepared = [prepare(train[fit], train[check]) for fit, check in folds]
        for learner in learners:
            held, correct = np.zeros((len(train), y.max() + 1)), 0.0
            for (fit, check), (inner, outer) in zip(folds, prepared):
                learner.fit(inner, y[train[fit]])
                part = scores_of(learner, outer)
                held[np.ix_(check, learner.classes_)] = part
                correct += np.sum(learner.classes_[part.argmax(axis=1)] == y[train[check]])
            if correct > hits:
                best, hits = (prepare, learner, held), correct
    prepare, learner, held = best
    inner, outer = prepare(train, test)
    scores = np.zeros((len(test), y.max() + 1))
    learner.fit(inner, y[train])
    scores[:, learner.classes_] = scores_of(learner, outer)
    return learner.classes_[scores[:, learner.classes_].argmax(axis=1)], calibrated(
        held, y[train], scores
    )


def compare(kind, matrix, y, train, test, seed, renew=None):
    """Accuracy, log-loss and hits (a number per test item) of every learner, or of one only, on one split."""
    found = {}
    for name, grid in recipes(kind, matrix):
        if renew not in (None, name):
            continue
        labels, proba = tuned(grid, y, train, test, seed)
        hits = labels == y[test]
        loss = log_loss(y[test], proba, labels=np.arange(proba.shape[1]))
        found[name] = (hits.mean(), loss, hits)
    if renew not in (None, "automatic"):
        return found
    model = SimilarityClassifier(kernel="precomputed", kind=kind, landmarks=None, random_state=seed)
    model.fit(matrix[np.ix_(train, train)], y[train])
    diag = None if kind == "distance" else np.diagonal(matrix)[test]
    proba = model.predict_proba(matrix[np.ix_(test, train)], diag=diag)
    hits = proba.argmax(axis=1) == y[test]
    found["automatic"] = (hits.mean(), log_loss(y[test], proba, labels=model.classes_), hits)
    return found


def hits_per_item(n, tests, rows):
    """How often every item was tested, and how often each recipe was right about it."""
    tested = np.bincount(np.concatenate(tests), minlength=n)
    hits = {}
    for name in rows[0]:
        right = np.concatenate([row[name][2] for row in rows])
        hits[name] = np.bincount(np.concatenate(tests), weights=right, minlength=n)
    return tested, hits


def chosen_on_other_items(tested, hits, n_divisions=20):
    """Accuracy of the recipe with the most hits on four fifths of the items, counted on the other fifth."""
    random = np.random.RandomState(0)
    table = np.array(list(hits.values()))
    right = 0.0
    for _ in range(n_divisions):
        fifth_of = random.permutation(len(tested)) % 5
        for fifth in range(5):
            of_others = table[:, fifth_of != fifth].sum(axis=1)
            is_best = of_others == of_others.max()  # ties share
            right += table[is_best][:, fifth_of == fifth].sum(axis=1).mean()
    return right / (n_divisions * tested.sum())


def luck_of(n, tests, rows):
    """Accuracies: the automatic choice, the best recipe in hindsight, the recipe chosen on other items."""
    tested, hits = hits_per_item(n, tests, rows)
    automatic = hits.pop("automatic").sum() / tested.sum()
    hindsight = max(right.sum() for right in hits.values()) / tested.sum()
    return automatic, hindsight, chosen_on_other_items(tested, hits)


def summary(table):
    """The sentence of the figures: gap, rank and log-loss."""
    accuracy = {name: {key: row[key][0] for key in row} for name, row in table.items()}
    loss = {name: {key: row[key][1] for key in row} for name, row in table.items()}
    gaps, ranks, lowest = [], [], 0
    for name, row in accuracy.items():
        others = [value for key, value in row.items() if key != "automatic"]
        gaps.append(max(others) - row["automatic"])
        above, level = (
            sum(test)
            for test in zip(*((v > row["automatic"], v == row["automatic"]) for v in others))
        )
        ranks.append(1 + above + level / 2)
        lowest += min(loss[name], key=loss[name].get) == "automatic"
    return (
        f"{len(table)} sets: gap to the best recipe in hindsight {np.mean(gaps):+.4f}, average rank "
        f"{np.mean(ranks):.2f} of {len(row)}, lowest log-loss on {lowest}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--most", type=int, default=300, help="items per set")
    parser.add_argument("--only", nargs="*", help="names of sets")
    parser.add_argument(
        "--renew",
        nargs="?",
        const="automatic",
        metavar="LEARNER",
        help="one learner, without a name the automatic choice; other rows stay",
    )
    parser.add_argument("--ideas", action="store_true", help="other averages of the members")
    arguments = parser.parse_args()
    if arguments.ideas:
        import similarity_ideas

        similarity_ideas.run_bank(arguments.splits, arguments.only)
        return
    kept = read() if arguments.renew else {}
    warnings.simplefilter("ignore")  # machines that do not converge, classes smaller than five
    start, table, luck = time.process_time(), {}, {}
    for name, kind, matrix, y in sets(arguments.most):
        if arguments.only and name not in arguments.only:
            continue
        y = np.unique(y, return_inverse=True)[1]
        splitter = StratifiedShuffleSplit(arguments.splits, test_size=1 / 3, random_state=0)
        splits = list(splitter.split(matrix, y))
        rows = [
            compare(kind, matrix, y, train, test, seed, arguments.renew)
            for seed, (train, test) in enumerate(splits)
        ]
        table[name] = kept.get(name, {}) | {
            key: np.mean([row[key][:2] for row in rows], axis=0) for key in rows[0]
        }
        if arguments.renew is None:
            luck[name] = luck_of(len(y), [test for _, test in splits], rows)
        best = max(
            (key for key in table[name] if key != "automatic"), key=lambda key: table[name][key][0]
        )
        print(f"{name:32s} {best:20s}" + " ".join(f"{v:.3f}" for k in (best, "automatic") for v in table[name][k]),
              f"{time.process_time() - start:.0f} s", flush=True)  # fmt: skip
        write(table)  # what is done is not lost
        write_luck(luck)
    print(summary(table))


def read():
    """The file's rows as accuracy in shares and log-loss, by set and learner."""
    table = {}
    with RESULT.open(newline="") as file:
        for row in csv.DictReader(file):
            found = np.array([float(row["accuracy"]) / 100.0, float(row["log_loss"])])
            table.setdefault(row["set"], {})[row["learner"]] = found
    return table


def write(table):
    """All rows so far, in the place of those of an earlier run; its other sets stay."""
    old = list(csv.reader(RESULT.open(newline="")))[1:] if RESULT.exists() else []
    with RESULT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "learner", "accuracy", "log_loss"])
        writer.writerows(row for row in old if row[0] not in table)
        for name, row in table.items():
            writer.writerows(
                [name, key, f"{100 * a:.2f}", f"{loss:.4f}"] for key, (a, loss) in row.items()
            )


def write_luck(luck):
    """Rows of the sets of this run in the place of earlier ones; other sets stay."""
    if not luck:
        return
    old = list(csv.reader(LUCK.open(newline="")))[1:] if LUCK.exists() else []
    with LUCK.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "automatic", "hindsight", "chosen_on_other_items"])
        writer.writerows(row for row in old if row[0] not in luck)
        for name, accuracies in luck.items():
            writer.writerow([name, *(f"{100 * value:.2f}" for value in accuracies)])


if __name__ == "__main__":
    main()
