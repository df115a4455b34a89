"""Metamorphic properties of every public estimator, on vectors and on matrices: one table, one driver.

A property changes data that should not matter, or that should matter in a known way, and compares what models say
about new items. `make test` runs a seeded sample of the pairs of property and estimator, `make test-all` all of them.
"""

import contextlib
import copy
import inspect
import pickle
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

import mercerless
from mercerless import UselessModelWarning

pytestmark = pytest.mark.filterwarnings("ignore:.*is worse than a constant")
N, N_NEW = 72, 15
RNG = np.random.RandomState(7)
X, Z = RNG.normal(size=(N, 4)), RNG.normal(size=(N_NEW, 4))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
LABELS = np.digitize(NUMBERS, np.quantile(NUMBERS, [0.33, 0.67]))
FOLDS = np.argsort(np.argsort(NUMBERS)) % 5  # every class in every fold
SMALL = {  # what makes a fit quick
    "LAB": {"n_support": 10, "max_iter": 40},
    "Hyper": {"landmarks": 20},
    "KreinSV": {"C": 1.0, "tol": 1e-9},  # no folds, and little is left to libsvm
    "Table": {"max_iter": 40},
    "DANK": {"tol": 1e-8},
}


# ------------------------------------------------------------------------------------------------ estimators
@dataclass(frozen=True)
class Case:
    """An estimator and the form in which it gets items: vectors, similarities, distances or sparse hits."""

    cls: type
    form: str

    def __str__(self):
        return f"{self.cls.__name__}-{self.form}"

    @property
    def parameters(self):
        return inspect.signature(self.cls).parameters

    @property
    def is_classifier(self):
        return is_classifier(self.cls())

    @property
    def is_regressor(self):
        return is_regressor(self.cls())

    @property
    def takes_weights(self):
        return has_fit_parameter(self.cls, "sample_weight")

    @property
    def is_automatic(self):
        automatic = ("SimilarityC", "SimilarityR", "Table", "Hits")
        return self.cls.__name__.startswith(automatic)

    @property
    def target(self):
        takes_classes = self.is_classifier or self.cls.__name__ in ("HyperRidge", "HyperSVR")
        return LABELS if takes_classes else NUMBERS

    def build(self, **changes):
        prefix = [name for name in SMALL if self.cls.__name__.startswith(name)]
        small = SMALL[prefix[0]] if prefix else {}
        chosen = {name: value for name, value in small.items() if name in self.parameters}
        if "random_state" in self.parameters:
            chosen["random_state"] = 0
        if self.form in ("similarities", "distances"):
            chosen["kernel"] = "precomputed"
        if self.form == "distances" and "kind" in self.parameters:
            chosen["kind"] = "distance"
        return self.cls(**chosen | changes)

    def compare(self, new, train):
        """What `fit` or `predict` gets of these vectors."""
        if self.form == "vectors":
            return new
        distances = cdist(new, train)
        if self.form == "distances":
            return distances
        similarities = np.exp(-(distances**2) / 8.0)
        if self.form == "hits":
            return csr_array(np.where(similarities > 0.3, similarities, 0.0))
        return similarities


def takes_matrices(cls):
    if "kernel" not in inspect.signature(cls).parameters:
        return False
    return cls(kernel="precomputed").__sklearn_tags__().input_tags.pairwise


def public_values():
    """What the public names stand for, without those that need a package that is missing."""
    for name in mercerless.__all__:
        with contextlib.suppress(ImportError):
            yield getattr(mercerless, name)


def public_estimators():
    for cls in filter(inspect.isclass, public_values()):
        if issubclass(cls, BaseEstimator) and hasattr(cls, "fit"):
            yield cls


def all_cases():
    for cls in public_estimators():
        name = cls.__name__
        if name.startswith("Hits"):
            yield Case(cls, "hits")
            continue
        yield Case(cls, "vectors")
        if takes_matrices(cls):
            yield Case(cls, "similarities")
        if name in ("SimilarityClassifier", "SimilarityRegressor"):
            yield Case(cls, "distances")


CASES = list(all_cases())


def output(model, rows):
    """The finest numbers that a model gives for rows."""
    for method in ("predict_proba", "decision_function", "predict", "transform"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(rows))
    raise AssertionError(f"{model} gives nothing")


def fit(case, rows=X, y=None, convert=lambda data: data, fit_params=None, **changes):
    y = case.target if y is None else y
    return case.build(**changes).fit(convert(case.compare(rows, rows)), y, **fit_params or {})


