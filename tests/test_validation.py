"""The checks say one clear sentence."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pd = pytest.importorskip("pandas")

from mercerless import (
    AsymmetricRidge,
    DANKRegressor,
    HyperClassifier,
    HyperRegressor,
    HyperRidge,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    LABRegressor,
    SimilarityRegressor,
    UselessModelWarning,
)
from mercerless.core import validation as v
from mercerless.kernels import Gaussian, PairFunction
from mercerless.spectra import DissimilarityKernel, matrix_kind


class TestRowOrder:
    rows = pd.DataFrame(np.eye(4), index=list("abcd"))
    values = pd.Series([4, 1, 2, 3], index=list("dabc"), name="size")

    @pytest.mark.parametrize("form", ["frame", "series", "dict", "list"])
    def test_other_order_raises(self, form):
        several = {"first": np.eye(4), "second": self.rows}
        forms = {"frame": self.rows, "series": self.rows[0], "dict": several}
        X = forms.get(form, [np.eye(4), self.rows])
        with pytest.raises(ValueError, match=r"weight\.loc\[X\.index\].*weight\.to_numpy\(\)"):
            v.check_row_order(X, y=[1, 2, 3, 4], weight=self.values)

    def test_numbers_are_labels_too(self):
        numbered = pd.DataFrame(np.eye(4))
        with pytest.raises(ValueError, match="different orders"):
            v.check_row_order(numbered, groups=self.values.set_axis([3, 1, 2, 0]))

    @pytest.mark.parametrize("index", [list("abcd"), list("dbcz"), list("ddca"), range(4)])
    def test_other_labels_go_by_position(self, index):
        v.check_row_order(self.rows, y=pd.Series([4, 2, 3, 1], index=index))

    @pytest.mark.parametrize("X", [np.eye(4), list("wxyz"), rows.set_axis(list("aacd")), None])
    def test_unlabeled_rows_go_by_position(self, X):
        v.check_row_order(X, y=self.values)


def test_columns_are_found_by_name():
    frame = pd.DataFrame(np.arange(6).reshape(2, 3), columns=list("abc"))
    assert_array_equal(v.align_columns(frame, ["c", "a"]), [[2, 0], [5, 3]])
    numbered = frame.set_axis(range(3), axis=1)
    assert_array_equal(v.align_columns(numbered, ["2", "0"]), [[2, 0], [5, 3]])
    # labels that merely number as many columns, labels that are missing, and arrays: by position
    assert v.align_columns(numbered, ["2", "0", "1"]) is numbered
    for known in (["a", "b", "d"], ["a", "b", "c"], None):
        assert v.align_columns(frame, known) is frame
    array = frame.to_numpy()
    assert v.align_columns(array, ["b"]) is array


@pytest.mark.parametrize("kernel", [Gaussian(), PairFunction(lambda a, b: float(a @ b))])
def test_models_keep_rows_of_their_own(kernel):
    rng = np.random.default_rng(0)
    X, y, new = rng.normal(size=(30, 2)), rng.normal(size=30), rng.normal(size=(5, 2))
    for given in (X.copy(), list(X.copy())):
        model = KreinRidge(kernel, random_state=0).fit(given, y)
        expected = model.predict(new)
        for row in given:
            row[:] = 7.0
        assert_array_equal(model.predict(new), expected)


class TestCheckClasses:
    y = np.array(["a", "b", "a", "c"])

    def test_class_weights_multiply_sample_weights(self):
        by_class = {"a": 2.0, "b": 3.0, "c": 5.0}
        weight, classes, labels = v.check_classes(self.y, [1, 2, 0, 4], by_class, "M")
        assert_array_equal(weight, [2, 6, 0, 20])
        assert_array_equal(classes[labels], self.y)
        assert_array_equal(v.check_classes(self.y, None, by_class, "M")[0], [2, 3, 2, 5])
        assert_array_equal(v.check_classes(self.y, [1, 2, 0, 4], None, "M")[0], [1, 2, 0, 4])

    def test_classes_without_weight_do_not_count(self):
        with pytest.raises(ValueError, match=r"one class only, .*'b'"):
            v.check_classes(self.y, [0, 1, 0, 0], None, "M")
        with pytest.raises(ValueError, match="one class only"):
            v.check_classes(self.y, None, {"a": 0.0, "b": 0.0}, "M")


class TestSquareAndSymmetric:
    def test_passes_through(self):
        K = np.array([[1.0, 2.0], [2.0, 1.0]])
        assert v.check_symmetric(K) is K
        assert v.check_square([[1, 2], [3, 4]]).dtype == np.float64
        assert v.check_square(np.ones((2, 2), np.float32)).dtype == np.float32

    def test_rounding_is_averaged_away(self):
        K = np.array([[1.0, 2.0], [2.0 + 1e-12, 1.0]])
        out = v.check_symmetric(K)
        assert_array_equal(out, out.T)

    def test_asymmetric_says_how_much_and_what_to_do(self):
        with pytest.raises(
            ValueError, match=r"0\.25 of max\|K\|.*symmetrize\(K\).*direction='both'"
        ):
            v.check_symmetric([[4.0, 1.0], [2.0, 4.0]])

    @pytest.mark.parametrize("half", [np.triu, np.tril])
    def test_one_triangle_is_named(self, half):
        with pytest.raises(ValueError, match=r"K has one triangle only.*K \+ K\.T - np\.diag"):
            v.check_symmetric(half(np.full((3, 3), 2.0)))

    def test_asymmetry_across_blocks(self):
        K = np.zeros((3000, 3000))
        K[0, 0], K[2999, 5] = 1.0, 0.5
        assert v.relative_asymmetry(K) == 0.5
        assert v.relative_asymmetry(np.zeros((3, 3))) == 0.0

    @pytest.mark.parametrize(
        "bad, text",
        [
            (np.ones((2, 3)), "square"),
            (np.ones(3), "Expected 2D array"),
            (np.empty((0, 0)), "0 sample"),
            ([[np.nan]], "K contains NaN"),
            ([[np.inf]], "K contains infinity"),
            (np.array([[1 + 1j]]), "Complex"),
            ([["a"]], "Encode words as numbers"),
        ],
    )
    def test_bad_input(self, bad, text):
        with pytest.raises(ValueError, match=text):
            v.check_square(bad)

    def test_missing_entries_where_allowed(self):
        assert np.isnan(v.check_square([[np.nan, 1.0], [1.0, 1.0]], allow_nan=True)[0, 0])
        with pytest.raises(ValueError, match="infinity"):
            v.check_square([[np.inf, 1.0], [1.0, 1.0]], allow_nan=True)

    def test_huge_but_finite_values_pass(self):
        assert v.check_square(np.full((2, 2), 1e308)).max() == 1e308

    def test_numbers_in_strings_are_read(self):
        assert v.check_real(np.array([["1", "2"]], dtype=object))[0, 1] == 2.0


SLOW = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("hyper classifier", "hyper regressor")
]
VALIDATED = ["classifier", "machine", "hyper ridge", *SLOW]


class TestUselessModels:
    """A warning for learners that are clearly worse than a constant, and for no others."""

    def test_held_out_losses(self):
        rng = np.random.default_rng(0)
        y = rng.normal(size=100)
        constant = v.leave_one_out_constant(y)
        others = np.array([np.delete(y, i).mean() for i in range(100)])
        np.testing.assert_allclose(constant, (y - others) ** 2)
        with pytest.warns(UselessModelWarning, match="Model is worse than a constant.* 3.06 times"):
            v.warn_if_useless((y + rng.normal(size=100)) ** 2 + constant, constant, "Model")
        wild = constant.copy()
        wild[:30] = 1e12 * rng.exponential(size=30)  # the scatter of such errors must not hide them
        with pytest.warns(UselessModelWarning):
            v.warn_if_useless(wild, constant, "Model")

    def test_noise_is_no_reason(self):
        rng = np.random.default_rng(1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(200):
                y = rng.normal(size=60)
                v.warn_if_useless(
                    (y - 0.2 * rng.normal(size=60)) ** 2, v.leave_one_out_constant(y), "Model"
                )
            v.warn_if_useless(np.full(10, 9.0), np.ones(10), "Model")  # too few rows to tell
        assert not caught

    @pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
    def test_nearly_equal_losses_are_no_reason_in_any_unit(self, unit):
        constant = np.full(50, unit)
        v.warn_if_useless(constant * (1.0 + 5e-7), constant, "Model")
        with pytest.warns(UselessModelWarning):
            v.warn_if_useless(constant * (1.0 + 2e-6), constant, "Model")
        v.warn_if_folds_are_useless(np.full(3, 1.04), "Model")
        with pytest.warns(UselessModelWarning):
            v.warn_if_folds_are_useless(np.full(3, 1.06), "Model")

    def test_rows_count_by_their_weight(self):
        constant = np.tile([0.9, 1.1], 30)
        losses = np.where(np.arange(60) < 30, 3.0, 0.2) * constant
        on_bad_rows = np.where(np.arange(60) < 30, 1.0, 1e-3)
        with pytest.warns(UselessModelWarning, match="is 3 times as large"):
            v.warn_if_useless(losses, constant, "Model", on_bad_rows)
        with pytest.warns(UselessModelWarning):  # the scale of weights means nothing
            v.warn_if_useless(losses, constant, "Model", 1e6 * on_bad_rows)
        v.warn_if_useless(losses, constant, "Model", on_bad_rows[::-1])
        few = np.full(60, 1e-3)
        few[:2] = 1.0
        losses[:2] = [4.0, 0.5]
        for scale in (1.0, 1e6):  # two rows show nothing
            v.warn_if_useless(losses, constant, "Model", scale * few)
        # a row that hardly counts must not raise the cap behind which others hide
        wild = np.where(np.arange(60) < 59, constant, 1e9)
        bad = np.repeat([50.0, 1.0], [15, 45])
        bad[0] = 1e8
        with pytest.warns(UselessModelWarning):
            v.warn_if_useless(bad, wild, "Model", (wild < 1e9).astype(float))

    def test_learners_weigh_the_rows_that_they_judge(self):
        """Half of the rows are easy, half are pairs of close points with opposite labels."""
        rng = np.random.default_rng(3)
        easy = rng.normal(size=(60, 3))
        pairs = (
            20 + np.repeat(rng.normal(size=(30, 3)), 2, axis=0) + 1e-3 * rng.normal(size=(60, 3))
        )
        X = np.concatenate([easy, pairs])
        y = np.concatenate([np.sign(easy[:, 0]), np.tile([1.0, -1.0], 30)])
        weight = np.repeat([1e-4, 1.0], 60)
        model = AsymmetricRidge(Gaussian(0.3), alpha=1e-6)
        model.fit(X, y, sample_weight=weight[::-1])
        with pytest.warns(UselessModelWarning):
            model.fit(X, y, sample_weight=weight)

    def test_weights_count_as_repetition(self):
        y = np.array([0.0, 1.0, 4.0, 9.0])
        weight = np.array([1.0, 2.0, 1.0, 3.0])
        mean = [np.average(np.delete(y, i), weights=np.delete(weight, i)) for i in range(4)]
        np.testing.assert_allclose(v.leave_one_out_constant(y, weight), (y - mean) ** 2)

    def test_relative_errors(self):
        v.warn_if_folds_are_useless(np.array([0.9, 1.3, 1.1, 1.2, 0.9]), "Model")
        for errors in ([1.4, 1.5, 1.6], [1e6, 30.0, 1e2, 9.0, 8.0]):
            with pytest.warns(UselessModelWarning, match="times"):
                v.warn_if_folds_are_useless(np.array(errors), "Model")

    def test_estimators_say_so(self):
        rng = np.random.default_rng(2)
        G = rng.normal(size=(60, 60))
        y = rng.normal(size=60)
        with pytest.warns(UselessModelWarning, match="KreinRidge is worse"):
            KreinRidge("precomputed", alpha_positive=1e-9).fit(G + G.T, y)

    @pytest.mark.parametrize("name", VALIDATED)
    def test_every_learner_that_validates_itself_says_so(self, name):
        """Pairs of close points with opposite labels: who is left out looks like the other one."""
        rng = np.random.default_rng(3)
        X = np.repeat(rng.normal(size=(60, 3)), 2, axis=0) + 1e-3 * rng.normal(size=(120, 3))
        model, y = self.learner(name), np.tile([1.0, -1.0], 60)
        if name == "hyper ridge":  # a kernel that falls with the distance cannot be nearly constant
            X, y = 10 * X[::2], 1 + 0.01 * X[::2] @ X[::2].T
        with pytest.warns(
            UselessModelWarning, match=f"^{type(model).__name__} is worse than a constant"
        ):
            model.fit(X, y)

    @pytest.mark.parametrize("name", VALIDATED)
    def test_no_learner_takes_noise_for_uselessness(self, name):
        rng = np.random.default_rng(4)
        X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
        model = self.learner(name)
        if hasattr(model, "learner"):
            model.set_params(C=None)  # the machine of the other test is meant to overfit
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, np.sign(y) if "classifier" in name or name == "machine" else y)
        assert not [one for one in caught if issubclass(one.category, UselessModelWarning)]

    @staticmethod
    def learner(name):
        fixed = {"alpha_positive": 1e-6, "alpha_negative": 1e-6, "random_state": 0}
        first = HyperRidge("gaussian", alpha=1e-6, landmarks=30)
        return {
            "classifier": KreinRidgeClassifier(Gaussian(0.3), **fixed),
            "machine": KreinSVC(Gaussian(0.3)),
            "hyper ridge": HyperRidge("gaussian", landmarks=60, random_state=0),
            "hyper classifier": HyperClassifier(first, C=1e4, cv=10, random_state=0),
            "hyper regressor": HyperRegressor(first, C=1e4, cv=3, random_state=0),
        }[name]


@pytest.mark.parametrize(
    "regressor",
    [KreinRidge, KreinSVR, DANKRegressor, LABRegressor, SimilarityRegressor, HyperRegressor],
)
@pytest.mark.parametrize("unit", ["datetime64[D]", "timedelta64[h]"])
def test_dates_to_predict_raise_and_not_counted_in_nanoseconds(regressor, unit):
    with pytest.raises(
        ValueError, match="y holds dates or durations; turn them into numbers, such as days, first"
    ):
        regressor().fit(np.arange(30.0).reshape(10, 3), np.arange(10).astype(unit))


def test_words_in_a_table_of_another_library_get_a_sentence():
    pyarrow = pytest.importorskip("pyarrow")
    words = pyarrow.table({"a": np.arange(30.0), "b": ["u", "v"] * 15})
    for door in (LABRegressor(n_support=4), KreinRidge()):
        with pytest.raises(ValueError, match="Encode words as numbers, or pass a data frame"):
            door.fit(words, np.arange(30.0))
    numbers = pyarrow.table({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
    assert LABRegressor(n_support=4, random_state=0).fit(numbers, np.arange(30.0)).predict(
        numbers
    ).shape == (30,)


@pytest.mark.parametrize(
    "model, X, message",
    [
        (KreinRidge(), ["ab", "ba", "cc", "cd"], "strings are compared with kernel='levenshtein'"),
        (KreinRidge(), [[1, 2], [3], [1, 2, 3], [4]], "different lengths need kernel='dtw'"),
        (KreinRidge(), np.zeros((4, 2, 3)), r"dim 3.*X.reshape\(len\(X\), -1\), or kernel='dtw'"),
    ],
)
def test_what_is_no_table_names_the_kernel_for_it(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, [0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("kernel", ["gaussian", "precomputed"])
def test_condensed_distances_name_squareform(kernel):
    with pytest.raises(ValueError, match="squareform"):
        KreinRidge(kernel).fit(np.arange(1.0, 7.0), [0.0, 1.0, 2.0, 3.0])


def test_no_private_class_is_named_in_errors():
    for cls in (
        KreinRidge,
        KreinRidgeClassifier,
        HyperClassifier,
        LABRegressor,
        SimilarityRegressor,
    ):
        for call in (cls, cls().fit, cls().score):
            with pytest.raises(TypeError) as error:
                call(nonsense=1)
            before, _, _ = str(error.value).partition("(")
            assert before in ("fit", "score", "__init__")


def test_comparisons_with_other_items_say_what_columns_are():
    X = np.random.default_rng(0).normal(size=(12, 3))
    model = KreinRidge("precomputed").fit(X @ X.T, X[:, 0])
    with pytest.raises(
        ValueError, match=r"12 features as input\. .* one column for each of the training items"
    ):
        model.predict(X[:5] @ X[:5].T)


def test_classifiers_and_regressors_name_each_others_methods():
    X = np.random.default_rng(0).normal(size=(12, 3))
    model = SimilarityRegressor()
    assert not hasattr(model, "predict_set")
    with pytest.raises(AttributeError, match="'predict_set'; use predict_interval"):
        model.predict_set(X)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = model.nothing


def test_a_matrix_that_knows_its_items_is_a_frame_with_names():
    X = np.random.default_rng(0).normal(size=(12, 3))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    names = [f"item {i}" for i in range(12)]

    class DistanceMatrix:  # as of scikit-bio
        ids = tuple(names)

        def to_data_frame(self):
            return pd.DataFrame(D, index=names, columns=names)

    model = SimilarityRegressor("precomputed", kind="distance").fit(DistanceMatrix(), X[:, 0])
    shuffled = pd.DataFrame(D[:, ::-1], index=names, columns=names[::-1])
    plain = pd.DataFrame(D, columns=names)
    np.testing.assert_allclose(model.predict(shuffled), model.predict(plain))
    np.testing.assert_allclose(model.predict(DistanceMatrix()), model.predict(plain))
    assert matrix_kind(DistanceMatrix()).kind == "distance"
    centered = DissimilarityKernel().fit_transform(D)
    np.testing.assert_allclose(DissimilarityKernel().fit_transform(DistanceMatrix()), centered)
    with pytest.raises(ValueError, match="the same row labels in different orders"):
        model.fit(DistanceMatrix(), pd.Series(X[:, 0], index=names)[::-1])


def test_generators_of_both_kinds_draw_and_none_is_not_the_global_one():
    draws = []
    for seed in range(20):
        one, other = (v.check_random_state(np.random.default_rng(seed)) for _ in range(2))
        draws.append(one.uniform())
        assert draws[-1] == other.uniform()
    assert len(set(draws)) == 20
    np.random.seed(0)  # noqa: NPY002
    assert v.check_random_state(None).uniform() != np.random.RandomState(0).uniform()
    own = np.random.RandomState(3)
    assert v.check_random_state(own) is own
