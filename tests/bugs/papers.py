"""Bugs in what the papers print: theory, truncation, multipliers, coupled asymmetric machines."""

from bugs import Bug

THEORY, KREIN_E = "test_theory.py", "test_krein_estimators.py"
SPECTRA, ASYM = "test_spectra.py", "test_asymmetric.py"
FEATURES = "test_signed_features.py"

BUGS = [
    Bug(
        "svr-constant-without-a-word",
        "elif len(coef) >= 30 and np.mean(np.abs(coef) < (1 - 1e-6) * bound) <= 0.05:",
        "elif len(coef) >= 30 and np.mean(np.abs(coef) < (1 - 1e-6) * bound) < 0.0:",
        "test_validation.py -k units",
    ),
    Bug(
        "papers-spectrum-of-another-fold",
        "spectrum = self.spectra.get(number)",
        "spectrum = self.spectra.get(0)",
        f"{KREIN_E} -k every_fold_once",
    ),
    Bug(
        "papers-spectrum-forgets-weights",
        "Y[train], rows.weight[train], intercept=family.intercept, overwrite=True",
        "Y[train], None, intercept=family.intercept, overwrite=True",
        f"{KREIN_E} -k every_fold_once",
    ),
    Bug(
        "papers-hyper-exponent-as-printed",
        "bias = a * r if as_printed else a * r / 2",
        "bias = a * r",
        f"{THEORY} -k hyper_ridge",
    ),
    Bug(
        "papers-sample-size-one-sided",
        "complexity = 4 * largest_residual * radius",
        "complexity = 2 * largest_residual * radius",
        f"{THEORY} -k sample_size",
    ),
    Bug(
        "papers-hypothesis-part-sign",
        "indefinite_part = -2 * float(sample.target @ solution.coef) / m",
        "indefinite_part = -float(sample.target @ solution.coef) / m",
        f"{THEORY} -k hypothesis_error",
    ),
    Bug(
        "papers-hypothesis-bound-eigenvalue",
        "return float(self.values[self.values < 0].max())",
        "return float(self.values[self.values < 0].min())",
        f"{THEORY} -k propositions",
    ),
    Bug(
        "papers-growth-sign",
        "negative = _growth_exponent(sizes, -smallest.mean(axis=1), noise)",
        "negative = _growth_exponent(sizes, np.abs(smallest).mean(axis=1), noise * 0)",
        f"{THEORY} -k growth",
    ),
    Bug(
        "papers-truncation-clips",
        'if mode in ("raw", "truncate"):',
        'if mode == "truncate":\n        return np.maximum(s, 0.0)\n    if mode == "raw":',
        f"{SPECTRA} -k truncation",
    ),
    Bug(
        "papers-mu-without-n",
        '"mu_": _shaped(spectral.multiplier / system.n, shape),',
        '"mu_": _shaped(spectral.multiplier, shape),',
        f"{KREIN_E} -k mu_solves",
    ),
    Bug(
        "papers-coupled-transpose",
        "A[n : 2 * n, n : 2 * n] = K.T",
        "A[n : 2 * n, n : 2 * n] = K",
        f"{ASYM} -k ask_ls",
    ),
    Bug(
        "papers-coupled-sums",
        "A[2 * n, n : 2 * n] = border  # the coefficients",
        "A[2 * n, n : 2 * n] = 2 * border\n        A[2 * n, 0] = border  # the coefficients",
        f"{ASYM} -k ask_ls",
    ),
    Bug(
        "papers-coupled-left-out",
        "loo_left = (d[:, None] * left - b[:, None] * right) / determinant[:, None]",
        "loo_left = left / a[:, None]",
        f"{ASYM} -k coupled_system",
    ),
    Bug(
        "papers-coupled-grid-ends-at-the-norm",
        "relative = LIMITS.alphas + LIMITS.coupled_alphas if self.coupled else LIMITS.alphas",
        "relative = LIMITS.alphas",
        f"{ASYM} -k beyond_the_singular",
    ),
    Bug(
        "papers-landmarks-forget-the-penalty",
        "A[:m, :m] += alpha * comparisons.landmarks",
        "A[:m, :m] += alpha * np.eye(m)",
        f"{ASYM} -k stationary_point",
    ),
    Bug(
        "papers-landmarks-leverage-without-weights",
        "lu_solve(factor, weighted_Q.T, check_finite=False))",
        "lu_solve(factor, Q.T, check_finite=False))",
        f"{ASYM} -k stationary_point",
    ),
    Bug(
        "papers-landmarks-one-direction-twice",
        "from_landmarks = basis.kernel(landmarks, basis.items).T",
        "from_landmarks = basis.kernel(basis.items, landmarks)",
        f"{ASYM} -k same_model",
    ),
    Bug(
        "papers-landmarks-keep-copies",
        "n_kept = int(np.sum(left_over > LIMITS.independent * left_over[0]))",
        "n_kept = len(left_over)",
        f"{ASYM} -k copies_among",
    ),
    Bug(
        "papers-features-negative-part-added",
        "outer = _gaussian_part(1.0, kernel.length_scale)\n        return [outer, _gaussian_part(-1.0,",
        "outer = _gaussian_part(1.0, kernel.length_scale)\n        return [outer, _gaussian_part(1.0,",
        f"{FEATURES} -k unbiased",
    ),
    Bug(
        "papers-features-equal-shares",
        "exact = (total - len(weights)) * sizes / sizes.sum()",
        "exact = (total - len(weights)) * np.ones(len(sizes)) / len(sizes)",
        f"{FEATURES} -k proportion",
    ),
    Bug(
        "papers-features-exponential-as-laplace",
        "return vectors / random.standard_normal((shape[0], 1)) / scale",
        "return vectors / random.standard_normal(shape) / scale",
        f"{FEATURES} -k unbiased",
    ),
    Bug(
        "papers-gradient-of-the-hard-case",
        "h = np.divide(1.0, product, out=np.zeros_like(product), where=product != 0.0)",
        "h = 1.0 / product",
        "test_krein.py -k hard_case",
    ),
    # coordinates of directed similarities
    Bug(
        "papers-embedding-sources-as-targets",
        "to_sources = V * scale\n    to_targets = U * scale",
        "to_sources = U * scale\n    to_targets = V * scale",
        "test_directed_embedding.py -k inner_products",
    ),
    Bug(
        "papers-embedding-origin-of-rows",
        "values, to_sources, columns @ to_sources, to_targets, rows @ to_targets, explained",
        "values, to_sources, rows @ to_sources, to_targets, columns @ to_targets, explained",
        "test_directed_embedding.py -k inner_products",
    ),
    Bug(
        "papers-embedding-reverse-of-all-items",
        "return reverse[rows][:, self.landmarks_]",
        "return reverse[rows][:, : len(self.landmarks_)]",
        "test_directed_embedding.py -k landmarks",
    ),
    Bug(
        "papers-embedding-one-direction-twice",
        "            if not self.symmetric_:\n                raise ValueError(",
        "            if False:\n                raise ValueError(",
        "test_directed_embedding.py -k sides",
    ),
    Bug(
        "asymmetric-new-items-borrow-bandwidths",
        'sides = ("left",) if self._has_center_bandwidths else ("left", "right", "weighted")',
        'sides = ("left", "right", "weighted")',
        f"{ASYM} -k bandwidths",
    ),
    Bug(
        "asymmetric-bandwidths-of-other-rows",
        "set_params(**{name: widths[rows] for name, widths in bandwidths.items()})",
        "set_params(**{name: widths[: len(rows)] for name, widths in bandwidths.items()})",
        f"{ASYM} -k bandwidths",
    ),
    Bug(
        "embedding-new-targets-borrow-bandwidths",
        "if not np.array_equal(items, self.X_fit_):",
        "if len(items) != len(self.X_fit_):",
        "test_directed_embedding.py -k bandwidths",
    ),
    Bug(
        "asymmetric-ridges-ignore-the-size-of-weights",
        "(_spectral_norm(K) or 1.0) * weight.mean()",
        "(_spectral_norm(K) or 1.0)",
        f"{ASYM} -k factor_of_all",
    ),
    Bug(
        "krein-search-follows-the-largest-output",
        "Y = rows.Y / self.units",
        "Y = rows.Y",
        f"{KREIN_E} -k two_outputs",
    ),
    Bug(
        "krein-search-radius-in-other-units",
        "radius = radius / self.units",
        "radius = radius / 1.0",
        f"{KREIN_E} -k two_outputs",
    ),
    Bug(
        "krein-deviation-counts-copies-once",
        "factor = cho_factor(centered + np.diag(noise / counts), lower=True)",
        "factor = cho_factor(centered + np.diag(noise / counts**0), lower=True)",
        "test_conformal.py -k equal_rows_are",
    ),
    Bug(
        "krein-hard-case-without-a-word",
        "if np.any(undetermined > LIMITS.largest_undetermined * squares.sum(axis=1)):",
        "if np.all(undetermined > LIMITS.largest_undetermined * squares.sum(axis=1)):",
        f"{KREIN_E} -k rounding_decides",
    ),
    Bug(
        "lab-growth-forgets-rows-it-did-not-see",
        "if len(plan.rows) < table.shape[0]: n = len(table.copies)",
        "if len(plan.rows) < 0: n = len(table.copies)",
        "test_lab_optimizers.py -k did_not_see",
    ),
]
