"""Ideas for figures of the similarity learner that are missed, each beside what the library does.

``landmarks``: 400 comparisons of a new item, on the sets of `similarity_few`. The library's landmarks are drawn at
random. Ideas: as many of every class; the best 400 of 800 (the pursuit, which compares training items with 800); 300 or
200 landmarks and 100 or 200 neighbors found through them; the matrix completed from the landmarks' columns
(Nystroem), and the stack on all comparisons.

``bank``: the average of the members, on the sets of `similarity_bank` and on the other similarities of
`similarity_several`, with the members' scores as they are. Ideas: weights pulled more or less toward each other, one
or five settings of every family, geometric means of probabilities and the mean of both means, labels that vote,
another temperature, folds repeated, and further families (longer logistic regressions, neighbors weighted by
distance, Gaussians of other widths, exponentials of distances).

``intervals``: 90 % intervals of the regressor, on the sets of `similarity_intervals`. Ideas: quantiles of errors of
alike predictions alone; scales by ridge regression on the logarithms of errors; one factor for all scales (the
library's until this was measured); errors multiplied by the ratio of leave-one-out to five-fold errors of one kernel
machine, because five folds learn from fewer items. ::

    MERCERLESS_DATA=... python benchmarks/papers/similarity_few.py --ideas
    MERCERLESS_DATA=... python benchmarks/papers/similarity_bank.py --ideas --splits 3
    MERCERLESS_DATA=... python benchmarks/papers/similarity_intervals.py --ideas

Writes results/similarity_few_ideas.csv, similarity_bank_ideas.csv and similarity_intervals_ideas.csv beside this file.
"""

import csv
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import similarity_bank
import similarity_few
import similarity_intervals
import similarity_several
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from mercerless import SimilarityClassifier, SimilarityRegressor
from mercerless.core import averaging_old as averaging
from mercerless.core.calibration import calibrate, fit_temperature, sharpen
from mercerless.core.folds import assign_folds, splits_of
from mercerless.kernels import MatrixFunction
from mercerless.lowrank import Landmarks
from mercerless.similarity import families, stack
from mercerless.spectra import as_similarities

RESULTS = Path(__file__).parent / "results"


# ------------------------------------------------------------------------------------------------ landmarks
def of_every_class(y, number, random):
    """Positions of as many items of every class as possible."""
    left = [random.permutation(np.flatnonzero(y == label)).tolist() for label in np.unique(y)]
    chosen = []
    while len(chosen) < min(number, len(y)):
        for items in left:
            if items and len(chosen) < number:
                chosen.append(items.pop())
    return np.sort(chosen)


def extended(W, first, second, negligible=1e-2):
    """``first W^+ second^T``, without eigenvalues of W that are negligible."""
    values, vectors = np.linalg.eigh((W + W.T) / 2.0)
    kept = np.abs(values) > negligible * np.abs(values).max()
    return (first @ vectors[:, kept] / values[kept]) @ (second @ vectors[:, kept]).T


def completed(kind, matrix, train, test, columns):
    """Distances of training items to each other and of test items to them, from comparisons with the columns only."""
    similarities = as_similarities(matrix, kind)
    own = similarities[0, 0]  # the same for all items of these sets
    W = similarities[np.ix_(columns, columns)]
    of_train = similarities[np.ix_(train, columns)]
    of_test = similarities[np.ix_(test, columns)]
    among = extended(W, of_train, of_train)
    outside = extended(W, of_test, of_train)
    is_column = np.isin(train, columns)
    among[:, is_column] = of_train
    among[is_column] = of_train.T
    outside[:, is_column] = of_test
    among = (among + among.T) / 2.0
    np.fill_diagonal(among, own)
    return tuple(np.sqrt(2.0 * np.maximum(own - part, 0.0)) for part in (among, outside))


def landmark_ideas(kind, matrix, y, train, test, seed, number=400):
    """Yield an idea, its classifier, and what it learns from and predicts."""
    random = np.random.RandomState(seed)
    order = random.permutation(len(train))
    drawn = train[np.sort(order[:number])]
    of_classes = train[of_every_class(y[train], number, random)]
    twice = train[np.sort(order[: 2 * number])]

    def given(landmarks, columns):
        model = SimilarityClassifier(
            "precomputed", kind=kind, landmarks=landmarks, random_state=seed
        )
        return model, matrix[np.ix_(train, columns)], matrix[np.ix_(test, columns)]

    yield "all comparisons", *given(None, train)
    yield "drawn at random", *given(Landmarks(len(drawn)), drawn)
    yield "as many of every class", *given(Landmarks(len(of_classes)), of_classes)
    yield "the best 400 of 800", *given(Landmarks(number, "pursuit"), twice)
    for n_neighbors in (100, 200):
        landmarks = Landmarks(number - n_neighbors, neighbors=n_neighbors)
        model = OfPairs(lookup(matrix), kind=kind, landmarks=landmarks, random_state=seed)
        name = f"{number - n_neighbors} and {n_neighbors} neighbors"
        yield name, model, train[:, None].astype(float), test[:, None].astype(float)
    on_all = SimilarityClassifier("precomputed", kind="distance", landmarks=None, random_state=seed)
    yield "completed matrix", on_all, *completed(kind, matrix, train, test, drawn)


