"""Matrices that lack some entries: completed, measured, said; refused where too much is missing."""

import numpy as np
import pytest

from mercerless.comparison.problem import make_problem
from mercerless.comparison.result import compare
from mercerless.core.gaps import fill_gaps
from mercerless.spectra import symmetrize

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(80, 3))
D = np.sqrt(((POINTS[:, None] - POINTS) ** 2).sum(-1))
Y = np.where(POINTS[:, 0] > 0, "right", "left")


def with_gaps(X, share, symmetric=True):
    gaps = np.random.default_rng(1).random(X.shape) < share
    if symmetric:
        gaps = np.triu(gaps, 1) | np.triu(gaps, 1).T
    return np.where(gaps, np.nan, X), gaps


@pytest.mark.parametrize("share", [0.01, 0.25])
def test_known_entries_stay_and_missing_ones_are_predicted(share):
    X, gaps = with_gaps(D, share)
    done = fill_gaps(X)
    np.testing.assert_array_equal(done.X[~gaps], D[~gaps])
    np.testing.assert_array_equal(done.X, done.X.T)
    r2 = 1 - ((done.X - D)[gaps] ** 2).mean() / D[gaps].var()
    assert done.n_filled == gaps.sum() and done.rank > 0
    # what is told of held-out pairs is true of the missing
    assert r2 > 0.9 and done.r2 == pytest.approx(r2, abs=0.1)


def test_noise_gets_no_rank():
    noise = symmetrize(RNG.normal(size=(60, 60)))
    assert fill_gaps(with_gaps(noise, 0.1)[0]).rank == 0


def test_one_direction_is_taken_from_the_other_and_directed_ones_are_not():
    X = D.copy()
    X[3, 5] = X[7, 7] = np.nan
    np.testing.assert_array_equal(fill_gaps(X).X, D)
    directed = POINTS @ RNG.normal(size=(3, 3)) @ POINTS.T
    X = directed.copy()
    X[3, 5] = np.nan
    assert fill_gaps(X).X[3, 5] == pytest.approx(directed[3, 5], abs=0.1 * directed.std())


@pytest.mark.slow
def test_the_report_names_it_and_the_code_to_copy_does_the_same():
    X, _ = with_gaps(D, 0.1)
    result = compare(X, Y, learners=["dummy", "neighbors", "krein-ridge"], repeats=1, curves=False)
    guess = next(guess for guess in result.problem.guesses if guess.what == "missing entries")
    assert "completed" in guess.value and "of known entries that were held out" in guess.why
    assert result.table[0]["score"] > 0.85 and result.problem.kind == "distance"
    names = {"data": (X, Y)}
    exec(result.code("krein-ridge").replace("X, y = ...  # your data", "X, y = data"), names)
    np.testing.assert_array_equal(names["X"], result.problem.X)


def test_refused():
    with pytest.raises(
        ValueError,
        match=r"4\d % of the matrix is missing, more than the 30 % that can be completed",
    ):
        make_problem(with_gaps(D, 0.45)[0], Y)
    X = D.copy()
    X[4], X[:, 4] = np.nan, np.nan
    with pytest.raises(ValueError, match="Item 5 of the matrix is compared with no other item"):
        make_problem(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        make_problem(np.where(np.arange(3) == 1, np.nan, POINTS), Y)