def answers(case, rows=X, y=None, new=Z, convert=lambda data: data, **options):
    """What the estimator, fitted on these rows, says about new items."""
    model = fit(case, rows, y, convert, **options)
    return output(model, convert(case.compare(new, rows)))


@cache
def expected(case):
    return answers(case)


@cache
def expected_with_folds(case):
    return answers(case, **folds(case))


def folds(case, rows=slice(None)):
    """The same folds for the same rows, if the estimator makes any."""
    return {"cv": PredefinedSplit(FOLDS[rows])} if "cv" in case.parameters else {}


def close(actual, wanted, tolerance=1e-6):
    """Whether answers differ by less than a share of their spread."""
    spread = np.std(wanted) + 1e-300
    assert actual.shape == wanted.shape
    difference = np.abs(actual - wanted).max() / spread
    assert difference <= tolerance, f"{difference:.1e} of the spread, allowed {tolerance:.0e}"


# ------------------------------------------------------------------------------------------------ the table
PROPERTIES = {}
# (property, beginning of the class's name): why the method does not have it, or a tolerance and why.
# Tolerances of None are properties that the method does not have.
LIBSVM = "libsvm stops at a tolerance"
C_OF_ROWS = "weights multiply C, as in scikit-learn"
COUNTED = "neighbors, folds and calibration count rows; weights enter the losses"
EXCEPTIONS = {
    ("order_of_items", "SimilarityFeatures"): (None, "its features are the items"),
    ("order_of_items", "SimilarityC"): (None, "folds are dealt by the place of items"),
    ("order_of_items", "SimilarityR"): (None, "folds are dealt by the place of items"),
    ("order_of_items", "Hits"): (None, "folds are dealt by the place of items"),
    ("unit_of_comparisons", "SimilarityC"): (1e-3, "models are fitted in single precision"),
    ("unit_of_comparisons", "SimilarityR"): (1e-3, "models are fitted in single precision"),
    ("a_far_item_in_training", "Hits"): (None, "an item without hits is announced"),
    ("distances_for_similarities", "SimilarityFeatures"): (None, "distances are features too"),
    ("order_of_items", "LAB"): (None, "support points are drawn from rows"),
    ("order_of_items", "TableC"): (None, "folds and trees are drawn from rows"),
    ("names_of_classes", "HyperClassifier"): (2e-3, LIBSVM),
    ("two_classes_exchanged", "HyperClassifier"): (2e-3, LIBSVM),
    ("sign_of_the_target", "HyperRegressor"): (2e-3, LIBSVM),
    ("unit_of_comparisons", "DANKR"): (1e-4, "the solver stops at a duality gap"),
    ("order_of_items", "DANKR"): (1e-3, "the solver stops at a duality gap"),
    ("order_of_columns", "SignedRandom"): (None, "frequencies are drawn per feature"),
    ("origin_of_features", "SignedRandom"): (None, "features have phases, their products do not"),
    ("whole_weights", "DANKR"): (None, "C is chosen on folds, and copies are in other folds"),
    ("a_constant_column", "SignedRandom"): (None, "frequencies are drawn per feature"),
    ("weights_are_relative", "KreinSV"): (None, C_OF_ROWS),
    ("weights_are_relative", "DANK"): (None, C_OF_ROWS),
    ("weights_are_relative", "SimilaritySVC"): (None, C_OF_ROWS),
    ("order_of_items", "HyperRi"): (None, "landmarks are drawn from rows"),
    ("order_of_items", "HyperS"): (None, "landmarks are drawn from rows"),
    ("container", "HyperRegressor"): (1e-2, LIBSVM),
    ("weights_are_relative", "Hits"): (1e-4, "models are fitted in single precision"),
    ("unit", "LAB"): (1e-3, "the descent of bandwidths stops at a tolerance"),
    ("sign_of_the_target", "DANK"): (1e-3, "the solver stops at a duality gap"),
    ("whole_weights", "SimilarityC"): (None, COUNTED),
    ("whole_weights", "SimilarityR"): (None, COUNTED),
    ("whole_weights", "Hits"): (None, COUNTED),
    ("whole_weights", "Table"): (None, COUNTED),
    ("sign_of_the_target", "Table"): (1e-3, "trees break ties by the sign"),
    ("order_of_columns", "TableEncoder"): (None, "its output has the order of the columns"),
    ("unit", "TableEncoder"): (None, "its output has the units of the columns"),
    ("origin_of", "TableEncoder"): (None, "its output has the units of the columns"),
    ("whole_weights", "LAB"): (None, "support points are drawn from rows"),
    ("whole_weights", "KreinRidgeClassifier"): (0.1, "the prior of the calibration counts rows"),
    ("whole_weights", "AsymmetricRidgeC"): (0.1, "the prior of the calibration counts rows"),
}