class OfPairs(SimilarityClassifier):
    """Landmarks also for as few items as these, of which the library would compare all."""

    def _all_are_cheaper(self, *_):
        return False


def lookup(matrix):
    """The kernel of items that are positions in a matrix."""

    def compare(first, second):
        rows = np.asarray(first, dtype=int).ravel()
        columns = np.asarray(second, dtype=int).ravel()
        return matrix[np.ix_(rows, columns)]

    return MatrixFunction(compare, symmetric=True)


def run_landmarks(n_splits, only=None):
    """Mean accuracy and log-loss of every idea over the sets."""
    warnings.simplefilter("ignore")  # classes smaller than five
    figures = {}
    for name, kind, matrix, y in similarity_few.comparable_sets():
        if only and not name.startswith(tuple(only)):
            continue
        splitter = StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0)
        rows = {}
        for seed, (train, test) in enumerate(splitter.split(matrix, y)):
            for idea, model, known, new in landmark_ideas(kind, matrix, y, train, test, seed):
                proba = model.fit(known, y[train]).predict_proba(new)
                hits = model.classes_[proba.argmax(axis=1)] == y[test]
                loss = log_loss(y[test], proba, labels=model.classes_)
                rows.setdefault(idea, []).append((100.0 * hits.mean(), loss))
        for idea, values in rows.items():
            figures.setdefault(idea, {})[name] = np.mean(values, axis=0)
        write_landmarks(figures)
        print(
            name, *(f"{idea} {np.mean(v, axis=0)[0]:.2f};" for idea, v in rows.items()), flush=True
        )


def write_landmarks(figures):
    """Means over the sets, and without the set that loses most."""
    rows = []
    for idea, of_set in figures.items():
        every = np.array(list(of_set.values()))
        others = np.array([v for name, v in of_set.items() if not name.startswith("letters")])
        accuracy, loss = every.mean(axis=0)
        elsewhere = others[:, 0].mean() if len(others) else np.nan
        rows.append([idea, len(every), f"{accuracy:.2f}", f"{elsewhere:.2f}", f"{loss:.4f}"])
    write("few", ["idea", "sets", "accuracy", "without_letters", "log_loss"], rows)


# ------------------------------------------------------------------------------------------------ bank
class WiderGaussians(families.Gaussians):
    """Gaussians of other widths."""

    settings = families.settings_of("widths", families.GRIDS.feature_penalties, (0.3, 1.0, 10.0))


class Exponentials(families.Gaussians):
    """Exponentials of distances."""

    settings = families.settings_of("exponentials", families.GRIDS.feature_penalties, (0.5, 2.0))
    reads = "distances"

    def learn_base(self, train):
        self.unit = np.sqrt(train.unit)
        return self.base(train)


class LongerLogistic(families.LogisticDistances):
    """Logistic regressions on distances that are stopped late."""

    settings = families.settings_of("longer logistic", (200, 500, 1500))


class WeightedNeighbors(families.Neighbors):
    """Neighbors that count in proportion to one over their distance."""

    needs_diagonal = True
    settings = families.settings_of("weighted neighbors", (3, 5, 9, 15, 25))

    def scores(self, new):
        scores = []
        for setting in self.settings:
            number = min(int(setting.parameter), new.distances.shape[1])
            nearest = np.argpartition(new.distances, number - 1, axis=1)[:, :number]
            away = np.take_along_axis(new.distances, nearest, axis=1)
            share = 1.0 / np.maximum(away, 1e-3 * np.median(new.distances))
            share /= share.sum(axis=1, keepdims=True)
            scores.append(np.einsum("ij,ijk->ik", share, self.targets[nearest]))
        return np.stack(scores)


FURTHER = (WiderGaussians(), Exponentials(), LongerLogistic(), WeightedNeighbors())


