"""The automatic similarity learners through their public doors."""

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

pd = pytest.importorskip("pandas")

import mercerless
from mercerless import SimilarityClassifier, SimilarityRegressor, UselessModelWarning
from mercerless.kernels import TL1, PairFunction
from mercerless.spectra import GapFiller

RNG = np.random.RandomState(0)
X = RNG.normal(size=(160, 3))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=160)
THREE = np.digitize(NUMBERS, [-0.5, 0.5])
WORDS = np.array(["a", "b", "c"])[THREE]
D = cdist(X, X, "cityblock")
N = 110
NEW = slice(N, 160)


def distances(direction="symmetric", **options):
    return SimilarityClassifier("precomputed", direction=direction, **options)


def directed(seed=1):
    """A similarity that leads from items to items of the next class; the mean of both directions is noise."""
    noise = 0.1 * np.random.RandomState(seed).normal(size=D.shape)
    ahead = (THREE - THREE[:, None]) % 3
    return 2.0 + np.array([0.0, 0.3, -0.3])[ahead] + noise


# what is predicted


def test_classes_are_predicted_with_good_probabilities():
    model = distances().fit(D[:N, :N], WORDS[:N])
    assert model.kind_ == "distance" and model.score(D[NEW, :N], WORDS[NEW]) > 0.8
    proba = model.predict_proba(D[NEW, :N])
    assert_allclose(proba.sum(axis=1), 1.0)
    right = proba[np.arange(50), THREE[NEW]]
    assert -np.log(right).mean() < 0.55 < np.log(3)
    assert_array_equal(model.predict(D[NEW, :N]), model.classes_[proba.argmax(axis=1)])
    assert model.weights_.sum() == pytest.approx(1.0, abs=1e-4)
    assert len(model.members_) == len(model.weights_) and model.certificate_ < 1e-6


def test_numbers_are_predicted():
    model = SimilarityRegressor().fit(X[:N], NUMBERS[:N])
    assert model.score(X[NEW], NUMBERS[NEW]) > 0.9
    held_out = model.out_of_fold_
    assert r2_score(held_out.target, held_out.prediction) > 0.85
    assert_array_equal(held_out.target, NUMBERS[:N])


def test_a_kernel_and_its_matrix_give_the_same_model():
    kernel = TL1(6.0)
    K = kernel(X)
    by_kernel = SimilarityClassifier(kernel).fit(X[:N], THREE[:N]).predict_proba(X[NEW])
    by_matrix = SimilarityClassifier("precomputed").fit(K[:N, :N], THREE[:N])
    assert_allclose(by_kernel, by_matrix.predict_proba(K[NEW, :N]), atol=1e-8)


def test_information_in_the_negative_part_of_the_spectrum_is_used_and_said():
    random = np.random.RandomState(0)
    centers = random.uniform(size=(150, 3))
    labels = random.randint(2, size=150)
    radii = np.where(labels, 0.02, 0.09)
    gaps = np.maximum(cdist(centers, centers) - radii[:, None] - radii, 0.0)
    np.fill_diagonal(gaps, 0.0)
    model = distances().fit(gaps[:100, :100], labels[:100])
    assert model.score(gaps[100:, :100], labels[100:]) > 0.85
    assert model.negative_spectrum_.verdict == "useful" and model.negative_spectrum_.z > 2.0
    assert "useful" in str(model.negative_spectrum_)
    gaussian = SimilarityClassifier().fit(X[:N], THREE[:N])
    assert gaussian.negative_spectrum_.verdict == "absent"


