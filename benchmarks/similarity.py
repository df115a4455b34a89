"""Similarities: the default of `SimilarityClassifier` beside tuned recipes.

    MERCERLESS_DATA=folder python -m benchmarks.similarity [recipes] [bank] [ablation]

recipes: six real sets, accuracy in per cent on held-out thirds, mean of five splits; of larger sets a random part is
used. `python docs/images/make.py recipes` draws the rows. bank: sixteen smaller sets, accuracy, average rank and
log-loss of calibrated probabilities. Recipes choose a penalty (or number of neighbors) by the same five inner folds.
ablation: the sets of the bank, four graphs and two sets with few items per class, without one family at a time: what
each is worth, with its standard error over sets.
"""

from itertools import chain
from unittest.mock import patch

import numpy as np
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import main, write
from benchmarks.papers.paper_sets import load
from mercerless import SimilarityClassifier, SimilarityFeatures
from mercerless.datasets import load_digit_shapes
from mercerless.similarity.blocks import Block
from mercerless.spectra import SpectrumTransformer

SPLITS = 5
MOST = 450  # items of a set, drawn at random
PENALTIES = {"svc__C": np.logspace(-2, 4, 7)}
NAMES = {
    "amp_edit": "peptides, edit distance",
    "coilyork_half": "shapes, graph matching",
    "protein": "proteins, alignment",
    "dtw_ecg200": "heartbeats, time warping",
    "balls3d_regen": "balls, surface distance",
    "digit_shapes": "digits, Hausdorff distance",
}


def centered(D):
    """The similarities that belong to distances."""
    squares = D**2
    means = squares.mean(axis=0)
    return -0.5 * (squares - means - means[:, None] + means.mean())


def similarities(name):
    """A matrix of similarities with a mean diagonal near one, the matching distances, and labels."""
    data = load_digit_shapes() if name == "digit_shapes" else load(name)
    if "K" in data:
        K = (data.K + data.K.T) / 2
    else:
        K = centered((data.D + data.D.T) / 2)
    own = np.diag(K)
    squares = np.maximum(own[:, None] + own - 2 * K, 0.0)
    return K / np.abs(own).mean(), np.sqrt(squares), data.target


