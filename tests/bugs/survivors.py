"""Bugs that no test caught when they were drawn at random, or thought of by an auditor; each has its test now."""

from bugs import Bug

BUGS = [
    Bug(
        "left-paired-weights",
        "np.sqrt((weight**2) @ (difference - mean) ** 2)",
        "np.sqrt(weight @ (difference - mean) ** 2)",
        "test_similarity_solvers.py -k paired_z_of_weighted",
    ),
    Bug(
        "left-cross-calibration-weights",
        "calibration = calibrate_scores(scores[train], labels[train], weight[train])",
        "calibration = calibrate_scores(scores[train], labels[train])",
        "test_conformal.py -k cross_calibration_never",
    ),
    Bug(
        "left-constant-scores-weights",
        "shift = np.average(scores.mean(axis=2), axis=1, weights=weight)\n    bias =",
        "shift = scores.mean(axis=(1, 2))\n    bias =",
        "test_krein.py -k constant_scores_give",
    ),
    Bug(
        "left-shares-without-weight",
        "spread = solution * self.spread[members]",
        "spread = 1.0 * self.spread[members]",
        "test_averaging.py -k dropped_by_their_part",
    ),
    Bug(
        "left-ridge-grid-targets",
        "Z = root[:, None] * rows.Y\n    points",
        "Z = root[:, None] / rows.Y\n    points",
        "test_lab_solver.py -k ridge_grid_chooses",
    ),
    Bug(
        "left-hits-unit-of-new-items",
        "csr_array(_similarities(hits, self.unit_)[:, self.used_])",
        "csr_array(_similarities(hits, _unit_of(hits, self.kind_))[:, self.used_])",
        "test_hits.py -k distances_are_hits_too",
    ),
    Bug(
        "left-neighbors-unit-of-weights",
        "weight = weight[items] / weight[items].mean()",
        "weight = weight[items] * weight[items].mean()",
        "test_nearby.py -k unit_of_the_weights",
    ),
    Bug(
        "left-report-test-score",
        "text = NO_NUMBER if test is None else _score(comparison, test)",
        'text = NO_NUMBER if test is None else _score(comparison, row["score"])',
        "test_report.py -k every_column_of_the_table",
    ),
    Bug(
        "left-hits-class-weight",
        "weight, classes, labels = check_classes(y, sample_weight, self.class_weight, name)",
        "weight, classes, labels = check_classes(y, sample_weight, None, name)",
        "test_hits.py -k class_weights_multiply",
    ),
    Bug(
        "left-gap-of-a-lonely-pair",
        "b = 1.0 if j in present else -1.0\n        gap = 0.0",
        "b = 1.0 if j in present else -1.0\n        gap = 1.0",
        "test_krein.py -k one_class_machines",
    ),
    Bug(
        "left-hits-groups-of-other-rows",
        "return self.all_groups[self.used]",
        "return self.all_groups[: len(self.used)]",
        "test_hits.py -k out_of_their_groups",
    ),
    Bug(
        "left-sum-in-other-units",
        "squares = block.squares / self.units[name]",
        "squares = block.squares",
        "test_several.py -k in_any_units",
    ),
    Bug(
        "left-fit-seed",
        "Terms(problem, metric, args.seed)",
        "Terms(problem, metric, 0)",
        "test_cli_fit_predict.py -k seed_is_that",
    ),
    Bug(
        "left-command-without-curves",
        'words.append("--no-curves")',
        "pass",
        "test_compare_inputs.py -k goes_on",
    ),
    Bug(
        "left-reverse-in-its-own-order",
        "rows = rows[[names.index(name) for name in ids]]",
        "rows = rows[:]",
        "test_cli_fit_predict.py -k both_directions",
    ),
    Bug(
        "left-item-in-no-pair",
        'far = 0.0 if kind == "similarity" else description["largest"]',
        "far = 0.0",
        "test_reading_properties.py -k that_no_pair_names",
    ),
    Bug(
        "left-wishart-scale-unchecked",
        '_positive(scale, "length_scale", n_features)\n        elif scale.shape',
        "pass\n        elif scale.shape",
        "test_hyper.py -k bad_parameters",
    ),
    Bug(
        "left-skops-looked-for-late",
        '"""Raise before any work if skops is not installed."""\n    _skops()',
        '"""Raise before any work if skops is not installed."""',
        "test_cli_fit_predict.py -k without_skops",
    ),
    Bug(
        "left-labels-of-nodes-unsaid",
        'self.guess("labels", f"attribute {name!r} of the nodes", "its name", "labels")',
        "pass",
        "test_corpus.py -k 'test_matrices and GraphML'",
    ),
    Bug(
        "left-slopes-without-weights",
        "calibration = calibrate_each(scores, labels, weight)",
        "calibration = calibrate_each(scores, labels)",
        "test_lab_parts.py -k losses_and_pools",
    ),
    Bug(
        "left-direction-unchecked",
        'check_option("direction", self.direction, ("symmetric", "mean", "both"))',
        "pass",
        "test_similarity.py -k bad_parameters_speak",
    ),
    Bug(
        "left-importance-weights",
        "np.average(losses, weights=self.weight[test])",
        "np.average(losses)",
        "test_table_importance.py -k held_out_rows_by_their",
    ),
    Bug(
        "left-search-in-units-of-one",
        "size = float(np.std(y[used])) or 1.0",
        "size = float(np.std(y[used])) and 1.0",
        "test_dank_tuning.py -k units_of_y",
    ),
    Bug(
        "left-two-sides-unit-of-weights",
        "weight = weight / weight.mean()\n    norm = largest_singular_value(K) or 1.0",
        "weight = weight * weight.mean()\n    norm = largest_singular_value(K) or 1.0",
        "test_directed.py -k both_sides_are_those",
    ),
]
