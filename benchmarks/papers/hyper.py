"""Tables 1, 2, 3 and Figures 2, 3 of Liu et al. (2021), and the extension of similarities, beside the paper's numbers.

    MERCERLESS_DATA=... python benchmarks/papers/hyper.py table1 [--full] [--sets heart sonar]
    MERCERLESS_DATA=... python benchmarks/papers/hyper.py table2 [--full] [--sets heart sonar]
    MERCERLESS_DATA=... python benchmarks/papers/hyper.py table3 [--full] [--sets ijcnn1] [--jobs 2]
    MERCERLESS_DATA=... python benchmarks/papers/hyper.py table3_parts [--rows 2500] [--sets ijcnn1]
    MERCERLESS_DATA=... python benchmarks/papers/hyper.py figure2 [--full]
    MERCERLESS_DATA=... python benchmarks/papers/hyper.py figure3 [--full]
    MERCERLESS_DATA=... python benchmarks/papers/hyper.py extension [--full]
    MERCERLESS_DATA=... python benchmarks/papers/hyper.py regression [--sets yacht]
    python benchmarks/papers/hyper.py draw

Table 1 learns a known kernel from its matrix on 40 % of the rows; table 2 learns one from labels; table 3 does so for
large sets, and ``table3_parts`` has all of its cells on fewer rows. The reduced runs have fewer splits, sets and rows;
--full is the paper's protocol (10 splits, six sets, 232,405 rows of covtype). `extension` compares ways of extending
similarities to new items: relative errors of test x train and test x test, parameters by inner validation, mean of five
splits (--splits); `regression` compares the regressor with tuned Gaussian machines. Accuracies are in per cent.

Results go into results/hyper_<part>.csv beside this file, row by row: a run replaces the rows it measures.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from dank_rivals import AlignedMachine, BayesianMKL, DistributedBMKL
from hyper_rivals import AlignmentClassifier, BilinearExtension, IndefiniteMKL, NearestExtension
from paper_sets import load
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_wine, make_friedman1
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from mercerless import DANKClassifier, HyperClassifier, HyperRegressor, HyperRidge, HyperSVR
from mercerless.kernels import Gaussian, GaussianHyper

HERE = Path(__file__).parent
SMALL = ("fertility", "wine", "sonar", "heart")
ALL = ("fertility", "australian", "wine", "sonar", "heart", "guide1")


def paper(table):
    with open(HERE / "hyper_paper.csv") as lines:
        return {
            (r["row"], r["column"]): float(r["value"])
            for r in csv.DictReader(lines)
            if r["table"] == table
        }


def keep(name, row, n_keys):
    """Print a finished row and put it into its table; its first columns tell which row it replaces."""
    print(
        "  ".join(f"{k}: {v:.3f}" if isinstance(v, float) else f"{k}: {v}" for k, v in row.items()),
        flush=True,
    )
    path = HERE / "results" / f"hyper_{name}.csv"
    path.parent.mkdir(exist_ok=True)
    row = {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in row.items()}
    keys = list(row)[:n_keys]
    rows = []
    if path.exists():
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
    places = [i for i, old in enumerate(rows) if all(old.get(k) == row[k] for k in keys)]
    if places:
        rows[places[0]] = row
    else:
        rows.append(row)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for one in rows for key in one)))
        writer.writeheader()
        writer.writerows(rows)


def splits_of(options, reduced):
    return options.splits or (10 if options.full else reduced)


def table_data(name):
    data = load(name)
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target)
    if name == "guide1":  # the paper takes the file of 4000 test rows
        X, y = np.asarray(data.data_test, dtype=float), np.asarray(data.target_test)
    return MinMaxScaler().fit_transform(X), y


def svm_on(K, K_new, y, y_new):
    """A machine on a given matrix, C by cross-validation of the labeled rows."""
    size = np.mean(np.abs(np.diagonal(K))) or 1.0
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": np.logspace(-2, 3, 6)}, cv=3).fit(
        K / size, y
    )
    return 100 * search.score(K_new / size, y_new)


def tuned_svm():
    return GridSearchCV(
        SVC(), {"C": 2.0 ** np.arange(-5, 11, 2), "gamma": 2.0 ** np.arange(-9, 6, 2)}, cv=5
    )


def table1(options):
    splits = splits_of(options, 2)
    for kind in ("gaussian", "log"):
        accuracy, rmse = paper(f"1-{kind}"), paper(f"1-{kind}-rmse")
        for name in options.sets or (ALL if options.full else SMALL):
            X, y = table_data(name)
            scale = np.sqrt(X.var(axis=0).sum())
            known = Gaussian(scale) if kind == "gaussian" else log_kernel
            for method, make in learners(kind):
                if options.methods and method not in options.methods:
                    continue
                scores = [table1_split(X, y, known, make, seed) for seed in range(splits)]
                test, root, relative, new = np.mean(scores, axis=0)
                keep(
                    "table1",
                    {
                        "kernel": kind,
                        "data": name,
                        "method": method,
                        "splits": splits,
                        "accuracy_test": test,
                        "paper_accuracy": accuracy.get((method, name), ""),
                        "accuracy_unlabeled": new,
                        "root_error": root,
                        "relative_error": relative,
                        "paper_rmse": rmse.get((method, name), ""),
                    },
                    3,
                )


def log_kernel(X, Y=None):
    """-log(1 + |x - y|), the paper's indefinite example."""
    Y = X if Y is None else Y
    squared = np.maximum((X**2).sum(1)[:, None] + (Y**2).sum(1) - 2 * X @ Y.T, 0.0)
    return -np.log1p(np.sqrt(squared))


