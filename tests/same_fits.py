"""Whether two commits give the same models: small fits of every estimator, compared on one machine.

``python tests/same_fits.py REV`` checks REV out beside this tree, lets each run its own copy of this script, and
compares what both predict. It compares commits; numbers stored from one machine are no test on another. Each commit
lists its fits in its own words, so a renamed parameter changes the list and not the names of the fits.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


PRECOMPUTED = {"kernel": "precomputed"}
RNG = np.random.RandomState(0)
X, Z = RNG.normal(size=(90, 4)), RNG.normal(size=(20, 4))


def made():
    """Numbers, classes, weights, similarities, distances, words and directed similarities of the vectors, by name."""
    from mercerless.kernels import TL1

    rng = RNG
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=90)
    two = np.where(y > np.median(y), "b", "a")
    three = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    weight = rng.uniform(0.5, 2.0, 90)
    K, L = TL1(3.0)(X), TL1(3.0)(Z, X)
    D, E = np.sqrt(np.abs(X[:, None] - X).sum(2)), np.sqrt(np.abs(Z[:, None] - X).sum(2))
    words = ["".join(rng.choice(list("abcd"), rng.randint(2, 7))) for _ in range(40)]
    first = [word[0] for word in words]
    directed, to_new = (
        np.tanh(X @ rng.normal(size=(4, 4)) @ X.T / 4),
        np.tanh(Z @ rng.normal(size=(4, 4)) @ X.T / 4),
    )
    return SimpleNamespace(**locals())


def shared(a, b):
    """A similarity of words."""
    return len(set(a) & set(b)) - 0.5 * abs(len(a) - len(b))


def numbers(estimator, target, train=X, new=Z, **fit):
    """What an estimator predicts, as a function."""
    return lambda: estimator.fit(train, target, **fit).predict(new)


def scores(estimator, target, train=X, new=Z, method="decision_function", **fit):
    """What a method of a classifier gives, as a function."""
    return lambda: getattr(estimator.fit(train, target, **fit), method)(new)


def krein_fits(m, k, d):
    """Names and functions that give an array of predictions: the Krein models."""
    pre = PRECOMPUTED
    yield "krein ridge, grid", numbers(m.KreinRidge(**pre, random_state=0), d.y, d.K, d.L)
    yield "krein ridge, vectors", numbers(m.KreinRidge(k.TL1(3.0), random_state=0), d.y)
    yield (
        "krein ridge, weights",
        numbers(m.KreinRidge(k.TL1(3.0), random_state=0), d.y, sample_weight=d.weight),
    )
    yield (
        "krein ridge, sphere",
        numbers(
            m.KreinRidge(
                k.TL1(3.0), alpha_positive=0.1, alpha_negative=0.5, constraint=m.Sphere(2.0)
            ),
            d.y,
        ),
    )
    yield (
        "krein ridge, gradient",
        numbers(m.KreinRidge(k.TL1(3.0), search=m.GradientSearch(2, 5), random_state=0), d.y),
    )
    yield (
        "krein ridge, landmarks",
        numbers(m.KreinRidge(k.TL1(3.0), landmarks=30, random_state=0), d.y),
    )
    yield (
        "krein classifier",
        scores(
            m.KreinRidgeClassifier(**pre, random_state=0), d.three, d.K, d.L, method="predict_proba"
        ),
    )
    yield "krein svc", scores(m.KreinSVC(**pre), d.two, d.K, d.L)
    yield "krein svc, centered", scores(m.KreinSVC(k.TL1(3.0), center=True), d.three)
    yield "krein svr", numbers(m.KreinSVR(k.TL1(3.0), center=True), d.y)


def stack_fits(m, k, d):
    """The same of all stacks, features and the embedding."""
    pre = PRECOMPUTED
    yield (
        "similarity classifier",
        scores(
            m.SimilarityClassifier(random_state=0, **pre), d.three, d.K, d.L, method="predict_proba"
        ),
    )
    yield (
        "similarity classifier, distances",
        scores(
            m.SimilarityClassifier(random_state=0, **pre), d.two, d.D, d.E, method="predict_proba"
        ),
    )
    yield (
        "similarity classifier, words",
        lambda: (
            m.SimilarityClassifier(shared, cv=3, random_state=0)
            .fit(d.words, d.first)
            .predict_proba(d.words[:9])
        ),
    )
    yield (
        "similarity regressor",
        numbers(m.SimilarityRegressor(random_state=0, **pre), d.y, d.K, d.L),
    )
    yield (
        "similarity features",
        lambda: m.SimilarityFeatures(k.TL1(3.0), landmarks=9, random_state=0).fit_transform(X),
    )
    yield "similarity svc", scores(m.SimilaritySVC(**pre), d.two, d.K, d.L)
    yield (
        "similarity regressor, landmarks",
        numbers(
            m.SimilarityRegressor(k.TL1(3.0), landmarks=20, random_state=0),
            d.y,
            sample_weight=d.weight,
        ),
    )
    yield (
        "similarity regressor, several",
        numbers(m.SimilarityRegressor([k.TL1(3.0), "gaussian"], random_state=0), d.y),
    )
    yield (
        "directed classifier",
        scores(m.SimilarityClassifier(k.TL1(3.0), direction="both", random_state=0), d.three),
    )
    yield (
        "directed regressor, one way",
        numbers(
            m.SimilarityRegressor(direction="both", random_state=0, **pre),
            d.y,
            d.directed,
            d.to_new,
        ),
    )
    yield (
        "krein embedding",
        lambda: m.KreinEmbedding(k.TL1(3.0), 3, landmarks=30, random_state=0).fit(X).transform(Z),
    )


def other_fits(m, k, d):
    """The same of everything else."""
    pre = PRECOMPUTED
    yield (
        "asymmetric ridge",
        numbers(
            m.AsymmetricRidge(side="left", kind="similarity", **pre), d.y, d.directed, d.to_new
        ),
    )
    yield (
        "asymmetric classifier",
        scores(m.AsymmetricRidgeClassifier(), d.three, method="predict_proba"),
    )
    table_regressor = getattr(m, "TableRegressor", m.LABRegressor)  # its name before the split
    table_classifier = getattr(m, "TableClassifier", m.LABClassifier)
    yield "lab regressor", numbers(table_regressor(random_state=0), d.y)
    yield (
        "lab regressor, gaussian",
        numbers(m.LABRegressor(12, kernel="gaussian", random_state=0), d.y, sample_weight=d.weight),
    )
    yield (
        "lab classifier",
        scores(table_classifier(random_state=0), d.three, method="predict_proba"),
    )
    yield "dank classifier", scores(m.DANKClassifier(), d.two)
    yield "dank classifier, parts", scores(m.DANKClassifier(n_parts=2, random_state=0), d.three)
    yield "dank regressor", numbers(m.DANKRegressor(), d.y)
    yield (
        "dank regressor, gradient",
        numbers(m.DANKRegressor(search=m.GradientSearch(1, 25, 1e-5), random_state=0), d.y),
    )
    yield "hyper ridge", lambda: m.HyperRidge(random_state=0).fit(X, d.K).transform(Z)
    yield "hyper svr", lambda: m.HyperSVR(random_state=0).fit(X[:40], d.K[:40, :40]).transform(Z)
    yield "hyper classifier", scores(m.HyperClassifier(random_state=0), d.two)
    yield "hyper regressor", numbers(m.HyperRegressor(random_state=0), d.y)
    yield (
        "spectrum transformer",
        lambda: m.spectra.SpectrumTransformer("flip").fit(d.K).transform(d.L),
    )
    yield "dissimilarity kernel", lambda: m.spectra.DissimilarityKernel().fit(d.D).transform(d.E)


def fits():
    """Yield names and functions that give an array of predictions."""
    import mercerless as m
    from mercerless import kernels as k

    data = made()
    for family in (krein_fits, stack_fits, other_fits):
        yield from family(m, k, data)


def write(path):
    """Run all fits of this tree and keep what they predict."""
    results = {}
    for name, predict in fits():
        np.random.seed(0)  # noqa: NPY002 - what estimators draw from that are given no random_state
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results[name] = np.asarray(predict())
        print(f"  {name}", flush=True)
    np.savez(path, **results)


def run(tree, path):
    """Let a checkout run its own copy of this script."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, str(tree / "tests" / "same_fits.py"), "--write", str(path)],
        env=environment,
        check=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="HEAD")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--rtol", type=float, default=1e-8)
    arguments = parser.parse_args()
    if arguments.write:
        return write(arguments.write)
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "tree"
        subprocess.run(
            ["git", "worktree", "add", "--detach", str(other), arguments.revision],
            cwd=ROOT,
            check=True,
        )
        try:
            run(other, Path(folder) / "before.npz")
            run(ROOT, Path(folder) / "after.npz")
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(other)], cwd=ROOT, check=True
            )
        before, after = np.load(Path(folder) / "before.npz"), np.load(Path(folder) / "after.npz")
        different = sorted(set(before.files) - set(after.files))
        print(
            "".join(
                f"      new  {name}\n" for name in sorted(set(after.files) - set(before.files))
            ),
            end="",
        )
        for name in sorted(set(before.files) & set(after.files)):
            gap = np.abs(before[name] - after[name]).max() / max(np.abs(before[name]).max(), 1e-300)
            print(f"{gap:9.1e}  {name}")
            different += [name] * (not gap <= arguments.rtol)
    print(
        f"{len(after.files)} fits, {len(different)} differ"
        + "".join(f"\n  {name}" for name in different)
    )
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
