"""Bugs in the learners for similarities: what is out of fold, sets, suspects, several similarities and directions."""

from bugs import Bug

OUT = "test_out_of_fold.py"
OWN = f"{OUT} -k own_target"
BLOCKS = f"{OUT} -k choose_on_blocks"

BUGS = [
    # copies, gaps and own similarities
    Bug(
        "sim-points-among-copies",
        "return model.out_of_fold_.rows[first_rows[places]]",
        "return model.out_of_fold_.rows[places]",
        "test_reasons.py -k copies_do_not_shift",
    ),
    Bug(
        "sim-landmark-is-a-copy",
        "positions = copies.first[positions]",
        "positions = positions",
        "test_landmarks.py -k may_be_copies",
    ),
    Bug(
        "sim-copied-columns-vote-twice",
        "return kind, np.where(later, -1, rows)",
        "return kind, rows",
        "test_landmarks.py -k may_be_copies",
    ),
    Bug(
        "sim-gaps-of-basis",
        'prepared.attributes["_completed_rows_"] = with_weight',
        'prepared.attributes["_completed_rows_"] = prepared.attributes["_basis_rows"]',
        "test_similarity_gaps.py -k have_copies",
    ),
    Bug(
        "sim-gaps-in-another-order",
        "train = align_train(train, column_labels(model))",
        "pass",
        "test_similarity_gaps.py -k given_again",
    ),
    Bug(
        "sim-own-similarity-none",
        "np.where(is_missing, np.median(self.stack_.members.diagonal), own)",
        "own",
        "test_similarity_gaps.py -k with_themselves",
    ),
    Bug(
        "sim-one-way-without-diag",
        "self.one_way_(items[:, self.used_], diagonal)",
        "self.one_way_(items[:, self.used_])",
        "test_conformal.py -k with_or_without_their_own",
    ),
    Bug(
        "sim-one-way-covered-with-diag",
        "average = self.one_way_.stack.average is_known = is_known or",
        "average = self.one_way_.stack.average\n            is_known = True or",
        "test_conformal.py -k with_or_without_their_own",
    ),
    Bug(
        "sim-names-as-numbers",
        "given = {str(name): one for name, one in value.items()}",
        "given = dict(value)",
        "test_several.py -k similarities_by_name",
    ),
    Bug(
        "sim-huge-new-comparisons",
        "if not size < 1e75:",
        "if False:",
        "test_similarity.py -k new_items_at_the_ends",
    ),
    # one item that is far away or very long
    Bug(
        "sim-rounding-of-company",
        "longest = np.maximum(of_rows, of_columns.max(initial=0.0))[:, None]",
        "longest = max(of_rows.max(initial=0.0), of_columns.max(initial=0.0))",
        "test_similarity.py -k depend_on_the_other_rows",
    ),
    Bug(
        "sim-rounding-of-longest",
        "<= np.maximum(of_rows[rows], of_columns[columns])",
        "<= most",
        "test_similarity_solvers.py -k one_long_item",
    ),
    Bug(
        "sim-ties-of-far-items",
        "rounding = np.maximum(1e-10 * np.maximum(nearest, np.abs(last)), smallest)",
        "rounding = 1e-10 * np.abs(distances).max(axis=1, keepdims=True)",
        "test_similarity_solvers.py -k far_from_all",
    ),
    Bug(
        "sim-copies-of-largest",
        "tolerance = relative * sizes.max(axis=1, initial=0.0)",
        "tolerance = np.full(len(K), relative * sizes.max(initial=0.0))",
        "test_folds.py -k few_large_entries",
    ),
    Bug(
        "sim-ridge-of-negative-values",
        "divisors = np.maximum(values, 0.0)[:, None] + ridges",
        "divisors = values[:, None] + ridges",
        "test_similarity_solvers.py -k rounding_made_indefinite",
    ),
    # leaks
    Bug(
        "sim-calibration-knows-shares",
        "fold_of = assign_folds(5, len(labels), random_state=0)",
        "fold_of = assign_folds(5, len(labels), labels=labels, random_state=0)",
        f"{OUT} -k sets_cover",
    ),
    Bug(
        "sim-classes-see-block",
        "scores[:, train], Y[train], weight[train], settings, pull, start\n",
        "scores, Y, weight, settings, pull, start\n",
        f"{OUT} -k 'own_target and classes and not several'",
    ),
    Bug(
        "sim-numbers-see-block",
        "units = Units.of(Y[train], weight[train])",
        "units = Units.of(Y, weight)",
        f"{OUT} -k 'own_target and numbers and not several'",
    ),
    Bug(
        "sim-families-in-sample",
        "of_families[:, test] = of_family[:, test]",
        "of_families[:] = of_family",
        f"{OUT} -k inside_the_blocks",
    ),
    Bug(
        "sim-stack-figures-in-sample",
        'zip([*families, "stack"], [*of_families, out])',
        "zip(families, of_families)",
        f"{OUT} -k figures_told",
    ),
    Bug(
        "sim-mixture-sees-block",
        "fit(values, train)(values[:, test])",
        "fit(values, np.arange(values.shape[1]))(values[:, test])",
        f"{OUT} -k 'own_target and several'",
    ),
    Bug(
        "sim-mixture-of-stacks-that-saw",
        "values = by_fold[:, number]",
        "values = predictions",
        f"{OUT} -k 'own_target and several'",
    ),
    Bug(
        "sim-mixture-units",
        "self.units.leave(np.tensordot(self.weights, standardized, 1))",
        "np.tensordot(self.weights, standardized, 1)",
        f"{OUT} -k weights_of_several",
    ),
    Bug(
        "sim-rows-decided-by-all",
        "new = _losses(with_rows.by_block[number, train], Y[train], classify)",
        "new = _losses(with_rows.out_of_fold[train], Y[train], classify)",
        f"{OUT} -k without_the_block",
    ),
    Bug(
        "sim-directed-figures",
        'table["stack"] |= figures_of(out_of_fold, Y, weight, classify)',
        'table["stack"] |= figures_of(with_rows.out_of_fold, Y, weight, classify)',
        f"{OUT} -k figures_told",
    ),
    Bug(
        "sim-blocks-split-copies",
        "return fold_numbers( cv, items, np.zeros(n), groups=groups, precomputed=precomputed, "
        "used=used, random_state=0 )",
        "return assign_folds(count_folds(cv), len(used), random_state=0)",
        f"{OUT} -k blocks_know_nothing",
    ),
    Bug(
        "sim-landmarks-without-blocks",
        "                training.block_of,\n                run=",
        "                training.fold_of,\n                run=",
        BLOCKS,
    ),
    Bug(
        "sim-sum-without-blocks",
        "return fit_stack(source, training.Y, training.weight, classify, training.block_of)",
        "return fit_stack(source, training.Y, training.weight, classify, training.fold_of)",
        BLOCKS,
    ),
    Bug(
        "sim-several-without-blocks",
        "with_blocks = task._replace(block_of=training.block_of)",
        "with_blocks = task",
        BLOCKS,
    ),
    # sets and suspects
    Bug(
        "sim-sets-without-diag",
        "prediction = average.out_of_fold if is_known else average.out_of_fold_without_diag",
        "prediction = average.out_of_fold",
        f"{OUT} -k rows_without_diag",
    ),
    Bug(
        "sim-without-diag-is-with",
        "without_diag[test] = other[test]",
        "without_diag[test] = by_block[number, test]",
        f"{OUT} -k rows_without_diag",
    ),
    Bug(
        "sim-sets-of-one-way",
        "average = self.one_way_.stack.average",
        "average = self.stack_.average",
        f"{OUT} -k one_direction",
    ),
    Bug(
        "sim-suspects-too-sure",
        "sharpen(held_out.prediction, min(1.0, power))",
        "sharpen(held_out.prediction, max(1.0, power))",
        f"{OUT} -k too_sure",
    ),
    Bug(
        "sim-suspects-of-the-ignorant",
        "if _mean_loss(probability) >= _mean_loss(shares_of_classes[target]):",
        "if False:",
        f"{OUT} -k know_nothing",
    ),
    Bug(
        "sim-suspects-undecided",
        "is_decided = proba.max(axis=1) > 0.5\n    shares_of",
        "is_decided = proba.max(axis=1) > 0.0\n    shares_of",
        f"{OUT} -k more_probable",
    ),
    # weights
    Bug(
        "sim-reverse-zero-weights",
        "other = basis.weighted(self._completed(basis.compare_back(items, back)))",
        "other = self._completed(basis.compare_back(items, back))[:, : out.shape[1]]",
        f"{OUT} -k either_direction",
    ),
    Bug(
        "sim-symmetrized-zero-weights",
        "return as_new_similarities(basis.weighted(matrix), self.kind_)",
        "return as_new_similarities(matrix[:, : len(self.stack_.members.diagonal)], self.kind_)",
        f"{OUT} -k either_direction",
    ),
    Bug(
        "sim-units-unweighted",
        "scale = np.sqrt(weight @ (Y - mean) ** 2 / weight.sum())\n        return cls",
        "scale = np.sqrt(np.mean((Y - mean) ** 2, axis=0))\n        return cls",
        f"{OUT} -k 'own_target and numbers and not several'",
    ),
    Bug(
        "sim-class-weight-alone",
        "weight = weigh_classes(self.class_weight, y, given)",
        "weight = weigh_classes(self.class_weight, y, np.ones(len(y)))",
        f"{OUT} -k class_weight",
    ),
    Bug(
        "sim-fence-without-weights",
        "weights = np.broadcast_to(weight[:, None], Y.shape)",
        "weights = np.ones(Y.shape)",
        f"{OUT} -k fence",
    ),
    # several similarities and directions
    Bug(
        "sim-unit-of-zeros",
        "unit = median_square(squares, squares > 0.0)",
        "unit = median_square(squares, squares >= 0.0)",
        f"{OUT} -k units_of_several",
    ),
    Bug(
        "sim-several-explain-without-sum",
        "stacks = explained | {SUM: ExplainedStack(self.total, of_sum)}",
        "stacks = explained",
        "test_reasons.py -k several",
    ),
    Bug(
        "sim-diagonals-by-name",
        "return {name: given.get(name, default) for name in names}",
        "return dict(zip(names, given.values()))",
        f"{OUT} -k diagonals",
    ),
    Bug(
        "sim-one-way-worse", "if first <= second:", "if first > second:", f"{OUT} -k one_direction"
    ),
    Bug(
        "sim-constant-profiles",
        "scale = np.where(scale > 1e-13 * np.abs(mean), scale, np.inf)",
        "scale = np.where(scale > 1e-13 * np.abs(mean), scale, 1.0)",
        f"{OUT} -k constant_columns",
    ),
    Bug(
        "sim-new-profiles-by-own-mean",
        "profiles = self.rows if new is None else (new - self.mean) / self.scale",
        "profiles = self.rows if new is None else (new - new.mean(axis=0)) / self.scale",
        f"{OUT} -k constant_columns",
    ),
    Bug(
        "sim-important-are-least",
        'np.sort(np.argsort(-shares, kind="stable")[:number])',
        'np.sort(np.argsort(shares, kind="stable")[:number])',
        f"{OUT} -k important",
    ),
    Bug(
        "sim-given-of-others",
        "target_of_item[held_out.rows] = targets",
        "target_of_item[: len(held_out.rows)] = targets",
        f"{OUT} -k given_targets",
    ),
    Bug(
        "sim-copies-that-agree",
        "if len(np.unique(labels[group])) > 1]",
        "if len(np.unique(labels[group])) > 0]",
        "test_suspects.py -k copies",
    ),
    Bug(
        "sim-spread-of-seen-folds",
        "varying = 2.0 * np.log(deviations[test])",
        "varying = 2.0 * np.log(_varying_deviation(squares, signs)(signs[test]))",
        f"{OUT} -k by_noise",
    ),
    # groups
    Bug(
        "sim-groups-not-in-folds",
        "task.strata, classify=classify, groups=task.groups,",
        "task.strata, classify=classify,",
        "test_groups.py -k 'announced or folds_and_blocks'",
    ),
    Bug(
        "sim-groups-not-in-blocks",
        "fold_of, items, classify=classify, groups=task.groups,",
        "fold_of, items, classify=classify,",
        "test_groups.py -k folds_and_blocks",
    ),
    Bug(
        "sim-groups-rank-by-items",
        "1.0 / (counts[order] * (n_groups + 1.0))",
        "np.full(order.shape, 1.0 / (len(order) + 1.0))",
        "test_groups.py -k TestQuantile",
    ),
    Bug(
        "sim-groups-without-new-one",
        "1.0 / (counts[order] * (n_groups + 1.0))",
        "1.0 / (counts[order] * n_groups)",
        "test_groups.py -k TestQuantile",
    ),
    Bug(
        "sim-groups-by-class-of-all",
        "groups = held_out.groups[of_class]",
        "groups = np.arange(of_class.sum())",
        "test_groups.py -k within_every_class",
    ),
    Bug(
        "sim-groups-krein-folds",
        "classify=classify,\n            groups=groups,\n            used=basis.rows,",
        "classify=classify,\n            used=basis.rows,",
        "test_groups.py -k announced",
    ),
    Bug(
        "sim-groups-krein-calibration",
        "class_scores(scores[best]), truth, weight, blocks)",
        "class_scores(scores[best]), truth, weight)",
        "test_groups.py -k calibration_of_krein",
    ),
    Bug(
        "sim-near-copies-clusters",
        "or n_sets <= rules.sets_per_class * n_classes",
        "",
        "test_groups.py -k ordinary_items",
    ),
    Bug(
        "sim-groups-of-weightless",
        "groups = task.groups[rows]",
        "groups = task.groups[: len(rows)]",
        "test_groups.py -k without_weight",
    ),
    # several labels and weights of classes
    Bug(
        "sim-labels-coupled",
        "families.append(PerLabel(family) if is_coupled else family)",
        "families.append(family)",
        "test_several_labels.py -k one_model_per_label",
    ),
    Bug(
        "sim-labels-of-first",
        "columns.append(average(pair[positions], diagonal_known)[:, 1])",
        "columns.append(average(scores[positions, :, :2], diagonal_known)[:, 1])",
        "test_several_labels.py -k one_model_per_label",
    ),
    Bug(
        "sim-labels-positions",
        "columns.append(average(pair[positions], diagonal_known)[:, 1])",
        "columns.append(average(pair[: len(positions)], diagonal_known)[:, 1])",
        "test_several_labels.py -k one_model_per_label",
    ),
    Bug(
        "sim-labels-strata",
        "return np.unique(self.y, axis=0, return_inverse=True)[1].ravel()",
        "return self.y[:, 0]",
        "test_several_labels.py -k dealt_evenly",
    ),
    Bug(
        "sim-labels-absence",
        "np.stack([-present, present], axis=2)",
        "np.stack([present, -present], axis=2)",
        "test_several_labels.py -k 'frequencies or one_model'",
    ),
    Bug(
        "sim-class-weight-without-items",
        "weight = weigh_classes(self.class_weight, labels, given)",
        "weight = weigh_classes(self.class_weight, labels, np.ones(len(labels)))",
        "test_several_labels.py -k weights_multiply",
    ),
    # missing comparisons
    Bug(
        "sim-gaps-use-weightless",
        "values[among], gaps = fill_gaps(values[among])",
        "values, gaps = fill_gaps(values)",
        "test_similarity_gaps.py -k without_weight",
    ),
    Bug(
        "sim-gaps-new-rows-by-means",
        "row[gaps] = (base + design @ coordinates)[gaps]",
        "row[gaps] = base[gaps]",
        "test_similarity_gaps.py -k new_rows",
    ),
    Bug(
        "sim-gaps-known-entries-moved",
        "out=filled, where=is_missing",
        "out=filled",
        "test_similarity_gaps.py -k known_entries",
    ),
    Bug(
        "sim-gaps-of-training-for-new-rows",
        "coordinates = rest @ axes",
        "coordinates = 1e-9 * rest @ axes",
        "test_similarity_gaps.py -k new_rows",
    ),
    Bug(
        "sim-gaps-explained-from-raw",
        "train, _ = fill_used(train, model._completed_rows_, model.n_features_in_)",
        "train = np.nan_to_num(train)",
        "test_similarity_gaps.py -k explain",
    ),
    # widths of intervals
    Bug(
        "sim-widths-of-all-items",
        "factors = local_quantiles(ratios, known, np.concatenate(predictions), coverage)",
        "factors = conformal_quantile(errors, coverage, None)",
        "test_similarity_spread.py -k 'halves or hand'",
    ),
    Bug(
        "sim-widths-forget-groups",
        "if groups is not None and len(np.unique(groups)) < len(groups):",
        "if False:",
        "test_similarity_spread.py -k groups_weights",
    ),
    Bug(
        "sim-widths-window-does-not-center",
        "starts = np.searchsorted((first + following) / 2.0, predictions)",
        "starts = np.searchsorted(first, predictions)",
        "test_similarity_spread.py -k nearest_predictions",
    ),
    Bug(
        "sim-widths-see-own-fold",
        "local[test] = local_errors(part, predictions[test], errors, predictions, weight, train)",
        "local[test] = np.column_stack([errors[test]] * 3)",
        "test_similarity_spread.py -k 'own_fold or halves'",
    ),
    Bug(
        "sim-widths-always",
        "if not paired_z(varying, constant, weight) > RULES.gain:",
        "if False:",
        "test_similarity_spread.py -k same_everywhere",
    ),
    Bug(
        "sim-widths-ignore-neighbors",
        "return np.maximum(local @ mixture, RULES.smallest * local[:, 0])",
        "return np.maximum(local[:, 0], 0.0)",
        "test_similarity_spread.py -k halves",
    ),
    Bug(
        "nearby-own-item-is-a-hit",
        "away[np.flatnonzero(known), own[rows][known]] = np.inf",
        "pass",
        "test_nearby.py -k no_hits_of_their_own",
    ),
    Bug(
        "nearby-learns-from-the-fold",
        "items = np.flatnonzero(self.fold_of != left)",
        "items = np.flatnonzero(self.fold_of != -1)",
        "test_nearby.py -k held_out_labels",
    ),
    Bug(
        "nearby-compares-landmarks-twice",
        "away[:, self.landmarks] = np.inf",
        "pass",
        "test_nearby.py -k loop_over_all",
    ),
    Bug(
        "similarity-kernel-of-distances-as-features",
        'if kernel.is_similarity and kind in ("distance", "dissimilarity"):',
        'if kernel.is_similarity and kind == "distance":',
        "test_similarity.py -k without_the_word",
    ),
    Bug(
        "race-scores-in-the-place-of-another-fold",
        "scores[:, splits[0][1]] = self.first_scores",
        "scores[:, splits[1][1]] = self.first_scores",
        "test_similarity_race.py -k raced_settings",
    ),
    Bug(
        "race-keeps-the-worst",
        'worst = np.argsort(losses[index], kind="stable")[number:]',
        'worst = np.argsort(-losses[index], kind="stable")[number:]',
        "test_similarity_race.py -k least_loss",
    ),
    Bug(
        "race-leaves-out-clip",
        'for name in families - {"clip", "flip"}:',
        "for name in families:",
        "test_similarity_race.py -k least_loss",
    ),
    Bug(
        "landmark-race-in-the-place-of-another-fold",
        "scores[:, fold_of == folds[0]] = learned.first_scores",
        "scores[:, fold_of == folds[1]] = learned.first_scores",
        "test_similarity_race.py -k with_landmarks_are_those",
    ),
    Bug(
        "main-axes-without-weights",
        "block = inner @ (weight[:, None] * start)",
        "block = inner @ start",
        "test_similarity_race.py -k repeated_rows",
    ),
    Bug(
        "projected-profiles-are-not-centered",
        "profiles = comparisons.distances @ self.turn - self.shift",
        "profiles = comparisons.distances @ self.turn",
        "test_similarity_race.py -k few_dimensions",
    ),
    Bug(
        "directed-landmarks-go-out-twice",
        "back = items[rows].T",
        "back = items[:, rows]",
        "test_directed.py -k 'asked_for_landmarks'",
    ),
    Bug(
        "directed-landmarks-keep-columns-of-one-direction",
        "return self._directed(self._chosen(out), self._chosen(back), diagonal)",
        "return self._directed(self._chosen(out), self._chosen(out), diagonal)",
        "test_directed.py -k see_both_directions",
    ),
    Bug(
        "some-pairs-are-computed-in-rectangles",
        "if not self._in_rectangles and not todo[np.ix_(i, j)].all():",
        "if False:",
        "test_functions.py -k some_pairs_are_those",
    ),
    Bug(
        "another-version-is-taken-from-memory",
        "if self.version is not None: name =",
        "if False:\n            name =",
        "test_disk.py -k although_memory",
    ),
    Bug(
        "pairs-learn-the-sign-of-one-class-only",
        "coef[members[b], :, a] = -dual[n_first:, :, 0]",
        "coef[members[b], :, a] = dual[n_first:, :, 0]",
        "test_similarity_race.py -k loop_over_them",
    ),
    Bug(
        "pairs-votes-are-not-cut",
        "votes = np.clip(decisions, -1.0, 1.0)",
        "votes = decisions",
        "test_similarity_race.py -k loop_over_them",
    ),
    Bug(
        "pairs-of-several-labels",
        "has_one_class_each = classify and bool(np.all((targets > 0.0).sum(axis=1) == 1))",
        "has_one_class_each = classify",
        "test_similarity_race.py -k several_labels",
    ),
    Bug(
        "profiles-of-many-dimensions-are-projected",
        "if kept >= GRIDS.profile_share * (profiles.weight @ squares_of(self.rows)):",
        "if kept >= 0.5 * (profiles.weight @ squares_of(self.rows)):",
        "test_similarity_race.py -k many_dimensions",
    ),
    Bug(
        "gaps-of-a-function-become-zero",
        "return self.gaps_.model.fill(rows)",
        "return np.nan_to_num(rows)",
        "test_similarity_gaps.py -k leaves_out",
    ),
    Bug(
        "gaps-of-a-function-are-explained-as-they-are",
        "if model.gaps_ is not None and train is None:",
        "if False:",
        "test_similarity_gaps.py -k with_gaps_explains",
    ),
]