def holds_for(
    *, forms="vectors similarities distances hits", values=(None,), only=lambda case: True
):
    """Register a property for estimators, once per value."""

    def register(check):
        for value in values:
            name = check.__name__ if value is None else f"{check.__name__}-{value}"
            bound = check if value is None else partial(check, value=value)
            PROPERTIES[name] = (bound, lambda case: case.form in forms and only(case))
        return check

    return register


def exception(name, case):
    """Tolerance and reason of an exception, if this is one."""
    for (prefix, cls), allowed in EXCEPTIONS.items():
        if name.startswith(prefix) and case.cls.__name__.startswith(cls):
            return allowed
    return None


def tolerance(name, case, default):
    allowed = exception(name, case)
    return allowed[0] if allowed else default


supervised = lambda case: case.is_classifier or case.is_regressor  # noqa: E731
classifies = lambda case: case.is_classifier  # noqa: E731
regresses = lambda case: case.is_regressor  # noqa: E731
takes_weights = lambda case: case.takes_weights  # noqa: E731


# ------------------------------------------------------------------------------------------------ order and names
@holds_for()
def order_of_items(case):
    order = np.random.RandomState(1).permutation(N)
    actual = answers(case, X[order], case.target[order], **folds(case, order))
    close(actual, expected_with_folds(case), tolerance("order_of_items", case, 1e-6))


@holds_for()
def order_of_new_items(case):
    model, order = fit(case), np.random.RandomState(1).permutation(N_NEW)
    close(output(model, case.compare(Z[order], X)), expected(case)[order], 1e-9)


@holds_for()
def new_items_one_by_one(case):
    model = fit(case)
    single = [output(model, case.compare(Z[i : i + 1], X)) for i in range(N_NEW)]
    close(np.concatenate(single), expected(case), 1e-9)


@holds_for(forms="vectors similarities distances")
def a_far_new_item_beside_others(case):
    model = fit(case)
    new = np.vstack([Z, np.full((1, 4), 1e9)])
    close(output(model, case.compare(new, X))[:-1], expected(case), 1e-9)


@holds_for(forms="vectors")
def order_of_columns(case):
    order = [2, 0, 3, 1]
    close(
        answers(case, X[:, order], new=Z[:, order]),
        expected(case),
        tolerance("order_of_columns", case, 1e-6),
    )


NAMES = {
    "strings": ["zebra", "monkey", "ant"],
    "numbers": [30.0, -2.0, 1e9],
    "integers": [-7, 10, 3],
    "mixed case": ["a", "A", "aa"],
}


@holds_for(values=NAMES, only=classifies)
def names_of_classes(case, value):
    names = np.array(NAMES[value])
    model = fit(case, y=names[LABELS])
    assert sorted(names.tolist()) == model.classes_.tolist()
    actual = output(model, case.compare(Z, X))
    order = np.argsort(np.argsort(names))  # the column of each of our classes
    close(actual[:, order], expected(case), tolerance("names_of_classes", case, 1e-6))


@holds_for(only=classifies)
def two_classes_exchanged(case):
    y = (NUMBERS > np.median(NUMBERS)).astype(int)
    one, other = answers(case, y=y), answers(case, y=1 - y)
    close(
        other,
        one[:, ::-1] if one.ndim == 2 else -one,
        tolerance("two_classes_exchanged", case, 1e-6),
    )


@holds_for(forms="vectors similarities distances")
def names_of_items_and_columns(case):
    pd = pytest.importorskip("pandas")
    K, new = case.compare(X, X), case.compare(Z, X)
    index, columns = [f"i{i}" for i in range(N)], [f"c{j}" for j in range(K.shape[1])]
    if case.form != "vectors":
        columns = index
    y = pd.Series(case.target, index=index)
    model = case.build().fit(pd.DataFrame(K, index, columns), y)
    close(output(model, pd.DataFrame(new, columns=columns)), expected(case), 1e-9)
    with pytest.raises(ValueError):  # the same labels in another order
        case.build().fit(pd.DataFrame(K, index, columns), y.iloc[::-1])