@pytest.mark.parametrize("verdict", ["useful", "harmful", "undecided", "unknown"])
def test_the_negative_part_is_judged_for_numbers_too(verdict):
    random = np.random.RandomState(0)
    A, B = random.normal(size=(120, 6)), random.normal(size=(120, 6))
    K = A @ A.T - B @ B.T * (1.0 if verdict == "useful" else 0.01)
    if verdict == "harmful":
        noise = random.normal(size=(120, 120))
        K = K + 0.7 * (noise + noise.T)
    y = (B if verdict == "useful" else A).sum(axis=1) + 0.3 * random.normal(size=120)
    landmarks = 40 if verdict == "unknown" else None
    model = SimilarityRegressor("precomputed", kind="similarity", landmarks=landmarks).fit(K, y)
    found = model.negative_spectrum_
    assert found.verdict == verdict and verdict in str(found)
    sign = {"useful": 1, "harmful": -1}.get(verdict, 0)
    assert sign * found.z > 2.0 if sign else abs(found.z) <= 2.0
    ahead = "flip beats clip" if verdict == "useful" else "clip beats flip"
    assert (ahead in str(found)) == bool(sign)


@pytest.mark.parametrize("cls", [SimilarityClassifier, SimilarityRegressor])
def test_figures_are_those_of_the_out_of_fold_predictions(cls):
    weight = RNG.uniform(0.5, 2.0, N)
    y = THREE if cls is SimilarityClassifier else NUMBERS
    model = cls("precomputed").fit(D[:N, :N], y[:N], sample_weight=weight)
    held_out, figures = model.out_of_fold_, model.family_scores_["average"]
    assert_array_equal(held_out.rows, np.arange(N))
    if cls is SimilarityClassifier:
        of_truth = held_out.prediction[np.arange(N), THREE[:N]]
        is_right = held_out.prediction.argmax(axis=1) == THREE[:N]
        assert figures["log_loss"] == pytest.approx(np.average(-np.log(of_truth), weights=weight))
        assert figures["accuracy"] == pytest.approx(np.average(is_right, weights=weight))
    else:
        mean = np.average(NUMBERS[:N], weights=weight)
        variance = np.average((NUMBERS[:N] - mean) ** 2, weights=weight)
        error = np.average((held_out.prediction - NUMBERS[:N]) ** 2, weights=weight)
        assert figures["mse"] == pytest.approx(error / variance)
        assert figures["r2"] == pytest.approx(1.0 - error / variance)


def test_extreme_targets_do_not_decide():
    wild = NUMBERS.copy()
    wild[:2] += 500.0
    error = np.abs(SimilarityRegressor().fit(X[:N], wild[:N]).predict(X[NEW]) - NUMBERS[NEW])
    assert np.median(error) < 1.0


def test_families_and_the_whole_have_figures():
    scores = distances().fit(D[:N, :N], THREE[:N]).family_scores_
    assert {"clip", "flip", "square", "gaussian", "profiles", "shares"} <= set(scores)
    assert scores["average"]["log_loss"] <= min(s["log_loss"] for s in scores.values()) + 0.05
    assert sum(s["weight"] for name, s in scores.items() if name != "average") == pytest.approx(1.0)


ALL = "clip flip gaussian neighbors profiles square"
FAMILIES = [  # parameters, form of X, families of both learners, of the classifier, and of the regressor
    ({}, "matrix", ALL, "classes shares", "cosines"),
    (
        {"landmarks": 20},
        "matrix",
        "embedding gaussian neighbors profiles",
        "classes narrow_embedding",
        "",
    ),
    ({"direction": "rows"}, "directed", "gaussian neighbors profiles", "classes shares", "cosines"),
    ({}, "sparse", "votes ridge shares", "", ""),
    ({"direction": "both"}, "sparse directed", "votes ridge shares", "", ""),
]


