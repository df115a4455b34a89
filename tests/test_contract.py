"""The contract of every estimator: one name and one shape for one thing, narrow constructors, the same answers
for the same data however it is given.
"""

import inspect
import pickle
import re
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpydoc.docscrape import ClassDoc
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

import mercerless
from mercerless.kernels import Gaussian, Kernel

CLASSES = [getattr(mercerless, name) for name in mercerless.__all__]
CLASSES = [
    cls
    for cls in CLASSES
    if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and hasattr(cls, "fit")
    if not cls.__name__.startswith("Hits")  # take sparse hits only: tests/test_hits.py
]
NARROW = ("Similarity", "Krein", "LAB", "Table")
STANDARD = {"n_features_in_", "feature_names_in_", "n_iter_"}  # as in all of scikit-learn
# names that were used for what is now `certificate_`
OTHER_CERTIFICATES = {"gap_", "duality_gap_", "stationarity_", "residual_", "residuals_"}
MARGIN = {
    "KreinSVC",
    "DANKClassifier",
    "HyperClassifier",
    "SimilaritySVC",
}  # probabilities: sklearn.calibration.CalibratedClassifierCV
SMALL = {
    "LABClassifier": {"n_support": 8, "max_iter": 60},
    "LABRegressor": {"n_support": 8, "max_iter": 60},
    "TableClassifier": {"members": ["local"], "max_iter": 60},
    "TableRegressor": {"members": ["local"], "max_iter": 60},
    "HyperSVR": {"C": 1e-3},
}
# libsvm stops at a tolerance, and where it stops depends on the last bits of the kernel
TOLERANCE = {"KreinSVC": 1e-3, "KreinSVR": 1e-3}
# DANK keeps the rows of copies, whose adaptation users may look at, and stops at a duality gap of 1e-4
COPIES = {"DANKClassifier": 1e-4, "DANKRegressor": 1e-4}
# a descent of bandwidths that stops early ends where the last bits of the targets lead it
BANDWIDTHS = {"LABRegressor": 5e-3, "TableRegressor": 5e-3}
RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
Z = RNG.normal(size=(12, 3))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.digitize(NUMBERS, np.quantile(NUMBERS, [0.33, 0.67]))
pytestmark = pytest.mark.filterwarnings("ignore:.*is worse than a constant")


def make(cls, **parameters):
    parameters = {**SMALL.get(cls.__name__, {}), **parameters}
    if "random_state" in inspect.signature(cls).parameters:
        parameters.setdefault("random_state", 0)
    return cls(**parameters)


def target_of(estimator):
    if is_classifier(estimator):
        return LABELS
    return (
        NUMBERS
        if is_regressor(estimator) or "Features" in type(estimator).__name__
        else Gaussian(1.0)(X)
    )


def takes_matrices(cls):
    """Whether the class reads X as a matrix if the kernel is "precomputed"."""
    if "kernel" not in inspect.signature(cls).parameters:
        return False
    return cls(kernel="precomputed").__sklearn_tags__().input_tags.pairwise


def output(estimator, rows):
    for method in ("predict_proba", "decision_function", "predict", "transform"):
        if hasattr(estimator, method):
            return np.asarray(getattr(estimator, method)(rows))
    raise AssertionError(f"{estimator} gives nothing")


@cache
def fitted(cls):
    """The estimator, fitted once on vectors."""
    estimator = make(cls)
    return estimator.fit(X, target_of(estimator))


@pytest.mark.parametrize("cls", CLASSES)
class TestConstructor:
    def test_is_narrow(self, cls):
        names = list(inspect.signature(cls).parameters)
        most = 10 if cls.__name__.startswith(NARROW) else 12
        assert len(names) <= most, f"{cls.__name__} has {len(names)} parameters: {', '.join(names)}"

    def test_says_the_same_things_the_same_way(self, cls):
        parameters = inspect.signature(cls).parameters
        assert not {
            "memory_limit",
            "landmark_method",
            "n_landmarks",
            "input",
            "verbose",
            "probability",
        } & set(parameters)
        if "random_state" in parameters:
            assert parameters["random_state"].default is None
        if "cv" in parameters:
            assert parameters["cv"].default == 5


TWO_STAGES = ("HyperClassifier", "HyperRegressor")  # seconds a fit
FITTED = [
    pytest.param(cls, marks=[pytest.mark.slow] if cls.__name__ in TWO_STAGES else [])
    for cls in CLASSES
]