def learners(kind):
    yield "majority", "majority"
    yield "known", None
    if kind == "gaussian":  # gives exactly zero on the log kernel
        yield (
            "nonnegative",
            lambda seed: HyperRidge("gaussian", nonnegative=True, landmarks=300, random_state=seed),
        )
    yield (
        "ridge",
        lambda seed: HyperRidge("gaussian", fit_intercept=True, random_state=seed, landmarks=300),
    )
    yield (
        "svr",
        lambda seed: HyperSVR(
            "gaussian", epsilon=0.01, random_state=seed, landmarks=150, max_iter=500
        ),
    )
    yield "tensor", lambda seed: HyperRidge("tensor", random_state=seed)


def table1_split(X, y, known, make, seed):
    """Accuracy on test rows, root and relative error on test pairs, accuracy on unlabeled rows."""
    labeled, rest, y_labeled, y_rest = train_test_split(
        X, y, train_size=0.4, stratify=y, random_state=seed
    )
    unlabeled, test, y_unlabeled, y_test = train_test_split(
        rest, y_rest, test_size=1 / 3, random_state=seed
    )
    if make == "majority":
        constant = DummyClassifier().fit(labeled, y_labeled)
        of_test = constant.score(test, y_test)
        return 100 * of_test, np.nan, np.nan, 100 * constant.score(unlabeled, y_unlabeled)
    S, truth = known(labeled), known(test)
    kernel = known if make is None else make(seed).fit(labeled, S).kernel_
    K, gap = kernel(labeled), kernel(test) - truth
    return (
        svm_on(K, kernel(test, labeled), y_labeled, y_test),
        np.sqrt(np.mean(gap**2)),
        np.linalg.norm(gap) / np.linalg.norm(truth),
        svm_on(K, kernel(unlabeled, labeled), y_labeled, y_unlabeled),
    )


