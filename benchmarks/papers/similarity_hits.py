"""Sparse hits: the learner beside votes of the hits, logistic regression on their rows, and the full matrix.

Every item keeps its 10, 20, 50 or 100 most similar training items. `votes` chooses among twelve weighted votes by their
leave-one-out log-loss; `logistic rows` is scikit-learn's logistic regression on the rows scaled to length one, with the
penalty chosen by 3-fold cross-validation; `full matrix` is `SimilarityClassifier` on all comparisons. In graphs of
links, votes are those of linked items in either direction, and logistic regression sees rows and columns. ::

    MERCERLESS_DATA=... python benchmarks/papers/similarity_hits.py    # without the data folder, graphs only
    python benchmarks/papers/similarity_hits.py --only citations --splits 1

Writes results/similarity_hits.csv (test accuracy in per cent, log-loss and processor seconds per set, number of hits
and learner; graphs are means of the splits) beside this file.
"""

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np
from paper_sets import load
from scipy.sparse import coo_array, csr_array, hstack
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import normalize

from mercerless import HitsClassifier, SimilarityClassifier

RESULTS = Path(__file__).parent / "results" / "similarity_hits.csv"
TITLES = ["set", "hits", "learner", "accuracy", "log_loss", "processor_seconds"]
HITS = (10, 20, 50, 100)


def similarity_sets():
    """Yield name, similarities of the training items and of the test items to them, and both labels."""
    amp = load("amp_edit")
    yield "amp_edit", amp.K, amp.K_test, amp.target, amp.target_test
    letter = load("letter")
    order = np.random.RandomState(0).permutation(len(letter.target))
    train, test = order[:3000], order[3000:5000]
    X = np.asarray(letter.data, dtype=float)
    inner, outer = (cdist(X[rows], X[train], "cityblock") for rows in (train, test))
    unit = np.median(np.sort(inner, axis=1)[:, 1:21])
    inner, outer = (np.exp(-((D / unit) ** 2)) for D in (inner, outer))
    yield "letters", inner, outer, letter.target[train], letter.target[test]


def graphs():
    """Yield name, links and labels."""
    random = np.random.RandomState(0)
    yield "citations", *_citations(4000, random)
    yield "nearest digits", *_nearest(random)
    yield "one way", *_one_way(1500, random)


def _citations(n, random, n_classes=6, n_links=5):
    """Half of the links are random, half stay in the class, but for class 0, which links into class 1."""
    y = random.randint(n_classes, size=n)
    pools = [np.flatnonzero(y == c) for c in range(n_classes)]
    rows = np.repeat(np.arange(n), n_links)
    of_class = np.array([random.choice(pools[max(1, y[i])]) for i in rows])
    columns = np.where(
        random.uniform(size=len(rows)) < 0.5, of_class, random.randint(n, size=len(rows))
    )
    return _links(rows, columns, n), y


def _nearest(random, k=8):
    """Who is among whose eight nearest neighbors, of noisy digits."""
    X, y = load_digits(return_X_y=True)
    D = cdist(*[X + random.normal(scale=6.0, size=X.shape)] * 2)
    np.fill_diagonal(D, np.inf)
    nearest = np.argpartition(D, k, axis=1)[:, :k]
    return _links(np.repeat(np.arange(len(y)), k), nearest.ravel(), len(y)), y


def _one_way(n, random, n_classes=5, n_links=6):
    """Every class links into the next one, and a third of the links are random."""
    y = random.randint(n_classes, size=n)
    pools = [np.flatnonzero(y == c) for c in range(n_classes)]
    rows = np.repeat(np.arange(n), n_links)
    into = np.array([random.choice(pools[(y[i] + 1) % n_classes]) for i in rows])
    columns = np.where(
        random.uniform(size=len(rows)) < 2 / 3, into, random.randint(n, size=len(rows))
    )
    return _links(rows, columns, n), y


def _links(rows, columns, n):
    links = csr_array(coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)))
    links.setdiag(0.0)
    links.eliminate_zeros()
    links.data[:] = 1.0
    return links


def best_hits(K, number, is_square):
    """The largest entries of every row, without the diagonal of a square matrix."""
    K = K.copy()
    if is_square:
        np.fill_diagonal(K, -np.inf)
    columns = np.argpartition(-K, number, axis=1)[:, :number]
    rows = np.repeat(np.arange(len(K)), number)
    return csr_array((K[rows, columns.ravel()], (rows, columns.ravel())), shape=K.shape)