def similarity_of_rows(a, b):
    """A Gaussian of rows of numbers, for kernels that take items."""
    return float(np.exp(-np.sum(np.subtract(a, b) ** 2) / 4.5))


def similarity_of_fields(a, b):
    return similarity_of_rows(a["row"], b["row"])


def as_objects(items):
    objects = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        objects[i] = item
    return objects


def forms_of_data(cls):
    """The same items in all forms that this class takes, by name: what to pass as X, and the parameters for it."""
    K = Gaussian(1.5)(X)
    matrices = {
        "matrix": (K.copy(), {"kernel": "precomputed"}),
        "float32 matrix": (K.astype(np.float32), {"kernel": "precomputed"}),
        "frame of a matrix": (pd.DataFrame(K.copy()), {"kernel": "precomputed"}),
    }
    vectors = {
        "vectors": (X.copy(), {}),
        "float32": (X.astype(np.float32), {}),
        "Fortran order": (np.asfortranarray(X), {}),
        "frame": (pd.DataFrame(X.copy()), {}),
    }
    if cls.__name__ in TWO_STAGES:
        return {"vectors": vectors["vectors"]}
    if cls.__name__.startswith(("LAB", "Table")):
        return {name: vectors[name] for name in ("vectors", "frame")}
    has_kernel = "kernel" in inspect.signature(cls).parameters
    if (
        not has_kernel or cls.__name__ == "SignedRandomFeatures"
    ):  # no matrix and no function has frequencies
        return vectors
    fields = [{"row": row.copy()} for row in X]
    items = {
        "list of rows": ([row.copy() for row in X], {"kernel": similarity_of_rows}),
        "list": (fields, {"kernel": similarity_of_fields}),
        "objects": (as_objects(fields), {"kernel": similarity_of_fields}),
        "series": (pd.Series(fields), {"kernel": similarity_of_fields}),
    }
    return vectors | matrices | items


def change_in_place(data):
    if isinstance(data, list):
        data.reverse()
        return
    array = np.asarray(data)
    array.flags.writeable = True
    array[:] = array[::-1].copy()


@pytest.mark.parametrize("cls", FITTED)
def test_a_fitted_model_does_not_change_with_the_data(cls):
    """Models own what they keep: neither predictions nor attributes follow X, y or the weights."""
    for form, (data, parameters) in forms_of_data(cls).items():
        model = make(cls, **parameters)
        y = np.array(target_of(model))
        weights = {}
        if has_fit_parameter(cls, "sample_weight") and form != "vectors":
            weights["sample_weight"] = np.linspace(0.5, 2.0, len(X))
        model.fit(data, y, **weights)
        fitted_model = pickle.dumps(model)
        for array in (data, y, *weights.values()):
            change_in_place(array)
        assert pickle.dumps(model) == fitted_model, f"the model keeps a view of its {form}"


def assert_same(first, second, where="the model"):
    """Raise if two things differ in anything they hold, at any depth."""
    assert type(first) is type(second), f"{where}: {type(first)} and {type(second)}"
    if isinstance(first, np.ndarray) and first.dtype != object:
        assert_array_equal(first, second, err_msg=where)
    elif isinstance(first, pd.DataFrame):
        pd.testing.assert_frame_equal(first, second)
    elif isinstance(first, dict):
        assert first.keys() == second.keys(), f"{where}: {set(first) ^ set(second)}"
        for name in first:
            assert_same(first[name], second[name], f"{where}[{name!r}]")
    elif isinstance(first, (list, tuple, np.ndarray)):
        assert len(first) == len(second), where
        for i, (one, other) in enumerate(zip(first, second)):
            assert_same(one, other, f"{where}[{i}]")
    elif isinstance(first, np.random.RandomState):
        assert_same(first.get_state(legacy=False), second.get_state(legacy=False), where)
    elif isinstance(first, partial):
        assert first.func is second.func, where
        assert_same(first.args, second.args, where)
        assert_same(first.keywords, second.keywords, where)
    elif isinstance(first, (bool, int, float, str, bytes, type(None), np.generic)):
        assert_array_equal(first, second, err_msg=where)
    elif callable(first) and hasattr(first, "__code__"):
        assert first.__code__ is second.__code__, where
    elif hasattr(first, "__dict__"):
        assert_same(vars(first), vars(second), where)