def table2(options):
    published, splits = paper("2"), splits_of(options, 3)
    methods = {
        "majority": lambda seed: DummyClassifier(),
        "SVM-CV": lambda seed: tuned_svm(),
        "BMKL": lambda seed: BayesianMKL(),
        "RF": lambda seed: AlignedSearch(),
        "alignment": lambda seed: AlignmentClassifier(),
        "uniform": lambda seed: AlignmentClassifier(weights="uniform"),
        "MIKL": lambda seed: IndefiniteMKL(),
        "ridge-gaussian": lambda seed: HyperClassifier(random_state=seed),
        "svr-gaussian": lambda seed: HyperClassifier(HyperSVR("gaussian"), random_state=seed),
        "ridge-wishart": lambda seed: HyperClassifier(
            HyperRidge("wishart", landmarks=200), random_state=seed
        ),
        "svr-wishart": lambda seed: HyperClassifier(
            HyperSVR("wishart", landmarks=100), random_state=seed
        ),
        "ridge-gaussian-krein": lambda seed: HyperClassifier(machine="krein", random_state=seed),
    }
    if not (options.full or options.methods):
        del methods["svr-wishart"]
    for name in options.sets or (ALL if options.full else SMALL):
        X, y = table_data(name)
        for method, make in methods.items():
            if options.methods and method not in options.methods:
                continue
            scores, start = [], time.process_time()
            for seed in range(splits):
                A, B, a, b = train_test_split(X, y, train_size=0.4, stratify=y, random_state=seed)
                scores.append(100 * make(seed).fit(A, a).score(B, b))
            keep(
                "table2",
                {
                    "data": name,
                    "method": method,
                    "splits": splits,
                    "accuracy": float(np.mean(scores)),
                    "deviation": float(np.std(scores)),
                    "paper": published.get((method, name), ""),
                    "cpu_seconds": time.process_time() - start,
                },
                2,
            )


class AlignedSearch(ClassifierMixin, BaseEstimator):
    """`AlignedMachine` with the width of the tuned Gaussian machine."""

    def fit(self, X, y):
        gamma = tuned_svm().fit(X, y).best_params_["gamma"]
        self.machine_ = AlignedMachine(gamma).fit(X, y)
        return self

    def predict(self, X):
        return self.machine_.predict(X)


def large_data(name, full, rows):
    """Training and test rows of Table 3, standardized, the first ``rows`` of each."""
    data = load(name)
    if name == "ijcnn1":
        X, y, Z, z = (
            np.asarray(a) for a in (data.data, data.target, data.data_test, data.target_test)
        )
    else:
        size = 232_405 if full else 60_000
        X, Z, y, z = train_test_split(
            np.asarray(data.data),
            np.asarray(data.target),
            train_size=size,
            test_size=size,
            random_state=0,
        )
    if name == "ijcnn1" and rows is not None:  # its rows are in an order
        chosen = np.random.RandomState(0).permutation(len(X))
        X, y = X[chosen], y[chosen]
        chosen = np.random.RandomState(1).permutation(len(Z))
        Z, z = Z[chosen], z[chosen]
    X, y, Z, z = X[:rows], y[:rows], Z[:rows], z[:rows]
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(Z), z


PARTS_OF = {"ijcnn1": (5, 10, 20), "covtype": (50, 100, 200)}


def table3_parts(options):
    """All cells of Table 3 on fewer rows (--rows): every number of parts, both losses, the nonnegative kernel, BMKL.

    One Gaussian hyper-kernel, with the width of the data, serves all; its penalty and C are chosen on 1000 rows.
    """
    published = paper("3-parts")
    for name in options.sets or PARTS_OF:
        X, y, Z, z = large_data(name, options.full, options.rows or 2500)
        Z, z = Z[:10_000], z[:10_000]
        hyper = GaussianHyper(float(np.sqrt(X.shape[1])))
        base = {"landmarks": 300, "tol": 1e-4, "random_state": 0}
        few = slice(0, 1000)
        ridge = HyperRidge(hyper, target="classes", cv=3, **base).fit(X[few], y[few])
        alpha = ridge.alpha_
        stages = {"machine": "linear", "n_components": 300, "max_samples": None, "random_state": 0}
        tuned = HyperClassifier(HyperRidge(hyper, alpha=alpha, **base), cv=3, **stages)
        C = tuned.fit(X[few], y[few]).C_
        for n_parts in PARTS_OF[name]:
            size = len(X) / n_parts
            learners = {
                "nonnegative": HyperRidge(hyper, alpha=alpha, nonnegative=True, **base),
                "ridge": HyperRidge(hyper, alpha=alpha, **base),
                "svr": HyperSVR(hyper, C=0.5 / (alpha * size**2), max_iter=200, **base),
            }
            models = {"majority": DummyClassifier(), "BMKL": DistributedBMKL(n_parts)}
            for method, learner in learners.items():
                learner.set_params(n_parts=n_parts)
                models[method] = HyperClassifier(learner, C=C, **stages)
            for method, model in models.items():
                if options.methods and method not in options.methods:
                    continue
                start = time.process_time()
                score = 100 * model.fit(X, y).score(Z, z)
                keep(
                    "table3_parts",
                    {
                        "data": name,
                        "parts": n_parts,
                        "method": method,
                        "rows": len(X),
                        "test_rows": len(Z),
                        "accuracy": score,
                        "cpu_seconds": time.process_time() - start,
                        "paper_accuracy": published.get(
                            (f"{method}-accuracy", f"{name}-{n_parts}"), ""
                        ),
                        "paper_seconds": published.get(
                            (f"{method}-seconds", f"{name}-{n_parts}"), ""
                        ),
                    },
                    3,
                )