@pytest.mark.parametrize("cls", [SimilarityClassifier, SimilarityRegressor])
@pytest.mark.parametrize("options, form, both, classes, numbers", FAMILIES)
def test_families_that_take_part(cls, options, form, both, classes, numbers):
    K = np.exp(-(D[:60, :60] ** 2))
    if "directed" in form:
        K = K * np.linspace(0.5, 1.0, 60)
    if "sparse" in form:
        K = csr_array(np.where(K > 0.3, K, 0.0))
    model = cls("precomputed", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = model.fit(
            K, (THREE if cls is SimilarityClassifier else NUMBERS)[:60]
        ).family_scores_
    names = f"{both} {classes if cls is SimilarityClassifier else numbers}".split()
    if form == "sparse directed":
        names += [f"{name} of {side}" for name in names[:2] for side in ("rows", "columns")]
    assert set(scores) == {"average", *names}


def test_the_walk_of_a_fit_is_as_short_as_its_page_says():
    folder = Path(mercerless.__file__).parent
    visited = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and folder in Path(code.co_filename).parents and code.co_name[0] != "<":
            visited.add((code.co_filename, code.co_qualname))

    model = distances(kind="auto")
    model.fit(D[:N, :N], THREE[:N])
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model.fit(D[:N, :N], THREE[:N])
    finally:
        sys.setprofile(before)
    visited = {place for place in visited if "optional" not in place[0]}  # stand-ins for callbacks
    assert 100 < len(visited) <= 170  # of which 167 now
    assert len({name for name, _ in visited}) <= 16


# what must not change a prediction


@pytest.mark.parametrize("options", [{}, {"landmarks": np.arange(0, 60, 2)}])
def test_units_and_order_of_new_items_do_not_matter(options):
    model = distances(**options).fit(D[:N, :N], THREE[:N])
    proba = model.predict_proba(D[NEW, :N])
    scaled = distances(**options).fit(1e4 * D[:N, :N], THREE[:N])
    assert_allclose(scaled.predict_proba(1e4 * D[NEW, :N]), proba, atol=1e-4)
    assert_allclose(model.predict_proba(D[NEW, :N][::-1]), proba[::-1], atol=1e-9)


def test_names_of_classes_do_not_matter():
    proba = distances().fit(D[:N, :N], THREE[:N]).predict_proba(D[NEW, :N])
    renamed = np.array([7, 3, 5])[THREE]
    other = distances().fit(D[:N, :N], renamed[:N])
    order = np.argsort([7, 3, 5])
    assert_allclose(other.predict_proba(D[NEW, :N]), proba[:, order], atol=1e-5)


def test_two_fits_and_a_copy_agree():
    model = SimilarityClassifier().fit(X[:N], THREE[:N])
    proba = model.predict_proba(X[NEW])
    again = SimilarityClassifier(n_jobs=2).fit(X[:N], THREE[:N])
    assert_allclose(again.predict_proba(X[NEW]), proba, atol=1e-6)  # BLAS may change last bits
    assert_allclose(pickle.loads(pickle.dumps(model)).predict_proba(X[NEW]), proba, atol=1e-12)


def test_rows_of_weight_zero_are_as_if_they_were_missing():
    weight = np.ones(N)
    weight[::7] = 0.0
    used = weight > 0
    model = distances().fit(D[:N, :N], THREE[:N], sample_weight=weight)
    fewer = distances().fit(D[:N, :N][np.ix_(used, used)], THREE[:N][used])
    assert_allclose(
        model.predict_proba(D[NEW, :N]), fewer.predict_proba(D[NEW, :N][:, used]), atol=1e-10
    )
    assert_array_equal(model.out_of_fold_.rows, np.flatnonzero(used))


def test_weights_of_classes_shift_probabilities():
    plain = distances().fit(D[:N, :N], THREE[:N]).predict_proba(D[NEW, :N])[:, 0].mean()
    heavy = distances(class_weight={0: 5.0, 1: 1.0, 2: 1.0}).fit(D[:N, :N], THREE[:N])
    assert heavy.predict_proba(D[NEW, :N])[:, 0].mean() > plain + 0.03


def test_names_of_data_frames_are_matched():
    names = [f"item {i}" for i in range(160)]
    frame = pd.DataFrame(D, index=names, columns=names)
    train, new = frame.iloc[:N, :N], frame.iloc[NEW, :N]
    model = distances().fit(train, THREE[:N])
    assert_allclose(model.predict_proba(new.iloc[:, ::-1]), model.predict_proba(new))


# honest figures


@pytest.mark.slow
def test_figures_of_pure_noise_are_not_better_than_chance():
    accuracies, r2 = [], []
    for seed in range(20):
        random = np.random.RandomState(seed)
        noise, labels = random.normal(size=(50, 4)), random.randint(2, size=50)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UselessModelWarning)
            held_out = SimilarityClassifier().fit(noise, labels).out_of_fold_
            numbers = SimilarityRegressor().fit(noise, random.normal(size=50)).out_of_fold_
        accuracies.append(np.mean(held_out.prediction.argmax(axis=1) == labels))
        r2.append(r2_score(numbers.target, numbers.prediction))
    assert np.mean(accuracies) < 0.5 + 2.5 * np.std(accuracies) / np.sqrt(20)
    assert np.mean(r2) < 0.0