def different_fits(cls):
    """Parameters and 40 items of fits that may leave something behind for the next."""
    rows = pd.DataFrame(X[:40] + 1.0, columns=["a", "b", "c"])
    fits = [({}, rows)]
    if cls.__name__.startswith("Table"):
        words = rows.assign(word=["u", "v"] * 20)
        fits = [({}, words)]
    elif cls.__name__.startswith("LAB"):
        pass
    elif takes_matrices(cls):
        matrix = Gaussian(1.5)(X[:40])
        frame = pd.DataFrame(matrix, index=range(3, 43), columns=range(3, 43))
        fits += [({"kernel": "precomputed"}, frame)]
        fits += [({"kernel": similarity_of_rows}, [tuple(row) for row in X[:40]])]
        if "direction" in inspect.signature(cls).parameters:
            directed = {"kernel": "precomputed", "kind": "similarity"}
            for direction in ("mean", "both"):
                fits += [(directed | {"direction": direction}, matrix + np.tri(40, k=-1))]
            fits += [({"kernel": "gaussian", "direction": "both"}, X[:40])]
            fits += [({"kernel": {"one": "gaussian", "two": "linear"}}, X[:40])]
        if "landmarks" in inspect.signature(cls).parameters:
            fits += [({"landmarks": 12}, X[:40])]
    return fits


@pytest.mark.parametrize("cls", FITTED)
def test_nothing_of_an_earlier_fit_stays(cls):
    """Refitting gives a fresh fit in every attribute, whatever the model was fitted on before."""
    refitted = make(cls)
    y = target_of(refitted)
    refitted.fit(X, y)
    y = y[:40, :40] if y.ndim == 2 else y[:40]
    weights = {}
    if has_fit_parameter(cls, "sample_weight"):
        weights["sample_weight"] = np.arange(40) % 3
    for changes, data in different_fits(cls):
        fresh = make(cls, **changes).fit(data, y, **weights)
        refitted.set_params(**fresh.get_params(deep=False)).fit(data, y, **weights)
        assert_same(vars(refitted), vars(fresh), f"with {changes}")
    refitted.set_params(**make(cls).get_params(deep=False)).fit(X, target_of(refitted))
    assert_same(vars(refitted), vars(fitted(cls)), "at last")


