"""Time series: distances by warping against a plain program, files of unequal lengths, fit and predict."""

import csv

import numpy as np
import pytest

from mercerless.cli import main
from mercerless.comparison import series as series_module
from mercerless.comparison.problem import item_similarities
from mercerless.comparison.reading import read_problem
from mercerless.comparison.series import dtw, from_text, to_text, warping_steps

RNG = np.random.default_rng(0)


def plain(a, b, window=0.2):
    """The same distance of two series, cell by cell."""
    a, b = np.atleast_2d(a).T, np.atleast_2d(b).T
    n, m = len(a), len(b)
    width = max(np.ceil(window * max(n, m)), abs(n - m))
    total = {(-1, -1): 0.0}
    for r in range(n):
        for s in range(m):
            if abs(r - s) > width:
                continue
            before = [(r - 1, s - 1), (r - 1, s), (r, s - 1)]
            best = min(total.get(place, np.inf) for place in before)
            total[r, s] = best + float(np.sum((a[r] - b[s]) ** 2))
    return np.sqrt(total[n - 1, m - 1])


@pytest.mark.parametrize("n_dimensions", [1, 3])
def test_distances_are_those_of_a_plain_program(n_dimensions, monkeypatch):
    limits = series_module.WarpingLimits(pairs=7)  # so that there are several parts
    monkeypatch.setattr(series_module, "WARPING", limits)
    lengths = [5, 12, 12, 3, 9, 20]
    A = [RNG.normal(size=(n_dimensions, n)).squeeze() for n in lengths]
    B = [RNG.normal(size=(n_dimensions, n)).squeeze() for n in (4, 17)]
    np.testing.assert_allclose(dtw(A, A), [[plain(a, b) for b in A] for a in A], rtol=1e-12)
    np.testing.assert_allclose(dtw(A, B), [[plain(a, b) for b in B] for a in A], rtol=1e-12)


def test_warping_ignores_a_shift_that_a_plain_difference_sees():
    time = np.linspace(0, 1, 40)
    peak = np.exp(-300 * (time - 0.45) ** 2)
    shifted = np.exp(-300 * (time - 0.55) ** 2)
    assert dtw([peak], [shifted])[0, 0] < 0.2 * np.linalg.norm(peak - shifted)
    assert dtw([peak], [peak])[0, 0] == 0.0


def test_gaps_are_interpolated_and_series_of_gaps_raise():
    full, gap = np.array([0.0, 1.0, 2.0]), np.array([0.0, np.nan, 2.0])
    assert dtw([full], [gap])[0, 0] == 0.0
    with pytest.raises(ValueError, match="has no numbers, only gaps"):
        dtw([full], [np.array([np.nan, np.nan])])


def test_series_as_text_lose_nothing():
    for one in (RNG.normal(size=7), RNG.normal(size=(2, 5))):
        np.testing.assert_array_equal(from_text(to_text(one)), one)


def write_series(path, n, rng):
    """Series of unequal length: a peak early or late, and noise."""
    lines = []
    for i in range(n):
        time = np.linspace(0, 1, rng.integers(20, 40))
        peak = np.exp(-50 * (time - (0.3 if i % 2 else 0.7)) ** 2)
        values = peak + 0.1 * rng.normal(size=len(time))
        lines.append(",".join(map(str, values.round(4))) + ":" + ("early" if i % 2 else "late"))
    head = "@problemName peaks\n@timestamps false\n@classLabel true early late\n@data\n"
    path.write_text(head + "\n".join(lines))


def test_unequal_series_are_compared_by_warping(tmp_path):
    write_series(tmp_path / "peaks.ts", 12, RNG)
    problem = read_problem(tmp_path / "peaks.ts")
    assert problem.kind == "distance" and problem.similarity == "dtw"
    said = {guess.what: guess.value for guess in problem.guesses}
    assert said["series"].endswith("points each, compared by dynamic time warping")
    np.testing.assert_allclose(problem.X, item_similarities(problem.items, problem.items, "dtw"))
    stretched = read_problem(tmp_path / "peaks.ts", kind="table")
    assert stretched.kind == "table" and stretched.X.shape[0] == 12


def test_series_that_would_take_too_long_are_stretched(tmp_path, monkeypatch):
    write_series(tmp_path / "peaks.ts", 12, RNG)
    items = read_problem(tmp_path / "peaks.ts").items
    limits = series_module.WarpingLimits(most_steps=warping_steps(items) - 1)
    monkeypatch.setattr("mercerless.comparison.reading.WARPING", limits)
    assert read_problem(tmp_path / "peaks.ts").kind == "table"


@pytest.mark.slow
def test_fit_and_predict_series(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    write_series(tmp_path / "peaks.ts", 40, rng)
    write_series(tmp_path / "new.ts", 10, rng)
    assert main(["fit", "peaks.ts", "--learner", "neighbors"]) == 0
    assert main(["predict", "model.skops", "new.ts"]) == 0
    with open("predictions.csv", newline="") as file:
        predicted = [row["prediction"] for row in csv.DictReader(file)]
    assert predicted == ["early" if i % 2 else "late" for i in range(10)]
    (tmp_path / "words.csv").write_text("a,b\n1,2\n3,4\n")
    assert main(["predict", "model.skops", "words.csv"]) == 2
    assert "holds no time series" in capsys.readouterr().err


def test_rows_of_numbers_are_series_on_request(tmp_path, monkeypatch, capsys):
    """A UCR file, class first, by warping: compared, fitted, and predicted with and without the classes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    classes = np.arange(30) % 2 + 1
    shifts = rng.integers(0, 6, size=30)
    series = np.array([np.sin(np.arange(s, s + 40) / (2 + 3 * c)) for s, c in zip(shifts, classes)])
    series = (series + 0.05 * rng.normal(size=series.shape)).round(4)
    np.savetxt("UCR.tsv", np.column_stack([classes, series]), delimiter="\t", fmt="%.6g")
    np.savetxt("new.tsv", series, delimiter="\t", fmt="%.6g")
    problem = read_problem("UCR.tsv", similarity="dtw")
    assert problem.kind == "distance"
    np.testing.assert_array_equal(problem.y, classes)
    np.testing.assert_allclose(problem.X, dtw(list(series), list(series)), atol=1e-9)
    assert main(["fit", "UCR.tsv", "--similarity", "dtw", "--learner", "neighbors@defaults"]) == 0
    for name in ("UCR.tsv", "new.tsv"):
        assert main(["predict", "model.skops", name]) == 0
        with open("predictions.csv", newline="") as file:
            predicted = [int(row["prediction"]) for row in csv.DictReader(file)]
        np.testing.assert_array_equal(predicted, classes)
    (tmp_path / "words.csv").write_text("a,b,c\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n")
    (tmp_path / "mixed.csv").write_text("a,b,c\n1,u,x\n3,v,y\n5,u,x\n7,v,y\n")
    with pytest.raises(ValueError, match="has words in b, and --similarity dtw compares series"):
        read_problem("mixed.csv", labels="c", similarity="dtw")
    assert main(["predict", "model.skops", "words.csv"]) == 2
    assert "holds no time series" in capsys.readouterr().err
