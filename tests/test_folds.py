"""Folds: balanced, repeatable, and copies of an item always on one side."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from mercerless.core.folds import (
    assign_folds,
    find_copies,
    fold_numbers,
    hold_out,
    join_groups,
    make_folds,
)


class TestFindCopies:
    X = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [-0.0, 1.0], [1.0, 2.0 + 1e-15]])

    def test_vectors_are_copies_where_every_feature_is_equal(self):
        assert_array_equal(find_copies(self.X), [0, 1, 0, 1, 2])
        assert_array_equal(find_copies(np.asfortranarray(self.X)), [0, 1, 0, 1, 2])
        assert_array_equal(find_copies(self.X[::-1]), [0, 1, 2, 1, 2])

    def test_a_matrix_shows_its_copies_up_to_rounding(self):
        X = np.random.RandomState(0).normal(size=(30, 3))
        rows = np.r_[np.arange(30), [4, 4, 7]]
        K = RBF()(X)[np.ix_(rows, rows)]
        K *= 1 + 1e-13 * np.random.RandomState(1).normal(size=K.shape)
        assert_array_equal(find_copies(K, precomputed=True), rows)
        assert_array_equal(find_copies(K.astype(np.float32), precomputed=True), rows)
        assert_array_equal(find_copies(-np.log(RBF()(X)), precomputed=True), np.arange(30))

    def test_items_that_are_alike_only_to_the_others_are_no_copies(self):
        """Their similarity to themselves is larger than that to each other."""
        K = np.ones((4, 4)) + np.eye(4)
        assert_array_equal(find_copies(K, precomputed=True), np.arange(4))

    def test_a_few_large_entries_make_no_copies(self):
        """Rounding is relative to the row: a kernel of very different lengths has entries of very different sizes."""
        X = np.exp(3.0 * np.random.RandomState(0).normal(size=(100, 2)))
        K = (1.0 + X @ X.T) ** 3
        assert K.max() > 1e14 * np.median(K)
        assert_array_equal(find_copies(K, precomputed=True), np.arange(100))
        rows = np.r_[np.arange(100), [4, 17]]
        K = K[np.ix_(rows, rows)]
        assert_array_equal(find_copies(K, precomputed=True), rows)

    def test_a_matrix_with_unknown_entries(self):
        K = np.array([[1, np.nan, 1], [np.nan, 2, np.nan], [1, np.nan, 1.0]])
        assert_array_equal(find_copies(K, precomputed=True), [0, 1, 0])

    def test_objects_are_copies_where_they_are_equal(self):
        a, b = {"set"}, {"set"}
        assert_array_equal(find_copies(["x", "y", "x"]), [0, 1, 0])
        assert_array_equal(find_copies([-1, -2, -1]), [0, 1, 0])  # whose hashes are the same
        assert_array_equal(find_copies([np.arange(3), np.arange(4), np.arange(3)]), [0, 1, 0])
        assert_array_equal(find_copies([["a", "b"], ["a"], ["a", "b"], ("a", "b")]), [0, 1, 0, 2])
        assert_array_equal(find_copies([a, b, a]), [0, 1, 0])  # no hash: the same object only
        assert_array_equal(find_copies(np.array(["x", "y", "x"], dtype=object)), [0, 1, 0])


class TestAssignFolds:
    @pytest.mark.parametrize("n", [5, 23, 100, 1001])
    def test_sizes_differ_by_at_most_one_also_within_classes(self, n):
        labels = np.random.RandomState(0).choice(3, n, p=[0.7, 0.25, 0.05])
        fold_of = assign_folds(5, n, labels=labels, random_state=0)
        assert np.ptp(np.bincount(fold_of, minlength=5)) <= 1
        for label in np.unique(labels):
            assert np.ptp(np.bincount(fold_of[labels == label], minlength=5)) <= 1

    def test_sets_stay_whole_and_folds_stay_balanced(self):
        random = np.random.RandomState(0)
        sets = random.choice(200, 600)
        labels = random.choice(3, 600, p=[0.6, 0.3, 0.1])
        fold_of = assign_folds(5, 600, labels=labels, together=sets, random_state=1)
        for number in np.unique(sets):
            assert len(np.unique(fold_of[sets == number])) == 1
        assert np.ptp(np.bincount(fold_of)) <= 4
        table = np.array([np.bincount(labels[fold_of == k], minlength=3) for k in range(5)])
        assert np.all(np.ptp(table, axis=0) <= 6)

    def test_one_huge_set_fills_a_fold_alone(self):
        sets = np.r_[np.zeros(50, dtype=int), np.arange(1, 51)]
        fold_of = assign_folds(3, 100, together=sets, random_state=0)
        assert sorted(np.bincount(fold_of)) == [25, 25, 50]

    def test_many_rows_take_little_time(self):
        labels = np.random.RandomState(0).choice(10, 300_000)
        fold_of = assign_folds(5, len(labels), labels=labels, random_state=0)
        assert np.ptp(np.bincount(fold_of)) <= 1

    def test_the_seed_decides(self):
        first, again, other = (assign_folds(3, 50, random_state=seed) for seed in (0, 0, 1))
        assert_array_equal(first, again)
        assert np.any(first != other)


class TestFoldNumbers:
    X = np.random.RandomState(0).normal(size=(40, 2))

    @pytest.mark.parametrize("labels", [None, np.arange(120) % 40 % 3])
    def test_copies_are_never_on_both_sides(self, labels):
        rows = np.tile(np.arange(40), 3)
        for train, test in make_folds(
            5, self.X[rows], labels, classify=labels is not None, random_state=0
        ):
            assert not set(rows[train]) & set(rows[test])
            assert len(test) == 24
        K = RBF()(self.X)[np.ix_(rows, rows)]
        for train, test in make_folds(
            5, K, labels, classify=labels is not None, precomputed=True, random_state=0
        ):
            assert not set(rows[train]) & set(rows[test])

    def test_without_copies_the_items_do_not_matter(self):
        assert_array_equal(
            fold_numbers(5, self.X, random_state=3), assign_folds(5, 40, random_state=3)
        )

    def test_groups_and_copies_are_joined(self):
        groups = np.arange(40) // 2
        groups[39] = 0
        X = self.X.copy()
        X[5] = X[0]
        fold_of = fold_numbers(4, X, groups=groups, random_state=0)
        for number in np.unique(groups):
            assert len(np.unique(fold_of[groups == number])) == 1
        assert len(set(fold_of[[0, 1, 4, 5, 39]])) == 1
        assert_array_equal(
            join_groups(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])), [0, 0, 0, 1]
        )

    def test_fewer_items_or_groups_than_folds_give_fewer_folds(self):
        assert set(fold_numbers(5, self.X[:3], random_state=0)) == {0, 1, 2}
        assert set(fold_numbers(5, self.X, groups=np.arange(40) % 3, random_state=0)) == {0, 1, 2}

    def test_a_table_of_few_values_is_dealt_row_by_row(self):
        """Held-out values would never be seen in training."""
        X = np.random.RandomState(0).choice(2, (100, 1)).astype(float)
        for train, test in make_folds(5, X, random_state=0):
            assert set(X[train, 0]) == set(X[test, 0]) == {0, 1}
        assert len(make_folds(5, np.ones((20, 2)), random_state=0)) == 5

    def test_a_class_with_fewer_items_than_folds(self):
        labels = np.r_[np.zeros(38), 1, 1]
        fold_of = fold_numbers(5, self.X, labels, classify=True, random_state=0)
        assert len(set(fold_of)) == 5 and len(set(fold_of[labels == 1])) == 2

    def test_splitters_and_iterables_are_used_as_they_are(self):
        X, labels = np.tile(self.X[:10], (4, 1)), np.arange(40) % 2
        for cv in (KFold(4), StratifiedKFold(4, shuffle=True, random_state=1)):
            given = list(cv.split(X, labels))
            for mine in (
                make_folds(cv, X, labels, classify=True),
                make_folds(given, X),
                make_folds(iter(given), X),
            ):
                for (train, test), (a, b) in zip(mine, given, strict=True):
                    assert_array_equal(train, a)
                    assert_array_equal(test, b)
        groups = np.arange(40) // 5
        fold_of = fold_numbers(GroupKFold(4), X, groups=groups)
        assert all(len(set(fold_of[groups == k])) == 1 for k in range(8))

    def test_items_without_weight_are_in_no_fold(self):
        used = np.arange(0, 40, 2)
        assert sorted(np.bincount(fold_numbers(5, self.X, used=used, random_state=0))) == [4] * 5
        given = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]
        assert_array_equal(fold_numbers(given, self.X, used=used), used // 20)
        assert_array_equal(fold_numbers(given[:1], self.X, used=used[:5]), np.zeros(5))

    @pytest.mark.parametrize(
        ("cv", "groups", "message"),
        [
            (1, None, "at least 2 folds"),
            ([(np.arange(20), np.arange(20, 40))], None, "leave rows out"),
            ([(np.arange(20), np.arange(40)), (np.arange(20), np.arange(20, 40))], None, "overlap"),
            (5, np.zeros(40), "one group only"),
        ],
    )
    def test_refusals(self, cv, groups, message):
        with pytest.raises(ValueError, match=message):
            fold_numbers(cv, self.X, groups=groups)


class TestHoldOut:
    @pytest.mark.parametrize("fraction", [0.1, 0.2, 0.5])
    def test_the_asked_part_of_every_class(self, fraction):
        labels = np.random.RandomState(0).choice(3, 1000, p=[0.7, 0.2, 0.1])
        X = np.random.RandomState(1).normal(size=(1000, 2))
        train, held = hold_out(fraction, X, labels, classify=True, random_state=0)
        assert_array_equal(np.sort(np.r_[train, held]), np.arange(1000))
        assert abs(len(held) - 1000 * fraction) <= 1
        for label in range(3):
            assert abs(np.sum(labels[held] == label) - fraction * np.sum(labels == label)) <= 1

    def test_copies_and_groups_stay_together(self):
        rows = np.tile(np.arange(100), 3)
        X = np.random.RandomState(0).normal(size=(100, 2))[rows]
        train, held = hold_out(0.2, X, random_state=0)
        assert len(held) == 60 and not set(rows[train]) & set(rows[held])
        groups = np.arange(300) % 7
        train, held = hold_out(0.2, np.arange(300.0)[:, None], groups=groups, random_state=0)
        assert not set(groups[train]) & set(groups[held]) and len(set(groups[held])) <= 2

    def test_something_is_always_held_out_and_something_left(self):
        for fraction in (0.01, 0.99):
            train, held = hold_out(fraction, np.arange(4.0)[:, None], random_state=0)
            assert len(train) and len(held)