@dataclass(frozen=True)
class Scores:
    """Scores of all settings: out of fold by two divisions into folds, and of the test items."""

    settings: tuple
    onehot: np.ndarray
    folds: tuple
    test: np.ndarray
    labels: np.ndarray

    def of(self, names):
        """The same with the library's families and some of the others."""
        others = {setting.family for family in FURTHER for setting in family.settings} - set(names)
        kept = [k for k, setting in enumerate(self.settings) if setting.family not in others]
        return replace(
            self,
            settings=tuple(self.settings[k] for k in kept),
            folds=tuple(scores[kept] for scores in self.folds),
            test=self.test[kept],
        )


def scores_of(kind, matrix, y, train, test, seed):
    """Scores on one split."""
    known = families.Comparisons.of(as_similarities(matrix[np.ix_(train, train)], kind))
    own = np.zeros(len(test)) if kind == "distance" else np.diagonal(matrix)[test].astype(float)
    similarities = as_similarities(matrix[np.ix_(test, train)], kind)
    new = families.Comparisons(similarities, own, known.column_diagonal)
    n_classes = int(y.max()) + 1
    onehot = np.eye(n_classes)[y[train]]
    targets = 2.0 * onehot - 1.0
    weight = np.ones(len(train))
    every = (*families.default_families(True, len(train), n_classes), *FURTHER)
    settings = families.all_settings(every)
    folds = []
    for repeat in range(2):
        fold_of = assign_folds(5, len(train), labels=y[train], random_state=1000 * repeat + seed)
        scores = np.zeros((len(settings), *targets.shape))
        for split in splits_of(fold_of):
            held_out = stack.out_of_fold_scores(known, known, targets, every, weight, split)
            scores[:, split[1]] = held_out
        folds.append(scores)
    members = families.fit_members(known, targets, every, weight)
    return Scores(settings, onehot, tuple(folds), members.scores(new), y[test])


def pooled(weights, proba, how):
    """The average of probabilities: arithmetic, geometric, the mean of both, or with half of the weight for labels."""
    mean = np.tensordot(weights, proba, 1)
    if how == "geometric":
        return averaging.geometric_mean(weights, proba, 1.0)
    if how == "both":
        return (mean + averaging.geometric_mean(weights, proba, 1.0)) / 2.0
    if how == "labels":
        votes = np.eye(proba.shape[2])[proba.argmax(axis=2)]
        return (mean + np.tensordot(weights, votes, 1)) / 2.0
    return mean


def averaged(
    scores, names=(), pull=None, n_best=3, how="arithmetic", repeats=1, temperature_pull=1.5
):
    """Probabilities of the test items."""
    scores = scores.of(names)
    n = len(scores.onehot)
    if pull is None:
        pull = stack.RULES.small_pull if n <= stack.RULES.small_items else stack.RULES.pull
    held_out = np.concatenate(scores.folds[:repeats], axis=1)
    onehot = np.tile(scores.onehot, (repeats, 1))
    weight = np.full(len(onehot), 1.0 / repeats)
    calibration = calibrate(held_out, onehot, weight)
    losses = stack.log_loss(calibration(held_out), onehot) @ weight
    chosen = []
    for family in dict.fromkeys(setting.family for setting in scores.settings):
        index = [k for k, setting in enumerate(scores.settings) if setting.family == family]
        chosen += sorted(index, key=losses.__getitem__)[:n_best]
    kept = calibration.take(chosen)
    proba = kept(held_out[chosen])
    rule = replace(averaging.STACKED_CLASSES, pull=pull)
    weights = averaging.average(proba, onehot, weight, rule).weights
    power = fit_temperature(pooled(weights, proba, how), onehot, weight, temperature_pull)
    return sharpen(pooled(weights, kept(scores.test[chosen]), how), power)


BANK_IDEAS = {
    "as it is": {},
    "weights pulled a third as strongly": {"pull": 0.03},
    "three times as strongly": {"pull": 0.3},
    "ten times as strongly": {"pull": 1.0},
    "one setting of every family": {"n_best": 1},
    "five settings": {"n_best": 5},
    "geometric means": {"how": "geometric"},
    "mean of both means": {"how": "both"},
    "labels vote with half of the weight": {"how": "labels"},
    "temperature pulled ten times as strongly": {"temperature_pull": 15.0},
    "folds repeated": {"repeats": 2},
    "Gaussians of other widths": {"names": ("widths",)},
    "exponentials of distances": {"names": ("exponentials",)},
    "longer logistic regressions": {"names": ("longer logistic",)},
    "weighted neighbors": {"names": ("weighted neighbors",)},
}