def table3(options):
    published = paper("3")
    for name in options.sets or ("ijcnn1", "covtype"):
        X, y, Z, z = large_data(name, options.full, options.rows)
        learner = HyperRidge("gaussian", n_parts="auto", n_jobs=options.jobs)
        hyper = HyperClassifier(learner, n_components=800, random_state=0)
        # the kernel is learned from 10,000 rows, or as in the paper from all, in parts
        whole = clone(hyper).set_params(max_samples=None)
        methods = {"plain Gaussian Nystroem": None, "ridge": hyper, "ridge-all-rows": whole}
        if not (options.full or options.methods):
            del methods["ridge-all-rows"]
        for method, model in methods.items():
            if options.methods and method not in options.methods:
                continue
            start, wall = time.process_time(), time.perf_counter()
            model = model or nystroem_baseline(X, y)
            score = 100 * model.fit(X, y).score(Z, z)
            keep(
                "table3",
                {
                    "data": name,
                    "rows": len(X),
                    "test_rows": len(Z),
                    "method": method,
                    "accuracy": score,
                    "cpu_seconds": time.process_time() - start,
                    "wall_seconds": time.perf_counter() - wall,
                    "paper_accuracy": published.get((f"{method[:5]}-accuracy", name), ""),
                    "paper_seconds": published.get((f"{method[:5]}-seconds", name), ""),
                    "chosen": repr(getattr(model, "hyper_kernel_", "")).replace("\n", " "),
                },
                4,
            )


def nystroem_baseline(X, y):
    """The same features and machine with a Gaussian whose scale and C are tuned on 3000 rows."""
    rows = np.random.RandomState(0).permutation(len(X))[:3000]
    base = 1 / (X.shape[1] * X.var())
    grid = {"gamma": base * 4.0 ** np.arange(-2, 4), "C": [1.0, 10.0, 100.0]}
    best = GridSearchCV(SVC(), grid, cv=3).fit(X[rows], y[rows]).best_params_
    return make_pipeline(
        Nystroem(gamma=best["gamma"], n_components=800, random_state=0),
        LinearSVC(C=best["C"], dual=False, tol=1e-3),
    )


def all_pairs(items):
    """All unordered pairs of items."""
    first, second = np.triu_indices(len(items))
    return np.stack([items[first], items[second]], axis=1)


def random_pairs(items, n_pairs, rng):
    """Distinct unordered pairs, drawn uniformly from all ordered ones."""
    first, second = np.triu_indices(len(items))
    weight = np.where(first == second, 1.0, 2.0) / len(items) ** 2
    chosen = (
        rng.choice(len(first), n_pairs, replace=False, p=weight)
        if n_pairs < len(first)
        else slice(None)
    )
    return np.stack([items[first[chosen]], items[second[chosen]]], axis=1)


