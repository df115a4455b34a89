"""Experts on parts: kernel machines on clusters of many rows and their neighbors."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercerless import TableClassifier, persistence
from mercerless.lab.model import Expansion, Rows, Settings, with_coefficients
from mercerless.lab.solver import leave_one_out
from mercerless.table import plan as lab_plan
from mercerless.table.members import experts as lab_experts
from mercerless.table.members.candidate import Candidate, Contest
from mercerless.table.members.experts import (
    ExpertMetric,
    ExpertsOnParts,
    choose_metric,
    choose_width,
    expert_candidate,
    fit_experts,
    part_centers,
)
from mercerless.table.weighing import Labeled


def waves(n, d=3, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(-2, 2, (n, d))
    Y = np.sin(3 * X[:, :1]) * np.cos(2 * X[:, 1:2]) + 0.05 * random.normal(size=(n, 1))
    return Rows(X, Y, random.uniform(0.5, 1.5, n))


@pytest.fixture
def small_parts(monkeypatch):
    small = replace(lab_experts.LIMITS, fewest_rows=300, part_rows=100, neighbors=50, around=80)
    monkeypatch.setattr(lab_experts, "LIMITS", small)


def test_leave_one_out_errors_are_those_of_fits_without_each_row():
    rows, ridges = waves(25), np.array([1e-3, 0.1, 2.0])
    K = np.exp(-np.linalg.norm(rows.X[:, None] - rows.X, axis=2))
    expected = []
    for ridge in ridges:
        total = 0.0
        for i in range(25):
            others = np.arange(25) != i
            coef = np.linalg.solve(K[np.ix_(others, others)] + ridge * np.eye(24), rows.Y[others])
            total += float((rows.Y[i, 0] - K[i, others] @ coef[:, 0]) ** 2)
        expected.append(total)
    assert_allclose(leave_one_out(K.copy(), rows.Y, ridges), expected, rtol=1e-8)


def test_one_part_is_kernel_ridge_regression_on_all_rows():
    rows, metric = waves(150), ExpertMetric(0.0, np.array([0.5, 1.0, 2.0]), 0.01)
    experts = fit_experts(rows, metric, np.zeros((1, 3)))
    model = Expansion("exponential", np.arange(150), np.log(metric.bandwidths), np.log(0.01), 0.3)
    model = with_coefficients(model, rows)
    new = waves(40, seed=1).X
    assert_allclose(experts(new), model.predict(new, rows.X), atol=1e-5)


def test_a_row_alone_has_the_prediction_it_has_among_others(small_parts):
    rows = waves(500)
    centers = part_centers(rows.X, 0)
    experts = fit_experts(rows, ExpertMetric(0.0, np.ones(3), 0.01), centers)
    new = waves(60, seed=1).X
    assert len(centers) > 2
    assert_allclose(np.vstack([experts(row[None]) for row in new]), experts(new), atol=1e-6)
    assert experts(new[:0]).shape == (0, 1)


def test_no_part_is_much_larger_than_it_should_be_though_rows_crowd(small_parts):
    random = np.random.RandomState(0)
    X = np.vstack([random.normal(size=(900, 2)) * 0.01, random.uniform(-5, 5, (300, 2))])
    sizes = np.bincount(lab_experts._nearest(X, part_centers(X, 0)))
    assert sizes.max() <= 160 and sizes.min() > 0


def test_a_machine_knows_its_part_and_the_rows_around_it(small_parts):
    rows = waves(400)
    centers = part_centers(rows.X, 0)
    experts = fit_experts(rows, ExpertMetric(0.0, np.ones(3), 0.01), centers)
    parts = lab_experts._nearest(rows.X, centers)
    for p, members in enumerate(experts.members):
        own = np.flatnonzero(parts == p)
        assert np.isin(own, members).all() and len(members) == min(len(own) + 50, 400)
        others = np.setdiff1d(np.arange(400), members)
        around = np.setdiff1d(members, own)
        distance = np.linalg.norm(rows.X - centers[p], axis=1)
        assert distance[around].max() <= distance[others].min()


def test_the_metric_sees_which_feature_matters(small_parts):
    random = np.random.RandomState(0)
    X = random.uniform(-2, 2, (600, 6))
    rows = Rows(X, np.sin(3 * X[:, :1]) + 0.01 * random.normal(size=(600, 1)))
    informed = np.array([-1.5, 1.5, 1.5, 1.5, 1.5, 1.5])
    plain = np.zeros(6)
    error = choose_width(rows, informed, 0, 80).error
    assert error < 0.3 * choose_width(rows, plain, 0, 80).error
    chosen = choose_metric(rows, [plain, informed, -informed], 0)
    expected = choose_width(rows, informed, 0, 80)
    assert_allclose(chosen.bandwidths, expected.bandwidths)
    assert chosen.ridge == expected.ridge


def test_metrics_compete_on_small_neighborhoods_and_one_is_tuned_on_large_ones(monkeypatch):
    rows = waves(900)
    sizes = []

    def errors(rows, Z):
        sizes.append(len(rows))
        return np.ones(15)

    monkeypatch.setattr(lab_experts, "_errors", errors)
    scales = [np.zeros(3), np.array([-1.0, 0.0, 1.0]), np.array([1.0, 0.0, -1.0])]
    choose_metric(rows, scales, 0)
    # three widths each on six neighborhoods
    assert sizes == [300] * 54 + [600] * 18


def test_held_out_targets_do_not_enter_held_out_predictions_but_the_last_fit(small_parts):
    rows = waves(500)
    fold = (np.arange(400), np.arange(400, 500))
    spoiled = Rows(rows.X, rows.Y.copy(), rows.weight)
    spoiled.Y[400:] += 5.0
    first, second = (expert_candidate(some, fold, [np.zeros(3)], 0) for some in (rows, spoiled))
    assert_allclose(first.out_of_fold, second.out_of_fold, rtol=1e-10)
    assert np.mean((first.out_of_fold - rows.Y[400:]) ** 2) < 0.3 * rows.Y.var()
    new = rows.X[400:]
    assert np.mean(second.refit()(new)) > np.mean(first.refit()(new)) + 3.0


def test_few_rows_have_no_experts():
    assert (
        expert_candidate(waves(500), (np.arange(400), np.arange(400, 500)), [np.zeros(3)], 0)
        is None
    )


def test_experts_learn_from_a_limited_number_of_further_rows(small_parts, monkeypatch):
    monkeypatch.setattr(lab_experts, "LIMITS", replace(lab_experts.LIMITS, most_rows=150))
    rows = waves(400)
    many = Labeled(waves(1000, seed=1), None)
    settings = Settings(seed=0)
    folds = [(np.arange(300), np.arange(300, 400))]
    contest = Contest(rows, folds, settings, further=SimpleNamespace(labeled=many))
    tried = [Candidate("gaussian", np.zeros((100, 1)), None, scales=[np.zeros(3)])]
    (experts,) = ExpertsOnParts(3000).candidates(contest, tried)
    assert len(experts.refit().vectors) == 400 + 150


@pytest.mark.slow
def test_experts_win_a_board_of_many_squares_and_survive_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(lab_plan, "LIMITS", replace(lab_plan.LIMITS, wide_centers=500))
    monkeypatch.setattr(lab_experts, "LIMITS", replace(lab_experts.LIMITS, centers=500))
    random = np.random.RandomState(0)
    X = random.uniform(0, 12, (7500, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2 == 0, "black", "white")
    model = TableClassifier(random_state=0, max_iter=5).fit(X[:6500], y[:6500])
    experts = [form for form in model.members_ if form.name == "experts on parts"]
    assert (
        experts
        and model.validation_errors_["experts on parts"] < model.validation_errors_["gaussian"]
    )
    assert model.score(X[6500:], y[6500:]) > 0.9
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    assert_allclose(again.predict_proba(X[6500:]), model.predict_proba(X[6500:]), rtol=1e-12)