def votes(S, y, R):
    """Probabilities by the best of twelve weighted votes on the training items, none of which votes on itself."""
    onehot = np.eye(y.max() + 1)[y]

    def proba(hits, number, power):
        U = normalize(hits, "max")
        kept = U.copy()
        for i in range(U.shape[0]):
            row = slice(U.indptr[i], U.indptr[i + 1])
            values = U.data[row]
            if len(values) > number:
                smallest = np.partition(values, -number)[-number]
                kept.data[row] = np.where(values >= smallest, values, 0.0)
        kept.data = np.where(kept.data > 0.0, kept.data**power, 0.0)
        counts = kept @ onehot + 0.5 * onehot.mean(axis=0)
        return counts / counts.sum(axis=1, keepdims=True)

    settings = [(number, power) for number in (1, 3, 10, 10**9) for power in (0.0, 1.0, 4.0)]
    best = min(settings, key=lambda setting: log_loss(y, proba(S, *setting)))
    return proba(R, *best)


def logistic_rows(S, y, R):
    """Probabilities by logistic regression on rows of length one."""
    S, R = (normalize(csr_array(part)) for part in (S, R))
    search = GridSearchCV(
        LogisticRegression(max_iter=300), {"C": [1.0, 10.0]}, cv=3, scoring="neg_log_loss"
    )
    return search.fit(S, y).predict_proba(R)


def hits_proba(S, y, R, **options):
    """Probabilities by the learner on hits."""
    reverse = options.pop("reverse", None)
    model = HitsClassifier(random_state=0, **options).fit(S, y)
    return model.predict_proba(R, reverse=reverse)


def measured(learner, y, function, *arguments, **options):
    """Accuracy, log-loss and processor seconds on test labels."""
    start = time.process_time()
    proba = function(*arguments, **options)
    seconds = time.process_time() - start
    accuracy = 100.0 * np.mean(proba.argmax(axis=1) == y)
    return learner, accuracy, log_loss(y, proba, labels=np.arange(proba.shape[1])), seconds


def on_similarities(K, K_test, y, truth):
    """Yield the number of hits, and the figures of every learner."""
    for number in HITS:
        S, R = best_hits(K, number, True), best_hits(K_test, number, False)
        yield number, measured("votes", truth, votes, S, y, R)
        yield number, measured("logistic rows", truth, logistic_rows, S, y, R)
        yield number, measured("HitsClassifier", truth, hits_proba, S, y, R)

    def full():
        model = SimilarityClassifier(
            "precomputed", kind="similarity", landmarks=None, random_state=0
        )
        return model.fit(K, y).predict_proba(K_test)

    yield "all", measured("full matrix", truth, full)


def on_links(links, y, train, test):
    """Yield the mean number of links, and the figures of every learner, on one split."""
    S, R, B = links[train][:, train], links[test][:, train], csr_array(links[train][:, test].T)
    either, new = csr_array(S + S.T), csr_array(R + B)
    both, both_new = hstack([S, S.T]), hstack([R, B])
    number = round(S.nnz / S.shape[0], 1)
    yield number, measured("votes", y[test], votes, either, y[train], new)
    yield number, measured("logistic rows", y[test], logistic_rows, both, y[train], both_new)
    yield number, measured("HitsClassifier", y[test], hits_proba, S, y[train], R)
    options = {"direction": "both", "reverse": B}
    yield number, measured("both directions", y[test], hits_proba, S, y[train], R, **options)


def all_rows(only, n_splits):
    """Yield the rows of the table, set by set."""

    def chosen(name):
        return not only or name in only

    if os.environ.get("MERCERLESS_DATA"):
        for name, K, K_test, labels, labels_test in similarity_sets():
            if chosen(name):
                y = np.unique(np.concatenate([labels, labels_test]), return_inverse=True)[1]
                y, truth = y[: len(K)], y[len(K) :]
                for number, (learner, *figures) in on_similarities(K, K_test, y, truth):
                    yield [name, number, learner, *figures]
    for name, links, y in graphs():
        if chosen(name):
            splitter = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0)
            found = [list(on_links(links, y, *split)) for split in splitter.split(y, y)]
            for same in zip(*found):
                figures = np.mean([figures for _, (_, *figures) in same], axis=0)
                yield [name, same[0][0], same[0][1][0], *figures]


def main():
    """Run all sets and write the table; rows of sets that are not run stay."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="names of sets")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # items without links
    rows = []
    for name, number, learner, accuracy, loss, seconds in all_rows(
        arguments.only, arguments.splits
    ):
        rows.append(
            [name, str(number), learner, f"{accuracy:.2f}", f"{loss:.3f}", f"{seconds:.1f}"]
        )
        print(*rows[-1], flush=True)
    renewed = {row[0] for row in rows}
    if arguments.only and RESULTS.exists():
        with RESULTS.open(newline="") as file:
            earlier = list(csv.reader(file))[1:]
        rows = [row for row in earlier if row[0] not in renewed] + rows
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TITLES)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