def figure2(options):
    """Approximation of the hyper-kernel matrix of heart: the paper's grid of items against random pairs."""
    X, _ = table_data("heart")
    m, splits = 108 if options.full else 60, splits_of(options, 3)
    hyper = GaussianHyper(np.sqrt(X.var(axis=0).sum()))
    for n_items in (2, 4, 6, 8, 10, 12):
        for n_parts in (1, 2, 4, 8):
            scores = {"grid": [], "random pairs": []}
            seconds = {"grid": 0.0, "random pairs": 0.0}
            for seed in range(splits):
                rng = np.random.RandomState(seed)
                items = X[rng.permutation(len(X))[:m]]
                pairs = all_pairs(items)
                K = hyper(pairs)
                for method, errors in scores.items():
                    start = time.process_time()
                    # every part approximates the whole matrix from its own centers; the parts are averaged
                    total = np.zeros_like(K)
                    for part in np.array_split(rng.permutation(m), n_parts):
                        chosen = part[:n_items]
                        count = len(chosen) * (len(chosen) + 1) // 2
                        centers = (
                            all_pairs(items[chosen])
                            if method == "grid"
                            else random_pairs(items[part], count, rng)
                        )
                        C = hyper(pairs, centers)
                        total += (
                            C
                            @ np.linalg.pinv(hyper(centers), rcond=1e-10, hermitian=True)
                            @ C.T
                            / n_parts
                        )
                    errors.append(np.linalg.norm(total - K) / np.linalg.norm(K))
                    seconds[method] += time.process_time() - start
            for method, errors in scores.items():
                keep(
                    "figure2",
                    {
                        "M": n_items,
                        "v": n_parts,
                        "pairs": n_items * (n_items + 1) // 2,
                        "method": method,
                        "error": float(np.mean(errors)),
                        "deviation": float(np.std(errors)),
                        "cpu_seconds": seconds[method],
                    },
                    4,
                )


def figure3(options):
    """DANK's matrix extended to test digits: the reciprocal neighbor rule, the inductive rule, hyper-kernels."""
    data, splits = load("mnist"), splits_of(options, 3)
    X, y = (
        np.asarray(data.data, dtype=float).reshape(len(data.data), -1) / 255,
        np.asarray(data.target),
    )
    Z, z = (
        np.asarray(data.data_test, dtype=float).reshape(len(data.data_test), -1) / 255,
        np.asarray(data.target_test),
    )
    for pair in ((1, 9), (2, 7), (4, 6)):
        A, a = X[np.isin(y, pair)], y[np.isin(y, pair)]
        B, b = Z[np.isin(z, pair)], z[np.isin(z, pair)]
        gamma = 1 / (2 * A.var(axis=0).sum())
        for size in (10, 20, 30, 40, 50) if options.full else (10, 30, 50):
            scores = {}
            for seed in range(splits):
                T, _, t, _ = train_test_split(A, a, train_size=size, stratify=a, random_state=seed)
                kernel = Gaussian(float(np.sqrt(0.5 / gamma)))
                scores.setdefault("SVC", []).append(
                    SVC(kernel=kernel, C=10.0).fit(T, t).score(B, b)
                )
                for rule in ("reciprocal", "inductive", "hyper"):
                    model = DANKClassifier(kernel, C=10.0, out_of_sample=rule, random_state=seed)
                    scores.setdefault(f"DANK, {rule}", []).append(model.fit(T, t).score(B, b))
            for method, values in scores.items():
                keep(
                    "figure3",
                    {
                        "digits": f"{pair[0]} and {pair[1]}",
                        "rows": size,
                        "method": method,
                        "accuracy": 100 * float(np.mean(values)),
                        "deviation": 100 * float(np.std(values)),
                    },
                    3,
                )


def similarities(full):
    """Items as vectors and a similarity between them that no function of the vectors gives away at once."""
    rng = np.random.default_rng(0)
    size = 300 if full else 200
    wine = StandardScaler().fit_transform(load_wine(return_X_y=True)[0])
    cancer, labels = load_breast_cancer(return_X_y=True)
    rows = rng.permutation(len(cancer))[:size]
    cancer, labels = (
        PCA(8, random_state=0).fit_transform(StandardScaler().fit_transform(cancer))[rows],
        labels[rows],
    )
    apart = np.abs(wine[:, None] - wine[None]).sum(axis=2)
    yield "TL1 (wine)", wine, np.maximum(0.7 * wine.shape[1] - apart, 0.0)
    yield "log (wine)", wine, log_kernel(wine)
    ecg = load("dtw_ecg200")
    series = StandardScaler().fit_transform(
        np.asarray(ecg.X if "X" in ecg else ecg.data, dtype=float)
    )
    yield "DTW (ecg200)", series, np.exp(-np.asarray(ecg.D) / np.median(ecg.D))
    strings, features = random_strings(rng, size)
    yield "edit distance (strings)", features, edit_similarity(strings)
    metric = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1).fit(cancer, labels)
    seen = metric.transform(cancer)
    squared = (seen - seen.T) ** 2 + 0.05 * ((cancer[:, None] - cancer[None]) ** 2).sum(axis=2)
    yield "learned metric (breast cancer)", cancer, np.exp(-squared / np.median(squared))
    for noise in (0.1, 0.3):
        S = np.exp(-np.linalg.norm(cancer[:, None] - cancer[None], axis=2) / 4)
        ranks = np.argsort(np.argsort(S, axis=1), axis=1) / len(S)
        E = noise * rng.normal(size=S.shape) * ranks.std()
        yield f"ranks, noise {noise} (breast cancer)", cancer, (ranks + ranks.T + E + E.T) / 2