@pytest.mark.parametrize("cls", FITTED)
class TestFitted:
    def test_documented_attributes_exist(self, cls):
        model = fitted(cls)
        documented = {
            name: " ".join(item.desc)
            for item in ClassDoc(cls)["Attributes"]
            for name in re.split(r",\s*", item.name)
        }
        public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
        # an attribute of another way of fitting says so
        always = [
            name
            for name in documented
            if not re.search(r"\b(only|where|with|after|if)\b", documented[name], re.I)
        ]
        assert not [name for name in always if not hasattr(model, name) and name not in STANDARD]
        assert public <= documented.keys() | STANDARD, sorted(public - documented.keys())

    def test_what_is_beneath_a_mask_does_not_count(self, cls):
        estimator = make(cls)
        y = target_of(estimator)
        with pytest.raises(ValueError, match="masked"):
            estimator.fit(np.ma.masked_greater(X, 1.0), y)
        if is_classifier(estimator) or is_regressor(estimator):
            with pytest.raises(ValueError, match="masked"):
                estimator.fit(X, np.ma.masked_equal(y, y[0]))
        with pytest.raises(ValueError, match="masked"):
            output(fitted(cls), np.ma.masked_greater(Z, 1.0))
        # nothing is masked
        assert_array_equal(output(fitted(cls), np.ma.array(Z)), output(fitted(cls), Z))

    def test_certificate(self, cls):
        assert not OTHER_CERTIFICATES & set(vars(fitted(cls)))
        if hasattr(fitted(cls), "certificate_"):
            # LAB and the table learner stop descents early, by validation
            most = 1.0 if cls.__name__.startswith(("Table", "LAB")) else 0.2
            assert isinstance(fitted(cls).certificate_, float)
            assert 0.0 <= fitted(cls).certificate_ < most

    def test_kernel_is_a_kernel(self, cls):
        if hasattr(fitted(cls), "kernel_"):
            assert isinstance(fitted(cls).kernel_, Kernel)

    def test_dual_coef_has_a_row_per_function(self, cls):
        coef = getattr(fitted(cls), "dual_coef_", None)
        if coef is not None:
            # as many columns as items that new ones are compared with; a directed similarity has both directions
            known = {len(X), 2 * len(X), len(getattr(fitted(cls), "support_", X))}
            assert coef.ndim == 2 and coef.shape[1] in known

    def test_probabilities(self, cls):
        model = fitted(cls)
        if not is_classifier(model):
            return
        assert hasattr(model, "predict_proba") == (cls.__name__ not in MARGIN)
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(Z)
            assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
            assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(Z))

    def test_says_how_sure_it_is(self, cls):
        """Whoever has out-of-fold predictions gives sets or intervals, wider for more coverage, and never both."""
        model = fitted(cls)
        held = getattr(model, "out_of_fold_", None)
        assert (held is not None) == cls.__name__.startswith(
            (
                "LAB",
                "Table",
                "Asymmetric",
                "KreinRidge",
                "SimilarityClassifier",
                "SimilarityRegressor",
            )
        )
        if held is None:
            return
        y = target_of(model)
        assert_array_equal(np.unique(held.rows), np.sort(held.rows))
        assert_allclose(held.target, y[held.rows])
        if is_classifier(model):
            assert not hasattr(model, "predict_interval")
            assert_allclose(held.prediction.sum(axis=1), 1.0, rtol=1e-10)
            few, many = (model.predict_set(Z, coverage) for coverage in (0.5, 0.95))
            assert (
                few.shape == many.shape == (len(Z), 3)
                and np.all(many >= few)
                and many.sum() > few.sum()
            )
        else:
            assert not hasattr(model, "predict_set")
            few, many = (model.predict_interval(Z, coverage) for coverage in (0.5, 0.95))
            assert_allclose(many.mean(axis=1), model.predict(Z), rtol=1e-9, atol=1e-12)
            assert np.all(np.diff(many) > np.diff(few)) and np.all(np.diff(few) > 0)

    def test_gives_reasons(self, cls):
        """Whoever says how sure it is also says why, and the shares add up."""
        model = fitted(cls)
        assert hasattr(model, "explain") == hasattr(cls, "_held_out")
        if hasattr(model, "explain"):
            reasons = model.explain(Z, 4)
            total = reasons.base + reasons.shares.sum(axis=1) + reasons.rest
            assert_allclose(total, reasons.score, rtol=1e-10, atol=1e-10)
            assert reasons.items.max() < len(X) and reasons.items.min() >= -1

    def test_pickled_and_refitted_models_are_the_same(self, cls):
        model = fitted(cls)
        assert_array_equal(output(pickle.loads(pickle.dumps(model)), Z), output(model, Z))
        assert_allclose(
            output(clone(model).fit(X, target_of(model)), Z),
            output(model, Z),
            rtol=1e-9,
            atol=1e-12,
        )

    def test_a_frame_with_an_odd_index_is_its_array(self, cls):
        model = clone(fitted(cls))
        index = RNG.permutation(len(X)) + 7
        frame = pd.DataFrame(X, columns=["a", "b", "c"], index=index)
        y = target_of(model)
        model.fit(frame, pd.Series(y, index=index + 100) if np.ndim(y) == 1 else y)
        new = pd.DataFrame(Z, columns=["a", "b", "c"])
        assert_allclose(
            output(model, new),
            output(fitted(cls), Z),
            rtol=TOLERANCE.get(cls.__name__, 1e-9),
            atol=1e-12,
        )
        # columns are found by name, others are left out, and none may be missing
        expected = output(model, new)
        for other in (new[["c", "a", "b"]], new[["b", "c", "a"]].assign(d=1.0)):
            assert_allclose(output(model, other), expected, rtol=1e-9, atol=1e-12)
        with pytest.raises(ValueError, match="missing"):
            output(model, new[["a", "b"]].assign(d=1.0))
        with pytest.raises(ValueError, match="2 columns of the name 'a'"):
            output(model, pd.concat([new, new[["a"]]], axis=1))
        with pytest.raises(ValueError, match="2 columns of the name 'a'"):
            model.fit(pd.concat([frame, frame[["a"]]], axis=1), y)

    def test_targets_weights_and_groups_are_matched_by_name(self, cls):
        model = make(cls)
        rows = pd.DataFrame(X, index=[f"item {i}" for i in range(len(X))], columns=["a", "b", "c"])
        y = target_of(model)
        targets = pd.DataFrame(y, index=rows.index) if y.ndim == 2 else pd.Series(y, rows.index)
        order = np.random.RandomState(1).permutation(len(X))
        in_order, shuffled = {}, {}
        if has_fit_parameter(cls, "sample_weight"):
            weight = np.random.RandomState(2).uniform(0.3, 3.0, len(X))
            in_order["sample_weight"] = weight
            shuffled["sample_weight"] = pd.Series(weight, rows.index).iloc[order]
        if has_fit_parameter(cls, "groups"):
            groups = np.arange(len(X)) // 4
            in_order["groups"] = groups
            shuffled["groups"] = pd.Series(groups, rows.index).iloc[order]
        expected = output(model.fit(rows, y, **in_order), rows)
        by_name = make(cls).fit(rows, targets.iloc[order], **shuffled)
        assert_array_equal(output(by_name, rows), expected)

    def test_rows_of_weight_zero_are_not_there(self, cls):
        if not has_fit_parameter(cls, "sample_weight"):
            return
        model = clone(fitted(cls))
        far = np.concatenate([X, 100.0 + X[:9]])
        y = target_of(model)
        model.fit(far, np.concatenate([y, y[:9]]), sample_weight=np.repeat([1.0, 0.0], [len(X), 9]))
        assert_allclose(output(model, Z), output(fitted(cls), Z), rtol=1e-6, atol=1e-9)

    def test_a_fit_that_fails_changes_nothing(self, cls):
        """Otherwise the old coefficients would meet the columns of the new data, without a word."""
        model = clone(fitted(cls))
        y = target_of(model)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        new = pd.DataFrame(Z, columns=["a", "b", "c"])
        expected = output(model.fit(frame, y), new)
        swapped = frame[["c", "a", "b"]].assign(a=np.inf)
        with pytest.raises(ValueError):
            model.fit(swapped, y)
        assert_array_equal(output(model, new), expected)
        if is_classifier(model) or is_regressor(model):
            with pytest.raises(ValueError):
                model.fit(frame[["c", "b"]], y[:-1])
        assert_array_equal(output(model, new), expected)

    def test_whole_weights_equal_repetition(self, cls):
        """Whatever folds, calibrations and tolerances: copies are one row that carries their weight."""
        if not has_fit_parameter(cls, "sample_weight"):
            return
        y = target_of(cls())
        rows = np.argsort(LABELS, kind="stable")
        times = np.random.RandomState(1).randint(1, 4, len(X))
        many = np.repeat(rows, times)
        repeated = make(cls).fit(X[many], y[many])
        weighted = make(cls).fit(X[rows], y[rows], sample_weight=times)
        tolerance = {**TOLERANCE, **COPIES, **BANDWIDTHS}.get(cls.__name__, 1e-6)
        assert_allclose(output(weighted, Z), output(repeated, Z), rtol=1e-6, atol=tolerance)
        if getattr(repeated, "out_of_fold_", None) is not None:
            assert_array_equal(np.sort(repeated.out_of_fold_.rows), np.arange(times.sum()))

    def test_rows_of_few_combinations_are_learned(self, cls):
        """Four distinct rows, 25 times each: no copies to be merged, but all that there is to learn from."""
        model = make(cls)
        if not (is_classifier(model) or is_regressor(model)):
            return
        rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(25, axis=0)
        rows = np.random.RandomState(0).permutation(rows)
        differs = (rows[:, 0] != rows[:, 1]).astype(int)
        assert model.fit(rows, differs).score(rows, differs) > 0.9

    def test_whole_weights_equal_repetition_of_a_matrix(self, cls):
        if not (
            has_fit_parameter(cls, "sample_weight")
            and "kernel" in inspect.signature(cls).parameters
        ):
            return
        if not make(cls, kernel="precomputed").__sklearn_tags__().input_tags.pairwise:
            return
        y = target_of(cls())
        times = np.random.RandomState(1).randint(0, 4, len(X))
        rows = np.repeat(np.arange(len(X)), times)
        K, new = Gaussian(1.5)(X), Gaussian(1.5)(Z, X)
        repeated = make(cls, kernel="precomputed").fit(K[np.ix_(rows, rows)], y[rows])
        weighted = make(cls, kernel="precomputed").fit(K, y, sample_weight=times)
        tolerance = {**TOLERANCE, **COPIES}.get(cls.__name__, 1e-6)
        expected = output(repeated, new[:, rows])
        assert_allclose(output(weighted, new), expected, rtol=1e-6, atol=tolerance)