def test_a_useless_model_says_so():
    random = np.random.RandomState(0)
    with pytest.warns(UselessModelWarning, match="no better than a constant"):
        SimilarityRegressor().fit(random.normal(size=(60, 3)), random.normal(size=60))
    with pytest.warns(UselessModelWarning):
        distances().fit(np.zeros((30, 30)), np.arange(30) % 2)


@pytest.mark.parametrize("values", [np.zeros, np.ones, lambda shape: np.eye(shape[0])])
@pytest.mark.parametrize("cls", [SimilarityClassifier, SimilarityRegressor])
def test_a_matrix_without_information_gives_the_constant_and_says_so(cls, values):
    random = np.random.RandomState(1)
    targets = random.randint(3, size=40) if cls is SimilarityClassifier else random.normal(size=40)
    matrix = values((40, 40))
    with pytest.warns(UselessModelWarning):
        model = cls("precomputed", kind="similarity").fit(matrix, targets)
    predict = getattr(model, "predict_proba", model.predict)
    new = predict(np.zeros((3, 40)))
    assert np.all(np.isfinite(new))
    assert np.abs(new - new[0]).max() < 1e-6


def test_groups_are_held_out_together():
    groups = np.repeat(np.arange(22), 5)
    far = cdist(groups[:, None] * 1.0, groups[:, None] * 1.0)  # only the group is visible
    labels = np.random.RandomState(0).randint(2, size=22)[groups]
    alone = distances().fit(far, labels).out_of_fold_
    assert np.mean(alone.prediction.argmax(axis=1) == labels) > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together = distances().fit(far, labels, groups=groups).out_of_fold_
    assert np.mean(together.prediction.argmax(axis=1) == labels) < 0.8


def test_flipped_labels_are_suspects():
    two = (NUMBERS[:N] > 0).astype(int)
    flipped = np.flatnonzero(np.abs(NUMBERS[:N]) > 1.0)[:4]
    labels = two.copy()
    labels[flipped] = 1 - labels[flipped]
    assert len(set(flipped) & set(distances().fit(D[:N, :N], labels).suspects_.items)) >= 3


@pytest.mark.slow
def test_sets_and_intervals_cover():
    hits, inside = [], []
    for seed in range(8):
        order = np.random.RandomState(seed).permutation(160)
        train, new = order[:100], order[100:]
        model = SimilarityClassifier().fit(X[train], THREE[train])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sets = model.predict_set(X[new], 0.9)
        hits.append(sets[np.arange(60), THREE[new]].mean())
        ends = SimilarityRegressor().fit(X[train], NUMBERS[train]).predict_interval(X[new], 0.9)
        inside.append(np.mean((ends[:, 0] <= NUMBERS[new]) & (NUMBERS[new] <= ends[:, 1])))
    assert np.mean(hits) > 0.86 and 0.86 < np.mean(inside) < 0.97


