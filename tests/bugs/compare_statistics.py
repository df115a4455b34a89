"""Bugs planted in the race of learners: statistics, scores, schedule, records, words, report."""

from bugs import Bug

RACE = "test_compare_race.py -k "
STATISTICS = "test_compare_statistics.py -k "

BUGS = [
    # survived an earlier planting
    Bug(
        "race-groups-inner-search",
        "if problem.groups is not None: keep_groups(estimator, inner_folds(problem, train))",
        "if problem.groups is None and False: keep_groups(estimator, inner_folds(problem, train))",
        RACE + "groups_stay_whole",
    ),
    Bug(
        "race-difference-sign",
        "low, high = differences.interval(i, 0)",
        "low, high = differences.interval(0, i)",
        RACE + "every_interval",
    ),
    Bug(
        "race-test-frame-by-position",
        'X_test = _columns_by_name(X_test, ids, "X_test")',
        "X_test = X_test",
        RACE + "read_by_its_names",
    ),
    Bug(
        "race-rare-test-columns",
        "problem.X_test[:, rows]",
        "problem.X_test[:, : len(rows)]",
        RACE + "rare_classes",
    ),
    Bug(
        "race-balanced-three-classes",
        "return correct * len(y_test) / (len(classes) * counts[which])",
        "return correct * len(y_test) / (2 * counts[which])",
        RACE + "scores_are_those",
    ),
    Bug(
        "race-folder-without-seed",
        'settings = repr((terms.scoring, names, terms.random_state, version("mercerless")))',
        'settings = repr((terms.scoring, names, version("mercerless")))',
        RACE + "'work_folder or another_seed'",
    ),
    Bug(
        "race-own-interval-normal",
        "half_width = stats.t.ppf(0.5 + level / 2, df)",
        "half_width = stats.norm.ppf(0.5 + level / 2)",
        STATISTICS + "definition",
    ),
    Bug(
        "race-verdict-threshold",
        "return bool(self.interval(i, j)[0] > 0.0)",
        "return bool(self.interval(i, j)[0] > -0.5 * self.standard_error[i, j])",
        RACE + "critical_value",
    ),
    Bug(
        "race-negative-threshold",
        "if abs(z) <= RULES.verdict:",
        "if abs(z) <= 0.5 * RULES.verdict:",
        RACE + "two_standard",
    ),
    # new ones
    Bug(
        "race-mutual",
        "mutual: float = 2.0",
        "mutual: float = 1.25",
        STATISTICS + "'definition or agree'",
    ),
    Bug(
        "race-own-averaged",
        "np.fill_diagonal(of_items, _variances_of_one_repeat(splits))",
        "_variances_of_one_repeat(splits)",
        STATISTICS + "definition",
    ),
    Bug(
        "race-unfinished-repeat-counts",
        "if len(of_repeat) == most",
        "if len(of_repeat) >= 1",
        STATISTICS + "unfinished",
    ),
    Bug(
        "race-no-floor",
        "variance = np.maximum(variance, _of_one_disagreement(variance, n_units))",
        "_of_one_disagreement(variance, n_units)",
        STATISTICS + "agree",
    ),
    Bug(
        "race-bounds-added",
        "np.maximum(mutual * of_items, (1.0 + ratio) * of_items + of_training)",
        "np.minimum(mutual * of_items, (1.0 + ratio) * of_items + of_training)",
        STATISTICS + "definition",
    ),
    Bug(
        "race-splits-uncorrected",
        "(1.0 / n_splits + 1.0 / (n_folds - 1)) * _of_pairs(covariance)",
        "(1.0 / n_splits + 1.0 / n_folds) * _of_pairs(covariance)",
        STATISTICS + "definition",
    ),
    Bug(
        "race-part-columns",
        "block(rows, tested, columns), problem.y_test",
        "block(rows, tested, np.arange(len(columns))), problem.y_test",
        RACE + "own_columns",
    ),
    Bug(
        "race-part-of-other-split",
        "train = take_part(problem, train, task.part, random_state)",
        "train = take_part(problem, test, task.part, random_state)",
        RACE + "own_columns",
    ),
    Bug(
        "race-auc-class",
        "ranks = probability[:, -1] if len(classes) == 2",
        "ranks = probability[:, 0] if len(classes) == 2",
        RACE + "areas",
    ),
    Bug(
        "race-stale-folds",
        "_LAST_FOLDS[1:3] != (repeat, random_state)",
        "_LAST_FOLDS[2:3] != (random_state,)",
        RACE + "own_data_repeat",
    ),
    Bug(
        "race-target-number",
        "target=_by_number(problem, y_test),",
        "target=_by_number(problem, np.sort(y_test)),",
        RACE + "records_hold",
    ),
    Bug(
        "race-pipeline-first-step",
        "last = estimator[-1] if isinstance(estimator, Pipeline) else estimator",
        "last = estimator[0] if isinstance(estimator, Pipeline) else estimator",
        RACE + "'last_step or groups_stay'",
    ),
    Bug(
        "race-vote-members-unfolded",
        "for _, member in estimator.estimators: keep_groups(member, folds)",
        "for _, member in estimator.estimators[:1]: keep_groups(member, folds)",
        RACE + "groups_stay_whole",
    ),
    Bug(
        "race-key-without-part",
        'return f"{self.learner}_{self.form}_{self.repeat}_{self.fold}_{self.part:.6g}"',
        'return f"{self.learner}_{self.form}_{self.repeat}_{self.fold}"',
        RACE + "files_that_differ",
    ),
    Bug(
        "race-told-by-number",
        "target = labels[target]\n        predicted = labels[predicted]",
        "target = labels[target]\n        predicted = target",
        RACE + "told_predictions",
    ),
    Bug(
        "race-terminal",
        'stream.reconfigure(errors="replace")',
        'stream.reconfigure(errors="strict")',
        RACE + "'terminal and ascii'",
    ),
    Bug("race-minutes", "if seconds >= 2 * size:", "if seconds > 2 * size:", RACE + "in_words"),
    Bug(
        "race-negative-zero",
        'f"{score:z.3f}" if metric == "r2"',
        'f"{score:.3f}" if metric == "r2"',
        RACE + "in_words",
    ),
    Bug(
        "race-strata-of-other-rows",
        "strata = problem.y[test] if problem.is_classification",
        "strata = problem.y[: len(test)] if problem.is_classification",
        RACE + "judged_are_those",
    ),
    # defaults first
    Bug(
        "race-best-form-by-score",
        "if record.is_split and name not in self.failed:",
        'if record.is_split and record.task.form == "defaults" and name not in self.failed:',
        "test_compare.py -k whatever_it_scores",
    ),
    Bug(
        "race-search-before-defaults",
        "step = self._next_default() or self._next_judgment() or self._next_search()",
        "step = self._next_search() or self._next_default() or self._next_judgment()",
        "test_compare.py -k its_defaults_then",
    ),
    Bug(
        "race-decided-on-parts",
        "return n_splits == N_FOLDS and self.parts[name] == self.limits.get(name, Level()).part",
        "return n_splits == N_FOLDS",
        "test_compare.py -k not_decided",
    ),
    Bug(
        "race-key-without-form",
        'return f"{self.learner}_{self.form}_{self.repeat}_{self.fold}_{self.part:.6g}"',
        'return f"{self.learner}_{self.repeat}_{self.fold}_{self.part:.6g}"',
        RACE + "files_that_differ",
    ),
]