def bank_sets():
    """The sets of the bank, and the other similarities of its groups."""
    for name, kind, matrix, y in similarity_bank.sets(240):
        yield "bank", name, kind, matrix, y
    for group, matrices, y in similarity_several.groups():
        for name, matrix in matrices.items():
            if name not in similarity_bank.CHOSEN[group]:
                yield "others", f"{group}, {name}", "distance", matrix, y


def run_bank(n_splits, only=None):
    """Differences of accuracy and log-loss of every idea from the average as it is."""
    warnings.simplefilter("ignore")  # classes smaller than five
    figures = {}
    for place, name, kind, matrix, y in bank_sets():
        if only and not name.startswith(tuple(only)):
            continue
        labels = np.unique(y, return_inverse=True)[1]
        splitter = StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0)
        results = []
        for seed, (train, test) in enumerate(splitter.split(matrix, labels)):
            scores = scores_of(kind, np.asarray(matrix, dtype=float), labels, train, test, seed)
            of_split = []
            for idea in BANK_IDEAS.values():
                proba = averaged(scores, **idea)
                right = proba[np.arange(len(proba)), scores.labels]
                hits = proba.argmax(axis=1) == scores.labels
                of_split.append((100.0 * hits.mean(), -np.log(np.maximum(right, 1e-15)).mean()))
            results.append(of_split)
        figures.setdefault(place, []).append(np.mean(results, axis=0))
        print(place, name, flush=True)
        write_bank(figures)


def write_bank(figures):
    """Means and standard errors of the differences over the sets."""
    rows = []
    for place, values in figures.items():
        table = np.array(values)  # (n_sets, n_ideas, 2)
        change = table - table[:, :1]
        error = change.std(axis=0) / np.sqrt(max(1, len(table) - 1))
        for position, idea in enumerate(BANK_IDEAS):
            means = change[:, position].mean(axis=0)
            rows.append(
                [place, idea, len(table), f"{means[0]:.3f}", f"{error[position, 0]:.3f}",
                 f"{means[1]:.4f}", f"{error[position, 1]:.4f}"]
            )  # fmt: skip
    header = ["sets", "idea", "n_sets", "accuracy", "accuracy_error", "log_loss", "log_loss_error"]
    write("bank", header, rows)


# ------------------------------------------------------------------------------------------------ intervals
def quantile(errors, coverage=0.9):
    """The conformal quantile of errors."""
    return np.sort(errors)[int(np.ceil((len(errors) + 1) * coverage)) - 1]


def alike(errors, known, predictions, share):
    """Conformal quantiles of the errors of a share of the items, those with the nearest predictions."""
    number = max(60, int(share * len(errors)))
    nearest = np.argpartition(np.abs(predictions[:, None] - known), number - 1, axis=1)[:, :number]
    rank = int(np.ceil((number + 1) * 0.9)) - 1
    return np.sort(errors[nearest], axis=1)[:, rank]


def nearest_mean(ranks, errors, number):
    """Mean errors of so many items of lowest rank, and the mean rank."""
    nearest = np.argpartition(ranks, number - 1, axis=1)[:, :number]
    return errors[nearest].mean(axis=1), np.take_along_axis(ranks, nearest, axis=1).mean(axis=1)


def scale_features(squares, predictions, errors, known):
    """What the size of an error may depend on."""
    near, _ = nearest_mean(squares, errors, 25)
    farther, away = nearest_mean(squares, errors, 60)
    gaps = np.abs(predictions[:, None] - known)
    similar, _ = nearest_mean(gaps, errors, max(10, int(0.15 * len(errors))))
    means = np.log(np.column_stack([near, farther, similar]))
    return np.column_stack([means, np.sqrt(away), np.abs(predictions), predictions])


def ridge_scales(errors, known, squares, fold_of, predictions, new_squares, penalty=10.0):
    """Scales of the training items out of fold and of new items, by ridge regression on the logarithms of errors."""
    logs = np.log(errors + 0.05 * errors.mean())
    splits = splits_of(fold_of)
    rows = np.empty((len(errors), 6))
    for train, test in splits:
        part = squares[np.ix_(test, train)]
        rows[test] = scale_features(part, known[test], errors[train], known[train])
    scaler = StandardScaler().fit(rows)
    rows = scaler.transform(rows)

    def coefficients(items):
        A = rows[items]
        gram = A.T @ A + penalty * np.eye(A.shape[1])
        return np.linalg.solve(gram, A.T @ (logs[items] - logs[items].mean()))

    held_out = np.empty(len(errors))
    for train, test in splits:
        held_out[test] = rows[test] @ coefficients(train) + logs[train].mean()
    new = scaler.transform(scale_features(new_squares, predictions, errors, known))
    found = new @ coefficients(np.arange(len(errors))) + logs.mean()
    return np.exp(held_out), np.exp(np.clip(found, held_out.min(), held_out.max()))