# several, directed, landmarks


@pytest.mark.filterwarnings("ignore::mercerless.UselessModelWarning")
def test_several_similarities_are_not_behind_the_best_and_leave_noise_out():
    random = np.random.RandomState(3)
    noise = cdist(*[random.normal(size=(160, 4))] * 2)
    one = cdist(X[:, :1], X[:, :1])
    two = cdist(X[:, 1:2], X[:, 1:2])
    matrices = {"one": one, "two": two, "noise": noise}
    model = distances().fit({k: M[:N, :N] for k, M in matrices.items()}, THREE[:N])
    both = model.score({k: M[NEW, :N] for k, M in matrices.items()}, THREE[NEW])
    alone = [
        SimilarityClassifier("precomputed").fit(M[:N, :N], THREE[:N]).score(M[NEW, :N], THREE[NEW])
        for M in (one, two)
    ]
    assert both > max(alone) + 0.05
    of_noise = sum(
        weight
        for member, weight in zip(model.members_, model.weights_)
        if member.similarity == "noise"
    )
    assert of_noise < 0.1
    assert {name for name in model.negative_spectrum_} == {"one", "two", "noise", "sum"}


def test_several_kernels_see_the_same_items():
    model = SimilarityClassifier(["gaussian", TL1(6.0)]).fit(X[:N], THREE[:N])
    assert model.score(X[NEW], THREE[NEW]) > 0.8
    with pytest.raises(ValueError, match="no entry for the similarity 'b'"):
        SimilarityClassifier({"a": "gaussian", "b": "gaussian"}).fit({"a": X}, THREE)


def test_both_directions_know_what_their_mean_does_not():
    K = directed()
    with pytest.raises(ValueError, match="not symmetric"):
        distances(kind="similarity").fit(K[:N, :N], THREE[:N])
    new = {"X": K[NEW, :N], "diag": np.diagonal(K)[NEW]}
    scores = {}
    for direction in ("mean", "both"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UselessModelWarning)
            model = distances(direction, kind="similarity").fit(K[:N, :N], THREE[:N])
        scores[direction] = np.mean(model.predict(**new, reverse=K[:N, NEW].T) == THREE[NEW])
        with pytest.raises(ValueError, match="reverse"):
            model.predict(K[NEW, :N], diag=np.diagonal(K)[NEW])
    rows = distances("rows", kind="similarity").fit(K[:N, :N], THREE[:N])
    scores["rows"] = np.mean(rows.predict(**new) == THREE[NEW])
    assert scores["both"] > scores["mean"] + 0.1 and scores["rows"] > scores["mean"]


def test_directions_of_a_symmetric_matrix_agree():
    one = distances().fit(D[:N, :N], THREE[:N]).predict_proba(D[NEW, :N])
    mean = distances("mean").fit(D[:N, :N], THREE[:N])
    assert_allclose(mean.predict_proba(D[NEW, :N], reverse=D[NEW, :N]), one, atol=1e-9)


@pytest.mark.parametrize("direction", ["symmetric", "mean", "both"])
def test_landmarks_of_a_function_compare_with_few_items(direction):
    calls = []

    def distance(a, b):
        calls.append(1)
        return float(np.abs(a - b).sum())

    kernel = PairFunction(distance, symmetric=direction == "symmetric")
    model = SimilarityClassifier(kernel, landmarks=25, direction=direction, kind="distance")
    model.fit(X[:N], THREE[:N])
    assert len(model.landmarks_) == 25
    calls.clear()
    assert np.mean(model.predict(X[NEW]) == THREE[NEW]) > 0.7
    assert len(calls) <= 2 * 25 * 50 + 50