def recipes():
    """Name, estimator with a search, and whether it takes similarities (else distances)."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for mode in ("clip", "flip", "square", "shift"):
        machine = make_pipeline(SpectrumTransformer(mode), SVC(kernel="precomputed"))
        yield mode, GridSearchCV(machine, PENALTIES, cv=folds), True
    raw = make_pipeline(SVC(kernel="precomputed", max_iter=100_000))
    yield "as it is", GridSearchCV(raw, PENALTIES, cv=folds), True
    rows = make_pipeline(SimilarityFeatures("precomputed"), LinearSVC(dual=False))
    yield (
        "similarities as features",
        GridSearchCV(rows, {"linearsvc__C": np.logspace(-4, 1, 6)}, cv=folds),
        True,
    )
    counts = {"n_neighbors": [1, 3, 5, 9, 15, 25]}
    neighbors = KNeighborsClassifier(metric="precomputed")
    yield "neighbors", GridSearchCV(neighbors, counts, cv=folds), False


def real_sets():
    """A row per set, a column per recipe."""
    rows = []
    for name, title in NAMES.items():
        K, D, y = similarities(name)
        keep = np.random.default_rng(0).permutation(len(y))[:MOST]
        K, D, y = K[np.ix_(keep, keep)], D[np.ix_(keep, keep)], y[keep]
        scores = {}
        for train, test in StratifiedShuffleSplit(SPLITS, test_size=1 / 3, random_state=0).split(
            K, y
        ):
            inside, across = np.ix_(train, train), np.ix_(test, train)
            for recipe, search, takes_similarities in recipes():
                M = K if takes_similarities else D
                score = search.fit(M[inside], y[train]).score(M[across], y[test])
                scores.setdefault(recipe, []).append(score)
            default = SimilarityClassifier("precomputed", kind="similarity")
            default.fit(K[inside], y[train])
            score = np.mean(default.predict(K[across], diag=np.diag(K)[test]) == y[test])
            scores.setdefault("SimilarityClassifier", []).append(score)
        means = {recipe: round(100 * np.mean(values), 1) for recipe, values in scores.items()}
        rows.append({"set": title, **means})
    average = {recipe: round(np.mean([row[recipe] for row in rows]), 1) for recipe in means}
    write("similarity_recipes", [*rows, {"set": "average", **average}])


# ------------------------------------------------------------------------------------------ many smaller sets
def bank_sets(most=240):
    """Name, similarities, distances and labels of at most this many items."""
    for name, title in NAMES.items():
        K, D, y = similarities(name)
        keep = np.random.default_rng(1).permutation(len(y))[:most]
        yield title, K[np.ix_(keep, keep)], D[np.ix_(keep, keep)], y[keep]
    for name in ("wine", "heart", "ionosphere", "glass", "sonar"):
        data = load(name)
        keep = np.random.default_rng(1).permutation(len(data.target))[:most]
        X, y = StandardScaler().fit_transform(data.data[keep]), data.target[keep]
        X = X[:, X.std(axis=0) > 0]
        for metric in ("cityblock", "chebyshev"):
            D = cdist(X, X, metric)
            yield f"{name}, {metric}", centered(D), D / D.mean(), y


def more_sets():
    """What the bank lacks: graphs, by their links and by their paths, and few items per class."""
    rng = np.random.default_rng(0)
    for n_classes, inside, outside in ((4, 0.09, 0.02), (8, 0.3, 0.06)):
        y = rng.integers(n_classes, size=240)
        chance = np.where(y[:, None] == y, inside, outside)
        links = np.triu(rng.uniform(size=chance.shape) < chance, 1).astype(float)
        links += links.T
        yield f"links of {n_classes}", links, None, y
        paths = np.minimum(shortest_path(links, unweighted=True), 10.0)
        yield f"paths of {n_classes}", centered(paths), None, y
    for name in ("letter", "pendigits"):
        data = load(name)
        order = rng.permutation(len(data.target))
        classes = np.unique(data.target)
        keep = np.concatenate([order[data.target[order] == label][:12] for label in classes])
        X = StandardScaler().fit_transform(data.data[keep])
        yield f"{name}, 12 of a class", centered(cdist(X, X, "cityblock")), None, data.target[keep]


def with_probabilities(search, M, y):
    """The chosen machine, with probabilities from five folds."""
    chosen = clone(search.fit(M, y).best_estimator_)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return CalibratedClassifierCV(chosen, ensemble=False, cv=folds).fit(M, y)


def bank():
    """A row per learner, over all sets."""
    losses, scores = {}, {}
    for title, K, D, y in bank_sets():
        print(title, flush=True)
        splits = StratifiedShuffleSplit(2, test_size=1 / 3, random_state=0).split(K, y)
        for train, test in splits:
            inside, across = np.ix_(train, train), np.ix_(test, train)
            for recipe, search, takes_similarities in recipes():
                if recipe in ("shift", "as it is"):
                    continue
                M = K if takes_similarities else D
                model = with_probabilities(search, M[inside], y[train])
                keep_scores(losses, scores, recipe, title, y[test], model, M[across])
            model = SimilarityClassifier("precomputed", kind="similarity").fit(K[inside], y[train])
            given = {"diag": np.diag(K)[test]}
            keep_scores(
                losses, scores, "SimilarityClassifier", title, y[test], model, K[across], given
            )
    means = {name: {t: np.mean(v) for t, v in sets.items()} for name, sets in scores.items()}
    table = np.array([list(sets.values()) for sets in means.values()])
    ranks = rankdata(-table, axis=0).mean(axis=1)
    mean_losses = {
        name: np.array([np.mean(v) for v in sets.values()]) for name, sets in losses.items()
    }
    rows = [
        {
            "learner": name,
            "accuracy": f"{100 * table[i].mean():.1f}",
            "average rank": f"{ranks[i]:.1f}",
            "log-loss": f"{mean_losses[name].mean():.3f}",
        }
        for i, name in enumerate(scores)
    ]
    *recipe_losses, _ = mean_losses.values()
    rows.append(
        {
            "learner": "best recipe of every set, in hindsight",
            "accuracy": f"{100 * table[:-1].max(axis=0).mean():.1f}",
            "average rank": "",
            "log-loss": f"{np.min(recipe_losses, axis=0).mean():.3f}",
        }
    )
    print(f"{table.shape[1]} sets")
    write("similarity_bank", rows[-2:-1] + rows[:-2] + rows[-1:])


def keep_scores(losses, scores, name, title, y, model, rows, given=None):
    """Add the log-loss and the accuracy of one fit."""
    proba = np.clip(model.predict_proba(rows, **(given or {})), 1e-6, 1)
    losses.setdefault(name, {}).setdefault(title, []).append(
        log_loss(y, proba / proba.sum(axis=1, keepdims=True), labels=model.classes_)
    )
    is_right = model.classes_[proba.argmax(axis=1)] == y
    scores.setdefault(name, {}).setdefault(title, []).append(np.mean(is_right))


def ablation():
    """A row per family: change of accuracy and log-loss without it, mean over sets and its standard error."""
    names = ["clip", "flip", "square", "gaussian", "profiles", "shares", "neighbors", "classes"]
    everything = Block.families
    changes = {name: [] for name in names}
    for title, K, _, y in chain(bank_sets(), more_sets()):
        print(title, flush=True)
        splits = StratifiedShuffleSplit(2, test_size=1 / 3, random_state=0).split(K, y)
        of_set = {name: [] for name in [None, *names]}
        for train, test in splits:
            inside, across = np.ix_(train, train), np.ix_(test, train)
            for left_out, figures in of_set.items():

                def families(block, classify, left_out=left_out):
                    kept = []
                    for one in everything(block, classify):
                        names = [one.described(setting)[0] for setting in one.settings]
                        places = [i for i, name in enumerate(names) if name != left_out]
                        kept += [one.keep(places)] if places else []
                    return kept

                with patch.object(Block, "families", families):
                    model = SimilarityClassifier("precomputed", kind="similarity")
                    proba = model.fit(K[inside], y[train]).predict_proba(
                        K[across], np.diag(K)[test]
                    )
                loss = log_loss(y[test], np.clip(proba, 1e-6, 1), labels=model.classes_)
                figures.append((loss, np.mean(model.classes_[proba.argmax(axis=1)] == y[test])))
        for name in names:
            changes[name].append(np.mean(of_set[name], axis=0) - np.mean(of_set[None], axis=0))
    rows = []
    for name, values in changes.items():
        mean = np.mean(values, axis=0)
        error = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
        rows.append(
            {
                "without": name,
                "log-loss": f"{mean[0]:+.4f}",
                "standard error": f"{error[0]:.4f}",
                "accuracy, points": f"{100 * mean[1]:+.2f}",
                "its standard error": f"{100 * error[1]:.2f}",
            }
        )
    write("similarity_ablation", rows)


if __name__ == "__main__":
    main({"recipes": real_sets, "bank": bank, "ablation": ablation})
