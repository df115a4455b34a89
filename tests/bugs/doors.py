"""Bugs in the checks of data, in what all estimators share, in comparisons with landmarks, sets and low rank."""

from bugs import Bug

CHECKS, CONTRACT, CONFORMAL = "test_validation.py", "test_contract.py", "test_conformal.py"
LOW, ITEMS, BASE = "test_lowrank.py", "test_items.py", "test_base.py"
COMPARISONS = "test_comparisons.py"

BUGS = [
    # names
    Bug(
        "doors-y-by-position",
        "return values.iloc[positions]",
        "return values",
        f"{CONTRACT} -k 'matched_by_name and AsymmetricRidge'",
    ),
    Bug(
        "doors-y-inverse-order",
        "given.get_indexer(rows)",
        "rows.get_indexer(given)",
        f"{CHECKS} -k Align",
    ),
    Bug(
        "doors-positions-are-names",
        "holds_positions = type(index).__name__",
        'holds_positions = "" == type(index).__name__',
        f"{CHECKS} -k Align",
    ),
    Bug(
        "doors-weight-by-position",
        "sample_weight = align_by_name(X, sample_weight)\n        with blas",
        "with blas",
        f"{CONTRACT} -k 'matched_by_name and AsymmetricRidge'",
    ),
    Bug(
        "doors-lab-groups-by-position",
        "groups = align_by_name(X, groups)\n        training = self._read_training",
        "training = self._read_training",
        f"{CONTRACT} -k 'matched_by_name and TableClassifier'",
    ),
    Bug(
        "doors-columns-sorted",
        "X.iloc[:, [position[label] for label in known]]",
        "X.iloc[:, sorted(position[label] for label in known)]",
        f"{CONTRACT} -k 'odd_index and AsymmetricRidge'",
    ),
    Bug(
        "doors-numbers-are-names",
        "if merely_numbers or not",
        "if not",
        f"{CHECKS} -k found_by_name",
    ),
    Bug(
        "doors-matrix-of-numbers",
        "if any(numbered) or not (is_other_order",
        "if not (is_other_order",
        f"{ITEMS} -k matched_by_name",
    ),
    Bug(
        "doors-reverse-by-position",
        'reverse = align_columns(reverse, self._column_labels, "reverse")\n',
        "\n",
        f"{ITEMS} -k matched_by_name",
    ),
    # what is kept
    Bug(
        "doors-view-of-rows",
        "own = is_training and not get_tags(estimator).input_tags.pairwise",
        "own = False",
        f"{CONTRACT} -k 'does_not_change and HyperRidge'",
    ),
    Bug(
        "doors-view-of-vectors",
        "ensure_min_samples=1, own=not is_matrix)",
        "ensure_min_samples=1, own=False)",
        f"{CONTRACT} -k 'does_not_change and AsymmetricRidge'",
    ),
    Bug(
        "doors-view-of-objects",
        "items = own_copy(items, X)\n",
        "\n",
        f"{CONTRACT} -k 'does_not_change and AsymmetricRidge'",
    ),
    Bug(
        "doors-view-of-owned-data",
        'if is_view or (hasattr(given, "__array__") and np.may_share_memory(rows, np.asarray(given))):',
        "if is_view:",
        f"{CHECKS} -k own_copy",
    ),
    Bug(
        "doors-memory-map-copied",
        "if isinstance(given, np.memmap):\n        return rows\n",
        "",
        f"{CHECKS} -k own_copy",
    ),
    Bug(
        "doors-attributes-stay",
        "delattr(self, name)",
        "pass",
        f"{CONTRACT} -k 'earlier_fit and SimilarityClassifier'",
    ),
    Bug(
        "doors-numeric-items-stay",
        '"_column_labels", "_numeric_items")',
        '"_column_labels")',
        f"{CONTRACT} -k 'earlier_fit and AsymmetricRidge'",
    ),
    Bug(
        "doors-several-keep-columns",
        "self._forget_columns()\n        with",
        "with",
        f"{CONTRACT} -k 'earlier_fit and SimilarityRegressor'",
    ),
    # weights
    Bug(
        "doors-class-weight-alone",
        "compute_sample_weight(class_weight, labels) * weight",
        "compute_sample_weight(class_weight, labels)",
        f"{CHECKS} -k Classes",
    ),
    Bug(
        "doors-weightless-class",
        "np.unique(y[weight > 0])",
        "np.unique(y)",
        f"{CONTRACT} -k 'class_of_weight_zero and (Asymmetric or KreinRidge)'",
    ),
    Bug(
        "doors-balanced-rows",
        "np.bincount(number, weights=weight[is_used])",
        "np.bincount(number)",
        f"{CONTRACT} -k 'balanced_classes and (Asymmetric or KreinRidge)'",
    ),
    Bug(
        "doors-half-a-fit",
        "vars(self).clear()\n            vars(self).update(before)\n            raise",
        "raise",
        f"{CONTRACT} -k 'fit_that_fails and Krein'",
    ),
    # copies and weights
    Bug(
        "doors-copies-are-lost",
        "= observations.sums(weight[used])\n    return Gathered",
        "= weight[used][observations.first]\n    return Gathered",
        f"{CONTRACT} -k 'equal_repetition and KreinSVR'",
    ),
    Bug(
        "doors-perfect-members",
        "pull = max(self.pull, rounding)",
        "pull = self.pull",
        "test_averaging.py -k nearly_perfect",
    ),
    Bug(
        "doors-combinations-are-copies",
        "return bool(np.mean(n_targets[n_equal > 1] > 1) >= THRESHOLDS.different_targets)",
        "return False",
        "test_table_classes.py -k combinations",
    ),
    Bug(
        "doors-combinations-in-one-fold",
        "apart = np.arange(n)[:, None]",
        "apart = rows.X",
        "test_table_classes.py -k combinations",
    ),
    Bug(
        "doors-cells-are-copies",
        "return n_distinct < 2 or n_distinct < fewest",
        "return n_distinct < 2",
        "test_copies.py -k four_cells",
    ),
    Bug(
        "doors-copies-by-rows-alone",
        "both = np.column_stack([copies, find_copies(items.T, precomputed=True)])",
        "both = np.column_stack([copies, copies])",
        "test_copies.py -k columns",
    ),
    Bug(
        "doors-copies-not-predicted",
        "everyone = np.flatnonzero((place >= 0) & (self.given > 0.0))",
        "everyone = np.flatnonzero((place >= 0) & (self.weight > 0.0))",
        f"{CONTRACT} -k 'equal_repetition and KreinRidgeClassifier'",
    ),
    Bug(
        "doors-scale-without-weights",
        "as_kernel(self.kernel, used_items, used_weights(weight, used))",
        "as_kernel(self.kernel, used_items)",
        f"{CONTRACT} -k 'equal_repetition and KreinRidge'",
    ),
    Bug(
        "doors-useless-unweighted",
        "mean = np.average(difference, weights=weight)",
        "mean = np.average(difference)",
        f"{CHECKS} -k Useless",
    ),
    Bug(
        "doors-useless-scale",
        "np.sqrt(weight**2 @ (difference - mean) ** 2)",
        "np.sqrt(weight @ (difference - mean) ** 2)",
        f"{CHECKS} -k Useless",
    ),
    Bug(
        "doors-useless-cap",
        "mean_constant = float(np.average(constant, weights=weight))",
        "mean_constant = float(constant.mean())",
        f"{CHECKS} -k Useless",
    ),
    Bug(
        "doors-useless-caller",
        "warn_if_useless(losses, constant, type(self).__name__, weight)\n        return choice",
        "warn_if_useless(losses, constant, type(self).__name__)\n        return choice",
        f"{CHECKS} -k learners_weigh",
    ),
    Bug(
        "doors-scale-unweighted",
        "variance = weight @ (Y - mean) ** 2 / total",
        "variance = ((Y - mean) ** 2).mean(axis=0)",
        f"{BASE} -k encode",
    ),
    Bug(
        "doors-mean-unweighted",
        "mean = weight @ Y / total",
        "mean = Y.mean(axis=0)",
        f"{BASE} -k encode",
    ),
    Bug(
        "doors-weights-of-mean-one",
        "weight[used] * (len(used) / weight[used].sum())",
        "weight[used] * (len(weight) / weight[used].sum())",
        f"{BASE} -k weight",
    ),
    # what is told
    Bug(
        "doors-distances-told-wrongly",
        "np.any(np.diagonal(X)) or not (X.min() >= 0.0 < X.max())",
        "np.any(np.diagonal(X))",
        f"{CHECKS} -k may_be_distances",
    ),
    Bug(
        "doors-condensed-count",
        "np.ceil(np.sqrt(2 * len(X)))",
        "np.floor(np.sqrt(2 * len(X)))",
        f"{CONTRACT} -k 'bad_matrix and AsymmetricRidge'",
    ),
    Bug(
        "doors-hole-transposed",
        "row, column = np.argwhere(missing)[0]",
        "column, row = np.argwhere(missing)[0]",
        f"{CONTRACT} -k 'bad_matrix and AsymmetricRidge'",
    ),
    Bug(
        "doors-generator-seed",
        "np.random.RandomState(random_state.integers(2**32 - 1))",
        "np.random.RandomState()",
        f"{CONTRACT} -k 'generator and SimilarityClassifier'",
    ),
    # what estimators share
    Bug(
        "doors-tied-vote",
        "votes[:, i] += score <= 0",
        "votes[:, i] += score < 0",
        f"{BASE} -k votes",
    ),
    Bug("doors-vote-sums", "sums[:, i] -= score", "sums[:, i] += score", f"{BASE} -k votes"),
    Bug(
        "doors-two-class-scores",
        "np.hstack([-scores, scores]) / 2",
        "np.hstack([scores, -scores]) / 2",
        f"{BASE} -k scores",
    ),
    Bug(
        "doors-weightless-columns",
        "self.items[np.ix_(positions, positions)]",
        "self.items[positions][:, : len(positions)]",
        f"{BASE} -k weight",
    ),
    Bug(
        "doors-landmarks-unsorted",
        "return np.sort(chosen)\n\n\ndef in_both_directions",
        "return chosen\n\n\ndef in_both_directions",
        f"{BASE} -k landmark",
    ),
    Bug(
        "doors-same-value",
        "np.ptp(values) <= 1e-8 * np.abs(values).max()",
        "np.ptp(values) <= 1e-8 + 1e-2 * np.abs(values).max()",
        f"{BASE} -k same_value",
    ),
    Bug(
        "doors-diagonal-count",
        "values.ndim > 1 or values.size not in (1, n)",
        "values.ndim > 1",
        f"{BASE} -k diagonal",
    ),
    Bug(
        "doors-lists-looked-into",
        "for i, item in enumerate(X):  # one by one",
        "if len({len(item) for item in X if isinstance(item, list)}) == 1 and isinstance(X[0], list):\n"
        "        return np.asarray(X)\n    for i, item in enumerate(X):  # one by one",
        f"{BASE} -k items",
    ),
    # sets and intervals
    Bug(
        "doors-sets-forget-diag",
        "held_out = self._held_out(**new)",
        "held_out = self._held_out()",
        f"{CONFORMAL} -k 'own_similarity or other_direction'",
    ),
    Bug(
        "doors-intervals-forget-diag",
        "out_of_fold = self._held_out(**new)",
        "out_of_fold = self._held_out()",
        f"{CONFORMAL} -k 'own_similarity or other_direction'",
    ),
    Bug(
        "doors-held-without-diag",
        'known = self.kind_ == "distance" or diag is not None',
        'known = self.kind_ == "distance" or diag is None',
        f"{CONFORMAL} -k own_similarity",
    ),
    Bug(
        "doors-least-probable-class",
        "sets[np.arange(len(sets)), proba.argmax(axis=1)] = True",
        "sets[np.arange(len(sets)), proba.argmin(axis=1)] = True",
        f"{CONFORMAL} -k nested",
    ),
    Bug(
        "doors-sets-by-class",
        "set_thresholds(held_out, coverage, by_class, self.classes_)",
        "set_thresholds(held_out, coverage, False, self.classes_)",
        f"{CONFORMAL} -k by_class",
    ),
    # comparisons with landmarks
    Bug(
        "doors-kept-diagonal",
        "columns=columns, column_diagonal=self.column_diagonal[columns])",
        "columns=columns, column_diagonal=self.column_diagonal[: len(columns)])",
        f"{COMPARISONS} -k kept",
    ),
    Bug(
        "doors-kept-landmarks",
        "landmarks=self.landmarks[columns])",
        "landmarks=self.landmarks[: len(columns)])",
        f"{COMPARISONS} -k kept",
    ),
    Bug(
        "doors-two-landmarks-of-a-row",
        "rows[later] = -1",
        "rows[~later] = -1",
        f"{COMPARISONS} -k found",
    ),
    Bug(
        "doors-zeros-are-distances",
        "wrong |= (W <= 1e-8 * size) & ~np.eye(len(W), dtype=bool)",
        "pass",
        f"{COMPARISONS} -k zeros",
    ),
    Bug(
        "doors-rows-among-used",
        "np.where(rows >= 0, used[rows], -1)",
        "np.where(rows >= 0, rows, -1)",
        f"{COMPARISONS} -k among",
    ),
    Bug(
        "doors-negative-distances",
        'if kind == "distance" and matrix.min() < -1e-3 * abs(float(matrix.mean())):',
        'if kind == "distance" and matrix.min() < -1e3 * abs(float(matrix.mean())):',
        f"{COMPARISONS} -k negative",
    ),
    Bug(
        "doors-told-rows-last",
        "rows.min() < 0 or rows.max() >= n",
        "rows.min() < 0 or rows.max() > n",
        f"{COMPARISONS} -k positions",
    ),
    Bug(
        "doors-constant-of-unknown",
        "diagonal[rows < 0] = 0.0 if constant is None else constant",
        "diagonal[rows < 0] = 0.0",
        f"{COMPARISONS} -k differing",
    ),
    Bug(
        "doors-noise-one-way",
        "return (W + W.T) / 2.0 if noisy else W",
        "return W if noisy else W",
        f"{COMPARISONS} -k noisy",
    ),
    # low rank
    Bug(
        "doors-kmeans-block-start",
        "rows.start + nearest[better]",
        "nearest[better]",
        f"{LOW} -k means",
    ),
    Bug(
        "doors-topped-up-twice",
        "rest = order[~np.isin(order, chosen)]",
        "rest = order",
        f"{LOW} -k 'topped or distinct'",
    ),
    Bug(
        "doors-error-on-the-sample",
        "spare = others[size - m : size - m + min(max(m, 200), 500)]",
        "spare = sample",
        f"{LOW} -k unused",
    ),
    Bug(
        "doors-precomputed-columns",
        "return np.asarray(X[rows][:, columns])",
        "return np.asarray(X[columns][:, rows]).T",
        f"{LOW} -k entries",
    ),
    Bug(
        "doors-values-by-size",
        'np.argsort(-np.abs(values), kind="stable")\n    transform',
        'np.argsort(-values, kind="stable")\n    transform',
        f"{LOW} -k size",
    ),
    Bug(
        "doors-pivots-left",
        "np.unique(random.choice(n, size=min(64, rank - r), p=left / left.sum()))",
        "np.unique(random.choice(n, size=min(64, rank), p=left / left.sum()))",
        f"{LOW} -k Pivoted",
    ),
]