def test_landmarks_by_number_by_rows_and_as_columns_are_the_same():
    by_number = distances(landmarks=30).fit(D[:N, :N], THREE[:N])
    rows = by_number.landmarks_
    proba = by_number.predict_proba(D[NEW, :N])
    by_rows = distances(landmarks=rows).fit(D[:N, :N], THREE[:N])
    columns = distances(landmarks=rows).fit(D[:N, rows], THREE[:N])
    assert_allclose(by_rows.predict_proba(D[NEW, :N]), proba)
    assert_allclose(columns.predict_proba(D[NEW, rows]), proba, atol=1e-10)


def test_landmarks_need_not_be_training_items():
    model = distances(landmarks="columns", kind="distance").fit(D[:80, 80:N], THREE[:80])
    assert model.score(D[NEW, 80:N], THREE[NEW]) > 0.7
    scores = cross_val_score(
        distances(landmarks="columns", kind="distance"), D[:, 80:N], THREE, cv=3
    )
    assert scores.mean() > 0.7
    with pytest.raises(ValueError, match="landmarks='columns'"):
        distances().fit(D[:80, 80:N], THREE[:80])
    with pytest.raises(ValueError, match="Cannot infer"):
        distances(landmarks="columns").fit(D[:80, 80:N], THREE[:80])


def test_automatic_landmarks_follow_from_the_number_of_items(monkeypatch):
    from mercerless.similarity import comparing

    monkeypatch.setattr(
        comparing, "LIMITS", comparing.SimilarityLimits(all_items=100, landmarks=20)
    )
    with pytest.warns(UserWarning, match="20 landmarks only"):
        model = SimilarityClassifier().fit(X[:N], THREE[:N])
    assert len(model.landmarks_) == 20
    assert SimilarityClassifier(landmarks=None).fit(X[:N], THREE[:N]).landmarks_ is None


@pytest.mark.filterwarnings("ignore::mercerless.UselessModelWarning")  # sixteen rows tell little
def test_many_rows_are_judged_on_one_part(monkeypatch):
    from mercerless.similarity import estimators

    monkeypatch.setattr(estimators, "FOLDED_ROWS", 100)
    model = SimilarityClassifier(landmarks=20).fit(X, THREE)
    assert len(model.out_of_fold_.rows) == 16
    assert model.score(X, THREE) > 0.8


def test_rows_of_dask_are_compared_with_landmarks():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X[:N], chunks=(40, 3))
    lazy = SimilarityClassifier(landmarks=20).fit(rows, THREE[:N])
    plain = SimilarityClassifier(landmarks=20).fit(X[:N], THREE[:N])
    assert_allclose(lazy.predict_proba(X[NEW]), plain.predict_proba(X[NEW]), atol=1e-8)
    again = lazy.predict_proba(da.from_array(X[NEW], chunks=(20, 3))).compute()
    assert_allclose(again, lazy.predict_proba(X[NEW]))


# with the tools of scikit-learn


def test_several_labels_are_left_to_scikit_learn():
    labels = np.column_stack([NUMBERS > 0, X[:, 2] > 0]).astype(int)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        SimilarityClassifier().fit(X[:N], labels[:N])
    model = MultiOutputClassifier(SimilarityClassifier()).fit(X[:N], labels[:N])
    assert np.mean(model.predict(X[NEW]) == labels[NEW]) > 0.8


def test_cross_validation_slices_matrices_both_ways():
    assert cross_val_score(distances(), D, THREE, cv=3).mean() > 0.75


def test_missing_comparisons_are_filled_before():
    gaps = D.copy()
    gaps[np.random.RandomState(0).uniform(size=D.shape) < 0.05] = np.nan
    np.fill_diagonal(gaps, 0.0)
    with pytest.raises(ValueError, match="NaN"):
        distances().fit(gaps[:N, :N], THREE[:N])
    model = make_pipeline(GapFiller(), distances())
    assert model.fit(gaps[:N, :N], THREE[:N]).score(gaps[NEW, :N], THREE[NEW]) > 0.75
    assert cross_val_score(model, gaps, THREE, cv=3).mean() > 0.7
    filler = GapFiller().fit(gaps[:N, :N])
    assert filler.gaps_.n_filled == np.isnan(gaps[:N, :N]).sum()
    completed = filler.transform(gaps[NEW, :N])
    missing = np.isnan(gaps[NEW, :N])
    assert_array_equal(completed[~missing], gaps[NEW, :N][~missing])
    assert np.corrcoef(completed[missing], D[NEW, :N][missing])[0, 1] > 0.8