# ------------------------------------------------------------------------------------------------ units
SCALES = ["1e-6", "1e5"]


@holds_for(values=SCALES, only=regresses)
def unit_of_the_target(case, value):
    factor = float(value)
    close(
        answers(case, y=factor * NUMBERS) / factor,
        expected(case),
        tolerance("unit_of_the_target", case, 1e-5),
    )


@holds_for(only=regresses)
def origin_of_the_target(case):
    close(
        answers(case, y=NUMBERS + 1000.0) - 1000.0,
        expected(case),
        tolerance("origin_of_the_target", case, 1e-5),
    )


@holds_for(only=regresses)
def sign_of_the_target(case):
    close(-answers(case, y=-NUMBERS), expected(case), tolerance("sign_of_the_target", case, 1e-5))


@holds_for(forms="vectors", values=SCALES)
def unit_of_all_features(case, value):
    factor = float(value)
    close(
        answers(case, factor * X, new=factor * Z), expected(case), tolerance("unit_of", case, 1e-5)
    )


@holds_for(forms="vectors")
def units_of_features(case):
    factor = np.array([1e-3, 1.0, 50.0, 1e4])
    close(answers(case, factor * X, new=factor * Z), expected(case), tolerance("unit", case, 1e-5))


@holds_for(forms="vectors")
def origin_of_features(case):
    shift = np.array([100.0, -5.0, 0.0, 1e4])
    close(
        answers(case, X + shift, new=Z + shift),
        expected(case),
        tolerance("origin_of_features", case, 1e-4),
    )


@holds_for(forms="similarities distances hits", values=SCALES)
def unit_of_comparisons(case, value):
    factor = float(value)
    scaled = answers(case, convert=lambda matrix: matrix * factor)
    if case.is_classifier or case.is_regressor:
        close(scaled, expected(case), tolerance("unit_of_comparisons", case, 1e-5))
    assert np.isfinite(scaled).all()


centers = lambda case: case.cls.__name__.startswith(("Krein", "Asymmetric"))  # noqa: E731


@holds_for(forms="similarities", only=centers)
def origin_of_similarities(case):
    """A constant added to all similarities changes no centered kernel."""
    actual = answers(case, convert=lambda matrix: matrix + 1000.0)
    close(actual, expected(case), tolerance("origin_of_similarities", case, 1e-4))


@holds_for(forms="vectors")
def a_constant_column(case):
    constant = np.full((N, 1), 3.0)
    actual = answers(case, np.hstack([X, constant]), new=np.hstack([Z, constant[:N_NEW]]))
    close(actual, expected(case), tolerance("a_constant_column", case, 1e-5))


@holds_for(forms="vectors", values=["copy", "id", "noise"])
def a_column_too_many(case, value):
    """It may cost accuracy, and does not destroy the model."""
    columns = {"copy": X[:, :1], "id": np.arange(N)[:, None], "noise": RNG.normal(size=(N, 1))}
    new = {
        "copy": Z[:, :1],
        "id": N + np.arange(N_NEW)[:, None],
        "noise": RNG.normal(size=(N_NEW, 1)),
    }
    rows, more = np.hstack([X, columns[value]]), np.hstack([Z, new[value]])
    model = fit(case, rows)
    assert np.isfinite(output(model, more)).all()
    if supervised(case):
        truth = np.sin(2 * Z[:, 0]) + Z[:, 1]
        if case.is_classifier:
            truth = np.digitize(truth, np.quantile(NUMBERS, [0.33, 0.67]))
        assert model.score(more, truth) > fit(case).score(Z, truth) - 0.35


@holds_for()
def one_ulp(case):
    moved = X * (1.0 + np.finfo(float).eps * RNG.choice([-1, 0, 1], X.shape))
    close(answers(case, moved), expected(case), 1e-2)


@holds_for()
def a_far_item_in_training(case):
    """Scales of features follow it, and it is only one item: models stay finite, and comparisons keep their sense."""
    rows = X.copy()
    rows[5] = 1e9 if case.form == "vectors" else 40.0
    actual = answers(case, rows)
    assert np.isfinite(actual).all()
    if supervised(case) and case.form in ("similarities", "hits"):
        left = np.delete(np.arange(N), 5)
        without = answers(case, X[left], case.target[left])
        correlation = np.corrcoef(actual.ravel(), without.ravel())[0, 1]
        assert correlation > 0.8, f"the others' predictions are lost: correlation {correlation:.2f}"