def random_strings(rng, size):
    """Strings that descend from twelve ancestors, and their counts of single letters and pairs."""
    letters = np.array(list("acgt"))
    ancestors = [rng.integers(4, size=40) for _ in range(12)]
    strings = []
    for i in range(size):
        word = ancestors[i % 12].copy()
        changed = rng.random(len(word)) < rng.uniform(0.05, 0.5)
        word[changed] = rng.integers(4, size=changed.sum())
        strings.append("".join(letters[word[rng.integers(8) :]]))
    grams = [a + b for a in "acgt" for b in "acgt"] + list("acgt")
    counts = np.array(
        [[sum(s[i : i + len(g)] == g for i in range(len(s))) for g in grams] for s in strings],
        float,
    )
    return strings, StandardScaler().fit_transform(counts)


def edit_similarity(strings):
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    return np.asarray(
        cdist(strings, strings, scorer=Levenshtein.normalized_similarity), dtype=float
    )


def errors_of(values_new, values_pair, S, test, train):
    one = np.linalg.norm(values_new - S[np.ix_(test, train)]) / np.linalg.norm(
        S[np.ix_(test, train)]
    )
    two = np.linalg.norm(values_pair - S[np.ix_(test, test)]) / np.linalg.norm(
        S[np.ix_(test, test)]
    )
    return one, two


def extension(options):
    methods = {
        "tensor": lambda seed: HyperRidge(random_state=seed),
        "tensor, 50 % known": lambda seed: HyperRidge(random_state=seed),
        "bilinear ridge": lambda seed: BilinearExtension(random_state=seed),
        "nearest neighbor": lambda seed: NearestExtension(),
        "gaussian hyper-ridge": lambda seed: HyperRidge(
            "gaussian", fit_intercept=True, random_state=seed
        ),
    }
    for name, X, S in similarities(options.full):
        S = (S + S.T) / 2
        for method, make in methods.items():
            errors, start = [], time.process_time()
            for seed in range(options.splits or 5):
                train, test = train_test_split(np.arange(len(X)), train_size=0.7, random_state=seed)
                Y = S[np.ix_(train, train)].copy()
                if "known" in method:
                    gone = np.triu(np.random.default_rng(seed).random(Y.shape) < 0.5, 1)
                    Y[gone | gone.T] = np.nan
                model = make(seed).fit(X[train], Y)
                pair = (
                    model.kernel_(X[test])
                    if isinstance(model, HyperRidge)
                    else model.similarities(X[test])
                )
                errors.append(errors_of(model.transform(X[test]), pair, S, test, train))
            one, two = np.mean(errors, axis=0)
            keep(
                "extension",
                {
                    "similarity": name,
                    "method": method,
                    "test_train": float(one),
                    "test_test": float(two),
                    "cpu_seconds": time.process_time() - start,
                },
                2,
            )


def regression_data(name):
    if name == "friedman1":
        X, y = make_friedman1(500, 10, noise=1.0, random_state=0)
    elif name == "steep":  # one direction matters, exponentially
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(400, 6))
        y = np.exp(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=400)
    else:
        data = load(name)
        X, y = np.asarray(data.data, dtype=float), np.asarray(data.target, dtype=float).ravel()
    rows = np.random.RandomState(0).permutation(len(X))[:500]
    return X[rows], y[rows]