# what is said


def test_an_own_similarity_that_varies_must_be_given():
    K = X @ X.T
    model = distances(kind="similarity").fit(K[:N, :N], THREE[:N])
    with pytest.warns(UserWarning, match="diag"):
        model.predict(K[NEW, :N])
    proba = model.predict_proba(K[NEW, :N], diag=np.diagonal(K)[NEW])
    assert np.mean(proba.argmax(axis=1) == THREE[NEW]) > 0.6


@pytest.mark.parametrize(
    "fit, message",
    [
        (lambda: distances().fit(D[:N, :N], np.zeros(N)), "one class"),
        (lambda: distances(direction="up").fit(D, THREE), "direction='up'"),
        (lambda: distances(kind="up").fit(D, THREE), "kind='up'"),
        (lambda: distances(landmarks=0).fit(D, THREE), "landmarks must be"),
        (lambda: distances(landmarks=[0, 0]).fit(D, THREE), "row 0 twice"),
        (lambda: distances(landmarks=[0, 200]).fit(D, THREE), "row 200 of 160"),
        (lambda: distances(kind="distance").fit(-D, THREE), "must not be negative"),
        (
            lambda: SimilarityRegressor().fit(X, np.column_stack([NUMBERS] * 2)),
            "MultiOutputRegressor",
        ),
        (lambda: distances().fit(D[:N, :N], THREE[:N]).predict(D[NEW]), "expecting 110 features"),
        (lambda: distances().fit(D, THREE).predict(D, reverse=D), "reverse is for"),
        (lambda: distances().fit(D, THREE).predict(D, among=D), "among is for"),
    ],
)
def test_mistakes_raise_one_sentence(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()


def test_a_class_of_one_item_is_said():
    labels = THREE[:N].copy()
    labels[0] = 9
    with pytest.warns(UserWarning, match="such as 9, have one item only"):
        model = distances().fit(D[:N, :N], labels)
    assert len(model.classes_) == 4


def test_a_class_that_sets_do_not_reach_is_said():
    random = np.random.RandomState(0)
    labels = np.r_[np.zeros(140, dtype=int), np.ones(20, dtype=int)]
    points = random.normal(size=(160, 2)) + 1.2 * labels[:, None]
    model = SimilarityClassifier().fit(points, labels)
    with pytest.warns(UserWarning, match="by_class=True"):
        model.predict_set(points, 0.9)
    sets = model.predict_set(points, 0.9, by_class=True)
    assert sets[labels == 1, 1].mean() > 0.8


def test_sets_by_class_need_nine_items_for_nine_in_ten():
    labels = np.repeat(np.arange(4), 9)
    random = np.random.RandomState(0)
    points = random.normal(size=(236, 2)) + 3.0 * np.resize(labels, 236)[:, None]
    model = SimilarityClassifier().fit(points[:36], labels)
    truth = np.resize(labels, 236)[36:]
    sets = model.predict_set(points[36:], 0.9, by_class=True)
    assert sets[np.arange(200), truth].mean() > 0.85
    with pytest.raises(ValueError, match="at least 19 items of class 0, but there are 9"):
        model.predict_set(points[36:], 0.95, by_class=True)


def test_distances_that_are_called_similarities_are_said():
    with pytest.warns(UserWarning, match="leave out kind"):
        distances(kind="similarity").fit(D[:N, :N], THREE[:N])