@holds_for(only=lambda case: case.is_automatic)
def two_default_fits_are_one(case):
    close(answers(case, random_state=case.parameters["random_state"].default), expected(case), 0.0)


# ------------------------------------------------------------------------------------------------ weights
@holds_for(only=takes_weights)
def weights_are_relative(case):
    weight = RNG.uniform(0.5, 2.0, N)
    one, other = (answers(case, fit_params={"sample_weight": w}) for w in (weight, 1000.0 * weight))
    close(other, one, tolerance("weights_are_relative", case, 1e-5))


@holds_for(only=takes_weights)
def equal_weights_are_none(case):
    close(answers(case, fit_params={"sample_weight": np.ones(N)}), expected(case), 1e-9)


@holds_for(only=takes_weights)
def weight_zero_is_absence(case):
    keep = np.arange(N) % 6 != 0
    absent = answers(case, X[keep], case.target[keep], **folds(case, keep))
    weighted = answers(case, fit_params={"sample_weight": keep.astype(float)}, **folds(case))
    close(weighted, absent, tolerance("weight_zero_is_absence", case, 1e-4))


@holds_for(only=takes_weights)
def whole_weights_are_repetition(case):
    times = np.random.RandomState(3).randint(1, 4, N)
    rows = np.repeat(np.arange(N), times)
    repeated = answers(case, X[rows], case.target[rows], **folds(case, rows))
    weighted = answers(case, fit_params={"sample_weight": times}, **folds(case))
    close(weighted, repeated, tolerance("whole_weights_are_repetition", case, 1e-3))


# ------------------------------------------------------------------------------------------------ containers
def read_only(data):
    data = np.array(data)
    data.flags.writeable = False
    return data


def strided(data):
    wide = np.zeros((len(data), 2 * data.shape[1]))
    wide[:, ::2] = data
    return wide[:, ::2]


def frame(data, **options):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(data, columns=[f"c{j}" for j in range(data.shape[1])], **options)


def nullable(data):
    return frame(data).astype("Float64")


def polars(data):
    return pytest.importorskip("polars").DataFrame(
        data, schema=[f"c{j}" for j in range(data.shape[1])]
    )


def arrow(data):
    pa = pytest.importorskip("pyarrow")
    return pa.table({f"c{j}": data[:, j] for j in range(data.shape[1])})


CONTAINERS = {
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "big-endian": lambda data: data.astype(">f8"),
    "float32": lambda data: data.astype(np.float32),
    "longdouble": lambda data: data.astype(np.longdouble),
    "lists": lambda data: data.tolist(),
    "objects": lambda data: data.astype(object),
    "frame": frame,
    "odd index": lambda data: frame(data, index=np.arange(len(data))[::-1] + 9),
    "nullable": nullable,
    "polars": polars,
    "arrow": arrow,
}


@holds_for(forms="vectors similarities distances", values=CONTAINERS)
def container(case, value):
    convert = CONTAINERS[value]
    if case.form != "vectors" and value in ("frame", "odd index", "nullable", "polars", "arrow"):
        pytest.skip("columns of a matrix are named like its items: names_of_items_and_columns")
    default = 5e-2 if value == "float32" else 1e-6
    close(answers(case, convert=convert), expected(case), tolerance("container", case, default))