@pytest.mark.parametrize(
    "cls",
    [cls for cls in CLASSES if is_classifier(cls()) and has_fit_parameter(cls, "sample_weight")],
)
def test_a_class_of_weight_zero_is_left_out(cls):
    """It is no class at all: neither a column of probabilities nor a vote is left for it."""
    model = make(cls).fit(X, LABELS, sample_weight=np.where(LABELS == 1, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 2]
    used = LABELS != 1
    expected = make(cls).fit(X[used], LABELS[used])
    assert_allclose(output(model, Z), output(expected, Z), rtol=1e-6, atol=1e-9)


WEIGH_CLASSES = [cls for cls in CLASSES if "class_weight" in inspect.signature(cls).parameters]


@pytest.mark.parametrize("cls", WEIGH_CLASSES)
def test_balanced_classes_count_weights_and_not_rows(cls):
    weight = np.where(LABELS == 2, 3.0, 1.0)
    balanced = make(cls, class_weight="balanced").fit(X, LABELS, sample_weight=weight)
    share = 1.0 / np.bincount(LABELS, weights=weight)
    product = weight * weight.sum() / 3.0 * share[LABELS]
    expected = output(make(cls).fit(X, LABELS, sample_weight=product), Z)
    tolerance = TOLERANCE.get(cls.__name__, 1e-9)
    assert_allclose(output(balanced, Z), expected, rtol=1e-6, atol=tolerance)


@pytest.mark.parametrize("cls", WEIGH_CLASSES)
def test_class_weights_multiply_sample_weights(cls):
    by_class = {0: 3.0, 1: 0.5, 2: 1.0}
    weight = np.linspace(0.5, 2.0, len(X))
    both = make(cls, class_weight=by_class).fit(X, LABELS, sample_weight=weight)
    product = weight * np.array([3.0, 0.5, 1.0])[LABELS]
    expected = output(make(cls).fit(X, LABELS, sample_weight=product), Z)
    assert_allclose(output(both, Z), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", FITTED)
def test_a_generator_may_draw(cls):
    """Two generators of one seed give one model; a generator that has drawn gives another where anything is drawn."""
    if "random_state" not in inspect.signature(cls).parameters:
        return
    models = [make(cls, random_state=np.random.default_rng(5)) for _ in range(2)]
    first, second = (output(model.fit(X, target_of(model)), Z) for model in models)
    assert_array_equal(first, second)


@pytest.mark.parametrize("cls", FITTED)
def test_a_table_that_looks_like_distances_warns(cls):
    distances = np.abs(np.subtract.outer(X[:25, 0], X[:25, 0]))
    model = make(cls)
    y = target_of(model)[:25]
    y = y[:, :25] if y.ndim == 2 else y
    remedy = "pass kernel='precomputed'" if takes_matrices(cls) else "use Similarity.*precomputed"
    with pytest.warns(UserWarning, match=f"looks like the distances of 25 items.*{remedy}"):
        model.fit(distances, y)
    if takes_matrices(cls) and not cls.__name__.startswith("DANK"):
        make(cls, kernel="precomputed").fit(distances, y)


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if takes_matrices(cls)])
def test_a_bad_matrix_raises_with_its_remedy(cls):
    model = make(cls, kernel="precomputed")
    y = target_of(model)
    K = Gaussian(1.5)(X)
    condensed = pdist(X)
    holes = K.copy()
    holes[4, 7] = np.nan
    if cls in (mercerless.SimilarityClassifier, mercerless.SimilarityRegressor):
        holes[4, 7] = np.inf  # they complete what is missing
    for wrong in (holes, pd.DataFrame(holes)):
        with pytest.raises(ValueError, match=r"1 comparisons .*row 4, column 7.*leave out"):
            model.fit(wrong, y)
    holes[4, 7] = np.inf
    model.fit(K, y)
    with pytest.raises(ValueError, match="row 4, column 7"):
        output(model, holes)
    for kernel in ("precomputed", model.kernel):
        with pytest.raises(ValueError, match=r"distances of 60 items .*squareform"):
            make(cls, kernel=kernel).fit(condensed, y)
    for kernel in ([K, K], {"one": K, "other": K}, K, pd.DataFrame(K)):
        with pytest.raises(TypeError, match=r"matrices, which are data.*kernel='precomputed'"):
            make(cls, kernel=kernel).fit(X, y)


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if takes_matrices(cls)])
def test_a_precomputed_matrix_is_its_vectors(cls):
    model = make(cls)
    model.set_params(kernel="precomputed")
    kernel = Gaussian(1.5)
    vectors = make(cls, kernel=kernel).fit(X, target_of(model))
    matrix = model.fit(kernel(X), target_of(model))
    assert_allclose(output(matrix, kernel(Z, X)), output(vectors, Z), rtol=1e-6, atol=1e-8)