def regression(options):
    """Not in the paper: R^2 of the learned kernel on at most 500 rows, with tuned Gaussian machines beside it."""
    splits = splits_of(options, 2)
    gammas = np.logspace(-2, 1, 7)
    for name in options.sets or (
        "yacht",
        "mpg",
        "housing",
        "bodyfat",
        "airfoil",
        "cpusmall",
        "friedman1",
        "steep",
    ):
        X, y = regression_data(name)
        gamma = gammas / X.shape[1]
        methods = {
            "SVR, tuned": GridSearchCV(
                SVR(epsilon=0.05), {"C": np.logspace(0, 3, 4), "gamma": gamma[::2]}
            ),
            "kernel ridge, tuned": GridSearchCV(
                KernelRidge(kernel="rbf"), {"alpha": np.logspace(-6, 1, 8), "gamma": gamma}
            ),
            "HyperRegressor": HyperRegressor(random_state=0),
        }
        for method, model in methods.items():
            if options.methods and method not in options.methods:
                continue
            scores, start, learned = [], time.process_time(), 0
            for seed in range(splits):
                A, B, a, b = train_test_split(X, y, train_size=0.6, random_state=seed)
                scaler, mean, spread = StandardScaler().fit(A), a.mean(), a.std()
                fitted = clone(model).fit(scaler.transform(A), (a - mean) / spread)
                scores.append(fitted.score(scaler.transform(B), (b - mean) / spread))
                learned += (
                    getattr(getattr(fitted, "hyper_kernel_", None), "pair_scale", np.inf) < np.inf
                )
            keep(
                "regression",
                {
                    "data": name,
                    "method": method,
                    "splits": splits,
                    "train_rows": len(A),
                    "r2": float(np.mean(scores)),
                    "worst": float(np.min(scores)),
                    "learned_chosen": learned,
                    "cpu_seconds": time.process_time() - start,
                },
                2,
            )


def draw(options):
    """Figures 2 and 3 from their results, as results/hyper_figure2.png and results/hyper_figure3.png."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def table(name):
        with open(HERE / "results" / f"hyper_{name}.csv", newline="") as file:
            return list(csv.DictReader(file))

    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), sharey=True, layout="constrained")
    rows = table("figure2")
    for ax, parts in zip(axes, ("1", "2", "4", "8")):
        for method in ("grid", "random pairs"):
            mine = [row for row in rows if row["v"] == parts and row["method"] == method]
            ax.semilogy(
                [int(row["pairs"]) for row in mine],
                [float(row["error"]) for row in mine],
                "o-",
                label=method,
            )
        ax.set(title=f"{parts} part{'s' if parts != '1' else ''}", xlabel="pairs per part")
    axes[0].set_ylabel("relative error of the matrix")
    axes[0].legend()
    figure.savefig(HERE / "results" / "hyper_figure2.png", dpi=100)

    rows = table("figure3")
    digits = list(dict.fromkeys(row["digits"] for row in rows))
    figure, axes = plt.subplots(1, len(digits), figsize=(12, 3.6), layout="constrained")
    for ax, pair in zip(axes, digits):
        for method in dict.fromkeys(row["method"] for row in rows):
            mine = [row for row in rows if row["digits"] == pair and row["method"] == method]
            ax.errorbar(
                [int(row["rows"]) for row in mine],
                [float(row["accuracy"]) for row in mine],
                [float(row["deviation"]) for row in mine],
                fmt="o-",
                capsize=3,
                label=method,
            )
        ax.set(title=f"digits {pair}", xlabel="training rows")
    axes[0].set_ylabel("test accuracy, %")
    axes[-1].legend(fontsize=8, loc="lower right")
    figure.savefig(HERE / "results" / "hyper_figure3.png", dpi=100)


PARTS = {
    part.__name__: part
    for part in (
        table1,
        table2,
        table3,
        table3_parts,
        figure2,
        figure3,
        extension,
        regression,
        draw,
    )
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument(
        "--splits", type=int, help="random splits of the data; 10 with --full, fewer without"
    )
    parser.add_argument("--methods", nargs="+", help="only these rows of a table")
    parser.add_argument(
        "--rows", type=int, help="at most so many rows to train and to test in table3"
    )
    parser.add_argument("--jobs", type=int, help="processes of table3")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