@holds_for(forms="vectors similarities distances", values=["int64", "int8", "uint16"])
def whole_numbers(case, value):
    if str(case).startswith("KreinSV") and case.form == "similarities":
        pytest.skip("libsvm takes ten seconds for many equal items")
    train, new = (np.clip(np.round(2 * rows) + 3, 0, 5) for rows in (X, Z))
    if case.form == "similarities":
        train, new = train @ train.T, new @ train.T
    elif case.form == "distances":
        train, new = (np.round(10 * cdist(rows, train)) for rows in (train, new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of own similarities that differ
        one, other = (
            output(case.build().fit(train.astype(dtype), case.target), new.astype(dtype))
            for dtype in (value, float)
        )
    close(one, other, 1e-9)


@holds_for(forms="vectors similarities distances")
def new_items_in_another_container(case):
    model = fit(case)
    for name in ("Fortran", "strided", "big-endian", "longdouble", "lists", "objects", "read-only"):
        close(output(model, CONTAINERS[name](case.compare(Z, X))), expected(case), 1e-9)


@holds_for(forms="vectors similarities distances")
def memory_map(case, tmp_path):
    paths = (tmp_path / f"{i}.npy" for i in range(9))

    def mapped(data):
        path = next(paths)
        np.save(path, data)
        return np.load(path, mmap_mode="r")

    close(answers(case, convert=mapped), expected(case), 1e-9)


TARGETS = {
    "list": list,
    "objects": lambda y: y.astype(object),
    "float32": lambda y: y.astype(np.float32 if y.dtype.kind == "f" else np.int8),
    "series": lambda y: pytest.importorskip("pandas").Series(y),
    "series of another index": lambda y: pytest.importorskip("pandas").Series(
        y, np.arange(N) + 500
    ),
    "read-only": read_only,
    "tuple": tuple,
    "categories": lambda y: (
        pytest.importorskip("pandas").Categorical(y) if y.dtype.kind == "i" else y
    ),
    "nullable": lambda y: pytest.importorskip("pandas").array(y),
    "strided": lambda y: np.repeat(y, 2)[::2],
}


@holds_for(values=TARGETS, only=supervised)
def container_of_the_target(case, value):
    default = 1e-4 if value == "float32" else 1e-9
    actual = answers(case, y=TARGETS[value](case.target))
    close(actual, expected(case), tolerance("container", case, default))


WEIGHTS = {
    name: TARGETS[name]
    for name in ("list", "tuple", "series", "series of another index", "read-only")
}
WEIGHTS |= {"integers": lambda weight: weight.astype(int), "nullable": TARGETS["nullable"]}


@holds_for(values=WEIGHTS, only=takes_weights)
def container_of_weights(case, value):
    weight = 1.0 + np.arange(N) % 3
    one, other = (
        answers(case, fit_params={"sample_weight": given})
        for given in (weight, WEIGHTS[value](weight))
    )
    close(other, one, 1e-9)


# ------------------------------------------------------------------------------------------------ state
@holds_for()
def fitted_twice(case):
    model = fit(case)
    model.fit(case.compare(X[::2], X[::2]), case.target[::2])
    model.fit(case.compare(X, X), case.target)
    close(output(model, case.compare(Z, X)), expected(case), 0.0)


@holds_for(values=["clone", "pickle", "deepcopy"])
def copied_model(case, value):
    model = fit(case)
    parameters = str(model.get_params())
    if value == "clone":
        copied = clone(model).fit(case.compare(X, X), case.target)
    else:
        copied = pickle.loads(pickle.dumps(model)) if value == "pickle" else copy.deepcopy(model)
    close(output(copied, case.compare(Z, X)), expected(case), 0.0)
    assert parameters == str(case.build().get_params()), "fit changed a parameter"


@holds_for()
def owns_what_it_keeps(case):
    data, y = case.compare(X, X).copy(), np.array(case.target)
    model = case.build().fit(data, y)
    before = output(model, case.compare(Z, X))
    values = data.data if case.form == "hits" else data
    values[:] = values[::-1].copy()
    y[:] = y[::-1].copy()
    close(output(model, case.compare(Z, X)), before, 0.0)


@holds_for()
def a_failed_fit_changes_nothing(case):
    model = fit(case)
    wrong = case.compare(X, X).astype(float)
    values = wrong.data if case.form == "hits" else wrong
    values[...] = np.inf
    with pytest.raises(ValueError):
        model.fit(wrong, case.target)
    close(output(model, case.compare(Z, X)), expected(case), 0.0)


@holds_for()
def generators_are_left_alone(case):
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = np.random.get_state(legacy=False)["state"]["pos"], random.getstate()  # noqa: NPY002
    actual = answers(case)
    after = np.random.get_state(legacy=False)["state"]["pos"], random.getstate()  # noqa: NPY002
    assert before == after
    close(actual, expected(case), 0.0)


GENERATORS = {"RandomState": np.random.RandomState, "Generator": np.random.default_rng}


@holds_for(values=GENERATORS, only=lambda case: "random_state" in case.parameters)
def a_seed_decides(case, value):
    one, other = (answers(case, random_state=GENERATORS[value](5)) for _ in range(2))
    close(other, one, 0.0)


@holds_for()
def threads(case):
    with threadpool_limits(1):
        one = answers(case)
    with threadpool_limits(2):
        close(answers(case), one, tolerance("threads", case, 1e-6))


@holds_for()
def fits_at_the_same_time(case):
    wanted = expected(case)
    with ThreadPoolExecutor(4) as pool:
        for actual in pool.map(lambda _: answers(case), range(4)):
            close(actual, wanted, tolerance("threads", case, 1e-6))


@holds_for(only=lambda case: "n_jobs" in case.parameters)
def number_of_jobs(case):
    close(answers(case, n_jobs=2), expected(case), 1e-9)


SETTINGS = {
    "transform_output-pandas": {"transform_output": "pandas"},
    "transform_output-polars": {"transform_output": "polars"},
    "assume_finite": {"assume_finite": True},
    "working_memory": {"working_memory": 1},
    "metadata_routing": {"enable_metadata_routing": True},
    "chunks": {"pairwise_dist_chunk_size": 2, "enable_cython_pairwise_dist": False},
    "no validation": {"skip_parameter_validation": True},
    "printing": {"print_changed_only": False, "display": "text"},
}


@holds_for(values=SETTINGS)
def setting_of_scikit_learn(case, value):
    if value.endswith("polars"):
        pytest.importorskip("polars")
    with sklearn.config_context(**SETTINGS[value]):
        actual = answers(case)
        repr(case.build())
    close(actual, expected(case), 1e-9)


@holds_for()
def numpy_raises_on_everything(case):
    with np.errstate(all="raise", under="ignore"):
        close(answers(case), expected(case), 1e-9)


@holds_for(only=supervised)
def works_in_scikit_learn(case):
    model = make_pipeline(FunctionTransformer(), case.build())
    scores = cross_val_score(model[-1], case.compare(X, X), case.target, cv=3)
    assert np.isfinite(scores).all()
    if case.form == "vectors":
        actual = output(model.fit(X, case.target), Z)
        close(actual, expected(case), 1e-9)


# ------------------------------------------------------------------------------------------------ little and bad data
def survives(case, rows, y, new):
    """Finite answers, or one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = answers(case, rows, y, new)
    except ValueError as error:
        is_a_sentence(error)
    else:
        assert np.isfinite(actual).all() and len(actual) == len(new)


def is_a_sentence(error):
    text = str(error)
    assert text
    assert "._" not in text and " _" not in text, f"a private name: {text}"
    assert type(error).__module__ != "numpy.linalg", f"an error of a solver: {text}"


@holds_for(values=[1, 2, 3, 4])
def number_of_items(case, value):
    survives(case, X[:value], case.target[np.argsort(LABELS)[:: N // value]][:value], Z)


@holds_for(values=["1e-300", "1e-150", "1e150", "1e300"])
def size_of_numbers(case, value):
    with np.errstate(all="ignore"):
        survives(case, X * float(value), case.target, Z * float(value))


@holds_for()
def no_new_items(case):
    with pytest.raises(ValueError) as caught:
        output(fit(case), case.compare(Z, X)[:0])
    is_a_sentence(caught.value)


@holds_for()
def identical_items(case):
    survives(case, np.ones((N, 4)), case.target, np.ones((3, 4)))


@holds_for()
def every_item_five_times(case):
    rows = np.repeat(np.arange(12) * 6, 5)
    survives(case, X[rows], case.target[rows], Z)


@holds_for(only=classifies)
def a_class_with_one_item(case):
    y = LABELS.copy()
    y[3] = 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(case, y=y)
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert np.isfinite(output(model, case.compare(Z, X))).all()


@holds_for(only=classifies)
def one_class(case):
    """It raises or warns, but is not passed over in silence."""
    with pytest.raises((ValueError, UserWarning), match="class") as caught:
        fit(case, y=np.zeros(N, dtype=int))
    is_a_sentence(caught.value)


@holds_for(only=regresses)
def a_constant_target(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = answers(case, y=np.full(N, 4.2))
    np.testing.assert_allclose(actual, 4.2, rtol=1e-6)


def spoiled(place, value):
    def change(data):
        data = np.array(data, dtype=complex if value == 1j else float)
        data[place] = value
        return data

    return change


BAD = {
    "NaN": spoiled((3, 2), np.nan),
    "infinity": spoiled((3, 2), np.inf),
    "complex": spoiled((3, 2), 1j),
    "one-dimensional": lambda data: np.asarray(data)[0],
    "three-dimensional": lambda data: np.asarray(data)[None],
    "strings": lambda data: np.full(data.shape, "word"),
    "no items": lambda data: data[:0],
    "no columns": lambda data: data[:, :0],
    "masked": lambda data: np.ma.masked_greater(data, 0.5),
}


@holds_for(forms="vectors similarities distances", values=BAD)
def bad_data(case, value):
    takes = ("Table",) if value in ("NaN", "strings") else ()
    takes += ("Similarity",) if value == "NaN" and case.form != "vectors" else ()
    if case.cls.__name__.startswith(takes):
        pytest.skip("it takes gaps, or words")
    for fitted in (False, True):
        model = fit(case) if fitted else case.build()
        with pytest.raises((ValueError, TypeError)) as caught:
            bad = BAD[value](case.compare(X, X))
            output(model, bad) if fitted else model.fit(bad, case.target)
        is_a_sentence(caught.value)


BAD_TARGETS = {
    "too short": lambda y: y[:-1],
    "NaN": lambda y: np.where(np.arange(N) == 4, np.nan, y),
    "infinity": lambda y: np.where(np.arange(N) == 4, np.inf, y),
    "three-dimensional": lambda y: np.zeros((N, 2, 2)),
    "None": lambda y: None,
}


@holds_for(values=BAD_TARGETS, only=supervised)
def bad_target(case, value):
    with pytest.raises((ValueError, TypeError)) as caught:
        case.build().fit(case.compare(X, X), BAD_TARGETS[value](case.target))
    is_a_sentence(caught.value)


BAD_WEIGHTS = {
    "negative": np.where(np.arange(N) == 4, -1.0, 1.0),
    "NaN": np.where(np.arange(N) == 4, np.nan, 1.0),
    "zero": np.zeros(N),
    "too short": np.ones(N - 1),
}


@holds_for(values=BAD_WEIGHTS, only=takes_weights)
def bad_weights(case, value):
    with pytest.raises((ValueError, TypeError)) as caught:
        fit(case, fit_params={"sample_weight": BAD_WEIGHTS[value]})
    is_a_sentence(caught.value)


@holds_for()
def new_items_of_another_width(case):
    model = fit(case)
    with pytest.raises(ValueError) as caught:
        output(model, case.compare(Z, X)[:, :3])
    is_a_sentence(caught.value)


@holds_for()
def not_fitted(case):
    """Every public method that takes items says so."""
    model = case.build()
    given = {"X": case.compare(X, X), "y": case.target, "coverage": 0.9}
    for name in dir(case.cls):
        if name.startswith(("_", "fit", "set_", "get_", "read_")) or not hasattr(model, name):
            continue
        method = getattr(model, name)
        parameters = inspect.signature(method).parameters if inspect.ismethod(method) else {}
        if "X" not in parameters:
            continue
        needed = [key for key, value in parameters.items() if value.default is value.empty]
        with pytest.raises(NotFittedError):
            method(**{key: given[key] for key in needed if key in given})


@holds_for(forms="similarities", only=lambda case: not case.cls.__name__.startswith("Asym"))
def distances_for_similarities(case):
    """A matrix of distances that is read as similarities is announced, unless the kind is found."""
    distances = cdist(X, X)
    model = case.build()
    if "kind" in case.parameters:
        return
    with pytest.warns(UserWarning, match="distance"):
        try:
            model.fit(distances, case.target)
        except ValueError as error:
            assert "distance" in str(error) or "definite" in str(error)
            warnings.warn("distance", UserWarning, stacklevel=1)


# ------------------------------------------------------------------------------------------------ the driver
PAIRS = [(name, case) for name, (_, holds) in PROPERTIES.items() for case in CASES if holds(case)]
QUICK = [i for i, (_, case) in enumerate(PAIRS) if not case.cls.__name__.startswith("Hyper")]
SAMPLE = set(random.Random(0).sample(QUICK, 160))


def parameters():
    for i, (name, case) in enumerate(PAIRS):
        marks = [] if i in SAMPLE else [pytest.mark.slow]
        yield pytest.param(name, case, id=f"{name}-{case}", marks=marks)


@pytest.mark.parametrize("name, case", list(parameters()))
def test_property(name, case, tmp_path):
    allowed = exception(name, case)
    if allowed and allowed[0] is None:
        pytest.skip(allowed[1])
    check, _ = PROPERTIES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        check(case, tmp_path=tmp_path) if "tmp_path" in inspect.signature(
            check
        ).parameters else check(case)