def learning_ratio(squares, targets, fold_of):
    """Mean leave-one-out error relative to the mean error in folds, of the best of some kernel ridge regressions."""
    unit = np.median(squares)
    centered = targets - targets.mean()
    best = np.inf
    for width in (0.3, 1.0, 3.0):
        kernel = np.exp(-width * squares / unit) + 1.0
        for penalty in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
            inverse = np.linalg.inv(kernel + penalty * np.eye(len(kernel)))
            dual = inverse @ centered
            one_out = dual / np.diagonal(inverse)
            if (one_out**2).mean() < best:
                best = (one_out**2).mean()
                chosen = inverse, dual, one_out
    inverse, dual, one_out = chosen
    of_folds = np.empty(len(dual))
    for _, test in splits_of(fold_of):
        of_folds[test] = np.linalg.solve(inverse[np.ix_(test, test)], dual[test])
    return float(np.clip(np.abs(one_out).mean() / np.abs(of_folds).mean(), 0.7, 1.0))


def interval_ideas(model, X, prediction, known_X, fold_of):
    """Half the width of every interval, by idea."""
    held_out = model.out_of_fold_
    errors = np.abs(held_out.prediction - held_out.target)
    known = held_out.prediction
    low, high = model.predict_interval(X, 0.9).T
    squares = squared(model, known_X)
    new_squares = squared(model, X)
    one = np.ones(len(errors))
    scales = (one, np.ones(len(X)))
    if model.spread_ is not None:
        block = model._compare(X, None, None)
        standardized = (prediction - model.mean_) / model.scale_
        scales = (model.spread_.out_of_fold, model.spread_(block, standardized))
    library = (high - low) / 2.0
    ratio = learning_ratio(squares, held_out.target, fold_of)
    by_ridge = ridge_scales(errors, known, squares, fold_of, prediction, new_squares)
    yield "as it is", library
    yield "one width", np.full(len(X), quantile(errors))
    yield "one factor for all scales", quantile(errors / scales[0]) * scales[1]
    yield "quantiles of alike predictions", alike(errors, known, prediction, 0.2)
    yield "ridge regression on log errors", quantile(errors / by_ridge[0]) * by_ridge[1]
    local = alike(errors / by_ridge[0], known, prediction, 0.5)
    yield "the same with local factors", local * by_ridge[1]
    yield "as it is, times leave-one-out ratio", library * ratio


def squared(model, X):
    """Squared distances to the training items, whose own similarities are 1."""
    return 2.0 - 2.0 * model._compare(X, None, None).similarities


def run_intervals(n_splits, only=None):
    """Largest deviation in a fifth and Winkler score of every idea."""
    warnings.simplefilter("ignore")  # models that are no better than a constant
    figures = {}
    for name in similarity_intervals.SETS:
        if only and name not in only:
            continue
        results = {}
        for seed in range(n_splits):
            X, y, train, test = similarity_intervals.prepared(name, seed)
            model = SimilarityRegressor("laplacian", random_state=0).fit(X[train], y[train])
            fold_of = assign_folds(5, len(train), random_state=seed)
            prediction = model.predict(X[test])
            for idea, radius in interval_ideas(model, X[test], prediction, X[train], fold_of):
                row = similarity_intervals.figures(y[test], prediction, radius)
                results.setdefault(idea, []).append(row)
        for idea, values in results.items():
            by_fifth = np.mean([value[1] for value in values], axis=0)
            score = np.mean([value[2] for value in values])
            coverage = np.mean([value[0] for value in values])
            row = (coverage, np.abs(by_fifth - 0.9).max(), score)
            figures.setdefault(idea, []).append(row)
        print(name, flush=True)
        header = ["idea", "sets", "coverage", "largest_deviation_in_a_fifth", "winkler"]
        rows = []
        for idea, values in figures.items():
            coverage, deviation, score = np.mean(values, axis=0)
            rows.append([idea, len(values), f"{coverage:.3f}", f"{deviation:.4f}", f"{score:.4f}"])
        write("intervals", header, rows)


def write(part, header, rows):
    """All rows so far."""
    with (RESULTS / f"similarity_{part}_ideas.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
