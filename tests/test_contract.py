"""The contract of every estimator: narrow constructors, one name for one thing, honest probabilities and sets."""

import re
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from test_properties import CASES, LABELS, N, X, Z, close, fit, output

from mercerless.kernels import Kernel

pytestmark = pytest.mark.filterwarnings("ignore:.*is worse than a constant")
STANDARD = {"n_features_in_", "feature_names_in_", "n_iter_"}  # as in all of scikit-learn
AUTOMATIC = ("Similarity", "Table", "Hits")
ON_VECTORS = [case for case in CASES if case.form in ("vectors", "hits")]
ON_MATRICES = [case for case in CASES if case.form == "similarities"]
fitted = cache(fit)
cases = pytest.mark.parametrize("case", ON_VECTORS, ids=str)


def those(condition, of=ON_VECTORS):
    return pytest.mark.parametrize("case", [case for case in of if condition(case)], ids=str)


@cases
def test_constructors_are_narrow_and_agree(case):
    parameters = case.parameters
    assert len(parameters) <= (10 if case.cls.__name__.startswith(("Krein", *AUTOMATIC)) else 13)
    assert not {"memory_limit", "n_landmarks", "verbose", "probability"} & set(parameters)
    if "cv" in parameters:
        assert parameters["cv"].default in (5, None)
    if "random_state" in parameters and case.cls.__name__.startswith(AUTOMATIC):
        assert parameters["random_state"].default in (0, None)
        assert parameters["random_state"].default == 0 or "Features" in case.cls.__name__


@cases
def test_attributes_are_documented(case):
    docscrape = pytest.importorskip("numpydoc.docscrape")
    described = {
        name: " ".join(item.desc)
        for cls in case.cls.__mro__
        if cls.__module__.startswith("mercerless")
        for item in docscrape.ClassDoc(cls)["Attributes"]
        for name in re.split(r",\s*", item.name)
    }
    model = fitted(case)
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert sorted(public - described.keys() - STANDARD) == []
    # an attribute of another way of fitting says so
    conditional = re.compile(r"\b(only|with|after|if)\b", re.I)
    own = docscrape.ClassDoc(case.cls)["Attributes"]
    own = {name for item in own for name in re.split(r",\s*", item.name)}
    always = {name for name in own if not conditional.search(described[name])}
    assert [name for name in always - STANDARD if not hasattr(model, name)] == []


@cases
def test_attributes_are_what_their_names_say(case):
    model = fitted(case)
    if hasattr(model, "certificate_"):
        # descents of bandwidths stop early, by validation
        most = 1.0 if case.cls.__name__.startswith(("Table", "LAB")) else 0.2
        assert isinstance(model.certificate_, float) and 0.0 <= model.certificate_ <= most
    if hasattr(model, "kernel_") and case.form == "vectors":
        assert isinstance(model.kernel_, Kernel)
    if getattr(model, "dual_coef_", None) is not None:
        assert model.dual_coef_.ndim == 2


@those(lambda case: case.is_classifier and hasattr(fitted(case), "predict_proba"))
def test_probabilities(case):
    model, new = fitted(case), case.compare(Z, X)
    probabilities = model.predict_proba(new)
    assert probabilities.min() >= 0.0
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(new))


@those(lambda case: getattr(fitted(case), "out_of_fold_", None) is not None)
def test_sets_and_intervals_grow_with_coverage(case):
    model, new = fitted(case), case.compare(Z, X)
    held_out = model.out_of_fold_
    assert_array_equal(np.unique(held_out.rows), np.sort(held_out.rows))
    assert_allclose(held_out.target, case.target[held_out.rows])
    if is_classifier(model):
        small, large = (model.predict_set(new, coverage) for coverage in (0.5, 0.95))
        assert np.all(large >= small) and large.sum() > small.sum()
    else:
        small, large = (model.predict_interval(new, coverage) for coverage in (0.5, 0.95))
        assert np.all(np.diff(large) > np.diff(small)) and np.all(np.diff(small) > 0)
    wrong = "predict_interval" if is_classifier(model) else "predict_set"
    assert not hasattr(model, wrong)


@those(lambda case: case.form == "vectors" and hasattr(fitted(case), "explain"))
def test_reasons_add_up(case):
    reasons = fitted(case).explain(case.compare(Z, X), 4)
    total = reasons.base + reasons.shares.sum(axis=1) + reasons.rest
    assert_allclose(total, reasons.score, rtol=1e-9, atol=1e-9)
    assert -1 <= reasons.items.min() and reasons.items.max() < N


@those(lambda case: "class_weight" in case.parameters)
def test_class_weights_multiply_sample_weights(case):
    by_class, weight = {0: 3.0, 1: 0.5, 2: 1.0}, np.linspace(0.5, 2.0, N)
    both = fit(case, class_weight=by_class, fit_params={"sample_weight": weight})
    product = weight * np.array([3.0, 0.5, 1.0])[LABELS]
    expected = fit(case, fit_params={"sample_weight": product})
    close(output(both, case.compare(Z, X)), output(expected, case.compare(Z, X)))


@those(lambda case: case.is_classifier and case.takes_weights)
def test_a_class_of_weight_zero_is_left_out(case):
    model = fit(case, fit_params={"sample_weight": np.where(LABELS == 1, 0.0, 1.0)})
    assert model.classes_.tolist() == [0, 2]


@those(lambda case: case.form == "vectors")
def test_columns_are_found_by_name(case):
    pd = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    model = case.build().fit(pd.DataFrame(X, columns=names), case.target)
    new = pd.DataFrame(Z, columns=names)
    expected = output(model, new)
    close(output(model, new[["c", "a", "d", "b"]].assign(other=1.0)), expected, 1e-9)
    for wrong in (new[["a", "b", "c"]], pd.concat([new, new[["a"]]], axis=1)):
        with pytest.raises(ValueError):
            output(model, wrong)


@those(lambda case: True, of=ON_MATRICES)
def test_a_matrix_is_its_kernel_on_vectors(case):
    from mercerless.kernels import Gaussian

    kernel = Gaussian(2.0)
    vectors = case.cls(kernel=kernel).fit(X, case.target)
    matrix = case.cls(kernel="precomputed").fit(kernel(X), case.target)
    close(output(matrix, kernel(Z, X)), output(vectors, Z), 1e-5)


@those(lambda case: True, of=ON_MATRICES)
def test_what_is_no_matrix_of_comparisons_raises(case):
    K = case.compare(X, X)
    condensed = K[np.triu_indices(N, 1)]
    for wrong in (K[:, :-1], condensed, K[None]):
        with pytest.raises(ValueError):
            case.build().fit(wrong, case.target)
    for kernel in ([K, K], K):
        with pytest.raises(TypeError, match="precomputed"):
            case.cls(kernel=kernel).fit(X, case.target)
