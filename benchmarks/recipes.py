"""Similarities on real data: the default of `SimilarityClassifier` beside tuned recipes.

    MERCERLESS_DATA=folder python -m benchmarks.recipes

Each recipe chooses its penalty (or number of neighbors) by the same five inner folds. Accuracy in per cent on held-out
thirds, mean of the splits; of larger sets a random part is used. `python docs/images/make.py recipes` draws the rows.
"""

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import main, write
from benchmarks.papers.paper_sets import load
from mercerless import SimilarityClassifier, SimilarityFeatures
from mercerless.datasets import load_digit_shapes
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


def similarities(name):
    """A matrix of similarities with a mean diagonal near one, the matching distances, and labels."""
    data = load_digit_shapes() if name == "digit_shapes" else load(name)
    if "K" in data:
        K = (data.K + data.K.T) / 2
    else:
        squares = ((data.D + data.D.T) / 2) ** 2
        means = squares.mean(axis=0)
        K = -0.5 * (squares - means - means[:, None] + means.mean())
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


def real():
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


if __name__ == "__main__":
    main({"real": real})
