"""Missing comparisons: what is known decides what is filled in."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless.spectra import GapFiller

RNG = np.random.default_rng(1)
N = 60


def matrix(rank, noise=0.0, directed=False, seed=0):
    """Means of rows and columns plus a rank."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(N, rank)), rng.normal(size=(N, rank))
    rows, columns = rng.normal(size=(2, N))
    if not directed:
        B, columns = A * np.where(np.arange(rank) % 2, -1.0, 1.0), rows
    E = rng.normal(size=(N, N))
    return 5.0 + rows[:, None] + columns + A @ B.T + noise * (E if directed else E + E.T)


def with_gaps(X, share=0.1, seed=0, symmetric=False):
    is_gap = np.random.default_rng(seed + 100).uniform(size=X.shape) < share
    is_gap = is_gap | is_gap.T if symmetric else is_gap
    return np.where(is_gap, np.nan, X), is_gap


def test_a_mirrored_entry_fills_a_gap():
    X = matrix(40)
    gaps = X.copy()
    upper = np.triu(RNG.uniform(size=X.shape) < 0.2, 1)
    gaps[upper] = np.nan
    filler = GapFiller()
    assert_allclose(filler.fit_transform(gaps), X, rtol=1e-12)
    assert filler.gaps_.n_filled == upper.sum()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_known_entries_decide_the_rank(rank, directed):
    X = matrix(rank, noise=0.01, directed=directed)
    gaps, is_gap = with_gaps(X, symmetric=not directed)
    filler = GapFiller()
    filled = filler.fit_transform(gaps)
    assert filler.gaps_.rank >= rank
    assert_array_equal(filled[~is_gap], X[~is_gap])
    inner = is_gap & ~np.eye(N, dtype=bool)
    assert np.sqrt(np.mean((filled - X)[inner] ** 2)) < 0.2 * X.std()
    assert 0.95 < filler.gaps_.r2 <= 1.0
    if not directed:
        assert_allclose(filled, filled.T, rtol=1e-12)


def test_without_a_rank_means_of_rows_and_columns_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, N)) + rng.normal(size=N)
    gaps, is_gap = with_gaps(X)
    filler = GapFiller()
    filled = filler.fit_transform(gaps)
    assert filler.gaps_.rank == 0 and 0.2 < filler.gaps_.r2 < 0.6
    np.fill_diagonal(gaps, np.where(np.diag(is_gap), np.nanmedian(np.diag(gaps)), np.diag(X)))
    means = np.nanmean(gaps, axis=1)[:, None] + np.nanmean(gaps, axis=0) - np.nanmean(gaps)
    means = np.clip(means, np.nanmin(gaps), np.nanmax(gaps))
    off = is_gap & ~np.eye(N, dtype=bool)
    assert_allclose(filled[off], means[off])


def test_a_missing_diagonal_is_the_median_of_the_known_one_or_zero():
    X = matrix(1)
    np.fill_diagonal(X, np.arange(N) % 7)
    some = X.copy()
    some[0, 0] = np.nan
    assert GapFiller().fit_transform(some)[0, 0] == np.median(np.diag(X)[1:])
    np.fill_diagonal(X, np.nan)
    assert_array_equal(np.diag(GapFiller().fit_transform(X)), 0.0)


def test_filled_entries_stay_in_the_range_of_the_known_ones():
    D = np.abs(np.subtract.outer(np.arange(N), np.arange(N))).astype(float)
    D = np.minimum(D, 3.0)
    gaps, _ = with_gaps(D, 0.12, symmetric=True)
    np.fill_diagonal(gaps, 0.0)
    filler = GapFiller()
    filled = filler.fit_transform(gaps)
    assert filled.min() == 0.0 and filled.max() == 3.0
    new = filler.transform(with_gaps(D + 100.0, 0.1)[0])
    assert np.sum(new == 3.0) > 100


def test_new_rows_are_the_means_given_their_known_entries():
    """A row is a normal vector: what is missing has the conditional mean."""
    X = matrix(1, noise=0.1, directed=True)
    filler = GapFiller().fit(with_gaps(X)[0])
    model = filler.gaps_.model
    new, is_gap = with_gaps(matrix(1, noise=0.1, directed=True, seed=5)[:7], 0.1, seed=3)
    filled = filler.transform(new)
    assert_array_equal(filled[~is_gap], new[~is_gap])
    covariance = (model.design / model.precision) @ model.design.T + np.eye(N)
    for row, gaps, actual in zip(new, is_gap, filled):
        solved = np.linalg.solve(covariance[np.ix_(~gaps, ~gaps)], (row - model.means)[~gaps])
        expected = model.means[gaps] + covariance[np.ix_(gaps, ~gaps)] @ solved
        assert_allclose(actual[gaps], np.clip(expected, model.low, model.high), rtol=1e-8)
    # what training rows are made of
    filled = filler.fit_transform(with_gaps(X)[0])
    assert_allclose(model.means, filled.mean(axis=0))
    assert_allclose((model.low, model.high), (filled.min(), filled.max()))
    effects = (filled - model.means).mean(axis=1)
    assert_allclose(model.precision[0] * np.mean(effects**2), 0.01, rtol=0.6)  # the noise


def test_new_rows_are_nearly_right():
    X = matrix(3, noise=0.01, directed=True)
    new = X[:20] + 0.5 * X[20:40] - 0.5 * X[40:60]
    filler = GapFiller().fit(with_gaps(X)[0])
    gaps, is_gap = with_gaps(new, 0.1)
    inside = is_gap & (new > X.min()) & (new < X.max())
    error = filler.transform(gaps)[inside] - new[inside]
    assert np.sqrt(np.mean(error**2)) < 0.1 * new.std()
    assert_array_equal(filler.transform(new), new)


def test_units_and_origin_do_not_matter():
    gaps, _ = with_gaps(matrix(3, noise=0.1, directed=True))
    new, _ = with_gaps(matrix(3, noise=0.1, directed=True, seed=2)[:5], 0.1)
    filler, other = GapFiller().fit(gaps), GapFiller().fit(1e-5 * gaps + 3.0)
    assert_allclose(other.transform(1e-5 * new + 3.0), 1e-5 * filler.transform(new) + 3.0)
    assert filler.gaps_.rank == other.gaps_.rank
    assert_allclose(filler.gaps_.r2, other.gaps_.r2)


def test_what_cannot_be_filled_is_one_sentence():
    X = matrix(1)
    lonely = X.copy()
    lonely[2] = lonely[:, 2] = np.nan
    with pytest.raises(ValueError, match="Item 3 of the matrix is compared with no other item"):
        GapFiller().fit(lonely)
    half, is_gap = with_gaps(X, 0.35)
    with pytest.raises(ValueError, match=f"{100 * is_gap.mean():.0f} % of the matrix is missing"):
        GapFiller().fit(half)
    filler = GapFiller().fit(with_gaps(X)[0])
    new = X[:3].copy()
    new[1, :18] = np.nan  # 30 % are allowed
    filler.transform(new)
    new[1, 18] = np.nan
    with pytest.raises(ValueError, match="32 % of row 1 of X is missing"):
        filler.transform(new)
    whole = GapFiller().fit(X)
    assert whole.gaps_ is None
    with pytest.raises(ValueError, match="had none to learn from"):
        whole.transform(new)
    with pytest.raises(ValueError, match="must be square"):
        GapFiller().fit(X[:4])
