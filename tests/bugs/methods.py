"""Bugs in spectra, Krein, hyper, DANK and asymmetric models, folds, displays and rates."""

from bugs import Bug

METHODS, SPECTRA, FOLDS = "test_methods.py", "test_spectra.py", "test_folds.py"
KREIN_E, DISPLAYS, INSPECT = (
    "test_krein_estimators.py",
    "test_krein_displays.py",
    "test_inspection.py",
)
THEORY = "test_theory.py"

BUGS = [
    # survived a planting before: asymmetry, groups, weights, rows that are no prefix, ties
    Bug(
        "methods-rounding-is-all",
        "tolerance = 1e-5 if dtype == np.float32 else SYMMETRY_RTOL",
        "tolerance = 1e-2",
        f"{METHODS} -k Rounding",
    ),
    Bug(
        "methods-first-block-forgotten",
        "worst = max(worst, float(np.abs(K[rows, rows.start :] - K[rows.start :, rows].T).max()))",
        "worst = float(np.abs(K[rows, rows.start :] - K[rows.start :, rows].T).max())",
        f"{METHODS} -k blocks",
    ),
    Bug(
        "methods-direction-is-noise",
        "return (W + W.T) / 2.0 if noisy else W",
        "return (W + W.T) / 2.0",
        f"{METHODS} -k directed_function",
    ),
    Bug(
        "methods-fit-splits-groups",
        "keep_groups(estimator, inner_folds(problem, np.arange(len(problem.y))))",
        "pass",
        f"{METHODS} -k command_line",
    ),
    Bug(
        "methods-groups-of-a-prefix",
        "groups = all_groups[used]",
        "groups = all_groups[: len(used)]",
        f"{METHODS} -k without_weight",
    ),
    Bug(
        "methods-copies-of-a-prefix",
        "copies if len(copies) == len(used) else copies[used]",
        "copies if len(copies) == len(used) else copies[: len(used)]",
        f"{METHODS} -k without_weight",
    ),
    Bug(
        "methods-zero-weights-reverse",
        "(basis.spread(coef.T) for coef in choice.coef)",
        "(np.pad(coef.T, ((0, 0), (0, len(Y) - len(coef)))) for coef in choice.coef)",
        f"{METHODS} -k ZeroWeight",
    ),
    Bug(
        "methods-zero-weights-backward-only",
        "(basis.spread(coef.T) for coef in choice.coef)",
        "(basis.spread(coef.T) for coef in choice.coef); from_items = np.roll(from_items, 1, axis=1)",
        f"{METHODS} -k ZeroWeight",
    ),
    Bug(
        "methods-zero-weights-reasons",
        "self._basis.weighted(from_items) @ solution.right",
        "from_items[:, : len(Y)] @ solution.right",
        f"{METHODS} -k reasons",
    ),
    Bug(
        "methods-target-scale-unweighted",
        "self.std = np.sqrt(np.average((rows.Y - center) ** 2, axis=0, weights=rows.weight))",
        "self.std = rows.Y.std(axis=0)",
        f"{METHODS} -k deviation",
    ),
    Bug(
        "methods-cv-of-a-prefix",
        "fold_numbers(cv, np.zeros(n), y, classify=classify)[rows]",
        "fold_numbers(cv, np.zeros(n), y, classify=classify)[: len(rows)]",
        f"{METHODS} -k own_folds",
    ),
    Bug("methods-tied-votes", "return votes + bounded_sums", "return votes", f"{METHODS} -k Votes"),
    Bug(
        "methods-vote-at-zero",
        "votes[:, i] += score <= 0",
        "votes[:, i] += score < 0",
        f"{METHODS} -k Votes",
    ),
    Bug(
        "methods-sums-outvote",
        "return votes + bounded_sums",
        "return votes + sums",
        f"{METHODS} -k Votes",
    ),
    # spectra
    Bug(
        "methods-shift-exact-rows-only",
        "self.tolerance_ = max(2.0 * asymmetry_of_rounding, _row_rounding(K))",
        "self.tolerance_ = 0.0",
        f"{SPECTRA} -k shift",
    ),
    Bug(
        "methods-shift-without-noise",
        "self.tolerance_ = max(2.0 * asymmetry_of_rounding, _row_rounding(K))",
        "self.tolerance_ = _row_rounding(K)",
        f"{SPECTRA} -k shift",
    ),
    Bug(
        "methods-shift-by-projection-alone",
        "is_equal = differences <= tolerance",
        "is_equal = differences >= 0.0",
        f"{SPECTRA} -k shift",
    ),
    Bug(
        "methods-shift-of-single-precision",
        "tolerance = max(tolerance, _row_rounding(self.rows_.astype(np.float32)))",
        "tolerance = self.tolerance_",
        f"{SPECTRA} -k computed_again",
    ),
    Bug(
        "methods-shift-keeps-a-view",
        "self.rows_ = K.copy()",
        "self.rows_ = K",
        f"{SPECTRA} -k view",
    ),
    Bug(
        "methods-shift-rows-stay",
        "self.rows_ = None",
        "self.rows_ = getattr(self, 'rows_', None)",
        f"{SPECTRA} -k earlier_mode",
    ),
    Bug(
        "methods-exponential-median",
        "np.median(powers[~np.eye(len(powers), dtype=bool)])",
        "np.median(powers)",
        f"{SPECTRA} -k exponential",
    ),
    Bug(
        "methods-noise-of-eigenvalues",
        "noise = max(n * epsilon * scale, rounding)",
        "noise = n * epsilon * scale",
        f"{SPECTRA} -k rounded_text",
    ),
    # folds, copies, scalings, descents, maps
    Bug(
        "methods-hold-out-labels-of-copies",
        "np.asarray(y)[first[order]]",
        "np.asarray(y)[order]",
        f"{METHODS} -k hold_out",
    ),
    Bug(
        "methods-copies-unweighted-deviation",
        "deviations = np.bincount(of_row, weights=square) / total",
        "deviations = np.bincount(of_row, weights=square) / counts",
        f"{METHODS} -k Merged",
    ),
    Bug(
        "methods-copies-freedom",
        "freedom = w.sum() - np.sum(squared_weights / total)",
        "freedom = w.sum() - len(first)",
        f"{METHODS} -k Merged",
    ),
    Bug(
        "methods-scaling-margin",
        "low=lowest - margin, high=highest + margin,",
        "low=lowest + margin,\n        high=highest - margin,",
        f"{METHODS} -k Scalings",
    ),
    Bug(
        "methods-scaling-second-center",
        "Z = (np.arcsinh(Z) - self.second_center) / self.second_scale",
        "Z = np.arcsinh(Z) / self.second_scale",
        f"{METHODS} -k Scalings",
    ),
    Bug(
        "methods-descent-certificate",
        "projected = np.clip(best.x - best.jac, *bounds.T) - best.x",
        "projected = best.jac",
        f"{METHODS} -k Descent",
    ),
    Bug(
        "methods-descent-not-a-number",
        "np.argmin(np.where(np.isfinite(values), values, np.inf))",
        "np.argmin(values)",
        f"{METHODS} -k Descent",
    ),
    Bug(
        "methods-map-axes-swapped",
        "np.sqrt(np.maximum(values[::-1], 0.0))",
        "np.sqrt(np.maximum(values, 0.0))",
        f"{METHODS} -k Maps",
    ),
    Bug(
        "methods-map-counts-itself",
        "away = np.where(np.eye(len(D), dtype=bool), np.inf, 0.0) plane =",
        "away = np.zeros((len(D), len(D)))\n    plane =",
        f"{METHODS} -k Maps",
    ),
    Bug(
        "methods-map-order-of-classes",
        'leaves[np.argsort(y[leaves], kind="stable")]',
        'np.argsort(y, kind="stable")',
        f"{METHODS} -k Maps",
    ),
    # Krein
    Bug(
        "methods-krein-fold-total",
        "total = fold.weight @ fold.constant**2",
        "total = fold.constant @ fold.constant",
        f"{KREIN_E} -k repeated_rows",
    ),
    Bug(
        "methods-krein-calibration-weights",
        "weight = weight[rows] calibrations = [calibrate_scores(",
        "calibrations = [calibrate_scores(",
        f"{METHODS} -k Repetitions",
    ),
    Bug(
        "methods-krein-out-of-fold-rows",
        "rows.basis.rows[places], predicted, rows.Y[places], rows.groups_of(places)",
        "places, predicted, rows.Y[places], rows.groups_of(places)",
        f"{METHODS} -k ZeroWeight",
    ),
    Bug(
        "methods-krein-out-of-fold-order",
        'order = np.argsort(self.rows.folds, kind="stable")',
        "order = np.arange(len(self.rows.folds))",
        f"{METHODS} -k 'ZeroWeight or held_out_target'",
    ),
    Bug(
        "methods-krein-fold-sees-itself",
        "np.flatnonzero(self.rows.folds != number)\n"
        "            test = np.flatnonzero(self.rows.folds == number)\n            Y =",
        "np.flatnonzero(self.rows.folds != number + 1)\n"
        "            test = np.flatnonzero(self.rows.folds == number)\n            Y =",
        f"{METHODS} -k held_out_target",
    ),
    Bug(
        "methods-krein-zero-weight-columns",
        "full[:, self.rows] = coef",
        "full[:, : len(self.rows)] = coef",
        f"{METHODS} -k ZeroWeight",
    ),
    # asymmetric models
    Bug(
        "methods-asymmetric-one-way",
        "left_error < (1 - LIMITS.tie) * one_way[0]",
        "left_error > (1 - LIMITS.tie) * one_way[0]",
        f"{METHODS} -k AsymmetricChoice",
    ),
    Bug(
        "methods-asymmetric-intercept-sides",
        "np.stack([self.solution.intercept_left, self.solution.intercept_right])",
        "np.stack([self.solution.intercept_right, self.solution.intercept_left])",
        f"{METHODS} -k AsymmetricChoice",
    ),
    # embedding, hyper, DANK
    Bug(
        "methods-embedding-first-rows",
        "matrix = check_square(basis.kernel(basis.take(landmarks))",
        "matrix = check_square(basis.kernel(basis.take(np.arange(len(landmarks))))",
        f"{METHODS} -k embedding",
    ),
    Bug(
        "methods-hyper-units-of-losses",
        "(predicted - self.standardize(y)[:, None]) ** 2 * self.std**2",
        "(predicted - self.standardize(y)[:, None]) ** 2 * self.std",
        f"{METHODS} -k HeldOutLosses",
    ),
    Bug(
        "methods-hyper-sample-order",
        'order = index[np.argsort(fold_of, kind="stable")]',
        'order = np.argsort(fold_of, kind="stable")',
        f"{METHODS} -k sample_of_pairs",
    ),
    Bug(
        "methods-dank-constant-leaks",
        "np.full(len(m.X_test), m.target.mean())",
        "np.full(len(m.X_test), m.target_test.mean())",
        f"{METHODS} -k HeldOutLosses",
    ),
    Bug(
        "methods-dank-prior-spread",
        "pull = 2 * deviation / (spread**2 + deviation**2)",
        "pull = 2 * deviation / (spread + deviation**2)",
        f"{METHODS} -k prior_of_dank",
    ),
    # displays and rates
    Bug("methods-surface-worst", "np.fmin.at(error", "np.fmax.at(error", f"{DISPLAYS} -k surface"),
    Bug(
        "methods-secular-output",
        "target.reshape(len(target), -1)[:, output]",
        "target.reshape(len(target), -1)[:, 0]",
        "test_pictures.py -k each_output",
    ),
    Bug(
        "methods-parts-output",
        "intercept = float(np.atleast_1d(estimator.intercept_)[output])",
        "intercept = float(np.atleast_1d(estimator.intercept_)[0])",
        f"{DISPLAYS} -k each_output",
    ),
    Bug(
        "methods-adaptation-order",
        'rows = rows[np.argsort(y[rows], kind="stable")]',
        "rows = np.sort(rows)",
        "test_pictures.py -k adaptation",
    ),
    Bug(
        "methods-theory-norm",
        "theta = min(2 / q, 1.0 if np.isinf(p) else p / (p + 1))",
        "theta = max(2 / q, 1.0 if np.isinf(p) else p / (p + 1))",
        f"{THEORY} -k hyper",
    ),
    Bug(
        "methods-theory-condition",
        "_require(gamma + growth > 1",
        "_require(gamma + growth > 0",
        f"{THEORY} -k conditions",
    ),
    Bug(
        "methods-theory-bound",
        "np.sqrt(np.abs(eigvalsh(K)).sum()) / len(K)",
        "np.sqrt(eigvalsh(K).clip(0).sum()) / len(K)",
        f"{THEORY} -k rademacher",
    ),
    Bug(
        "methods-theory-support",
        "float(decay + xi - beta / 4)",
        "float(decay - xi - beta / 4)",
        f"{THEORY} -k lab",
    ),
    Bug(
        "methods-line-ends",
        "to_start, to_end = kernel(line, np.stack([start, end])).T",
        "to_end, to_start = kernel(line, np.stack([start, end])).T",
        "test_pictures.py -k line",
    ),
    Bug(
        "methods-hyper-stage-units",
        "values * self.std + self.mean",
        "values * self.std",
        f"{METHODS} -k HeldOutLosses",
    ),
    Bug(
        "methods-hyper-split-of-validation",
        "inside = [value for key, value in equations.items() if fold not in key]",
        "inside = list(equations.values())",
        "test_hyper.py -k 'validation or fold'",
    ),
    Bug(
        "methods-dank-slope",
        "return float(np.mean(np.logaddexp(0.0, -margin))), r * slope * target",
        "return float(np.mean(np.logaddexp(0.0, -margin))), r * target",
        "test_dank_tuning.py -k slope",
    ),
    Bug(
        "methods-dank-size-of-targets",
        "Choice(tuned.kernel, tuned.C * size, tuned.epsilon * size,",
        "Choice(tuned.kernel, tuned.C, tuned.epsilon * size,",
        "test_dank_tuning.py -k scale_of_y",
    ),
    Bug(
        "methods-krein-relative-radius",
        "radius = radius * system.spread",
        "radius = radius * np.ones_like(system.spread)",
        f"{KREIN_E} -k scaled_kernel",
    ),
    Bug(
        "methods-attributes-stay",
        "delattr(self, name) for name, value",
        "pass\n        for name, value",
        f"{METHODS} -k fitted_again",
    ),
    Bug(
        "methods-dank-rows-of-parts",
        "parts = [used[clusters.labels_ == part] for part in range(self.n_parts)]",
        "parts = [np.flatnonzero(clusters.labels_ == part) for part in range(self.n_parts)]",
        f"{METHODS} -k dank_in_parts",
    ),
    Bug(
        "methods-dank-clusters-of-all",
        "clusters = self._clusters(basis.items[used])",
        "clusters = self._clusters(basis.items[: len(used)])",
        f"{METHODS} -k dank_in_parts",
    ),
    Bug(
        "methods-centering-of-columns",
        "self.column_means_ = powers.mean(axis=0)",
        "self.column_means_ = np.sort(powers.mean(axis=0))",
        f"{METHODS} -k order_does",
    ),
]
