"""Planted bugs of the learner of tables."""

from bugs import Bug

CLASSES = "test_table_classes.py"

BUGS = [
    Bug(
        "lab-held-out-probabilities-without-weights",
        "cross_calibrate(scores, predicted.target, weight, fold_of)",
        "cross_calibrate(scores, predicted.target, None, fold_of)",
        "test_table_classes.py -k cover_with_weights",
    ),
    Bug(
        "lab-intervals-count-rows-of-groups",
        "return OutOfFold(training.used[rows], predictions, target[rows], groups)",
        "return OutOfFold(training.used[rows], predictions, target[rows])",
        "test_table_intervals.py -k count_groups",
    ),
    Bug(
        "lab-groups-of-ratios-unsorted",
        "groups = groups[order]\n    return spread._replace(ratios=ratios[order]",
        "groups = groups\n    return spread._replace(ratios=ratios[order]",
        "test_table_intervals.py -k keep_their_groups",
    ),
    Bug(
        "table-near-copies-as-groups-of-intervals",
        "        grouped = training._replace(groups=groups)\n        held =",
        "        grouped = training\n        held =",
        "test_table_intervals.py -k near_copies",
    ),
    Bug(
        "table-lonely-classes-unnamed",
        "            warn_of_lonely_classes(classes[labels], groups)\n        return TrainingRows",
        "            pass\n        return TrainingRows",
        "test_table_intervals.py -k in_one_group",
    ),
    Bug(
        "table-support-among-rows-with-weight",
        "members = numbered_members(solution.members, used)",
        "members = solution.members",
        "test_table_weights.py -k renumber",
    ),
    Bug(
        "table-weights-of-observations-in-another-order",
        "        if len(self.first) == len(self.number):\n            return weight\n",
        "",
        "test_table_weights.py -k keep_their_weights",
    ),
    Bug(
        "table-importances-weigh-classes-twice",
        "learner.set_params(class_weight=None)",
        "learner.set_params(random_state=0)",
        "test_table_importance.py -k weights_of_classes",
    ),
    Bug(
        "table-dates-as-numbers",
        'any(kind not in ("number", "empty") for kind in kinds.values())',
        "bool(orders)",
        "test_table_frames.py -k without_words",
    ),
    Bug(
        "table-time-zones-ignored",
        'return "zoned date" if has_zone else "date"',
        'return "date"',
        "test_table_frames.py -k time_zone",
    ),
    Bug(
        "table-unseen-word-is-the-first-of-two",
        "indicators[~np.isin(values, self.pair)] = self.share",
        "indicators[~np.isin(values, self.pair)] = 0.0",
        "test_table_frames.py -k neither_of_two",
    ),
    Bug(
        "table-median-of-the-first-rows",
        "sample = table[:: -(-len(table) // LIMITS.median_rows)]",
        "sample = table[: LIMITS.median_rows]",
        "test_table_frames.py -k sorted_table",
    ),
    Bug(
        "table-distilled-columns-by-position",
        "X = align_columns(as_frame(X, self.labels), self.labels)\n        given",
        "X = as_frame(X, self.labels)\n        given",
        "test_table_distill.py -k by_name",
    ),
    Bug(
        "table-folds-from-a-shared-generator",
        "    if is_shared:\n        return np.random.RandomState",
        "    if False:\n        return np.random.RandomState",
        "test_table_target.py -k others_draw_from",
    ),
    Bug(
        "table-wide-machines-see-one-class",
        "        if self.shares is not None:\n            return self.shares\n        n_classes",
        "        n_classes",
        "test_table_wide.py -k every_class_of_equal_rows",
    ),
    Bug(
        "table-tail-of-an-exact-relation",
        "explained: float = 0.5",
        "explained: float = 0.0",
        "test_table_target.py -k exact_relation",
    ),
    Bug(
        "table-gross-errors-taken-for-a-tail",
        "if errors[best] > most * without:",
        "if errors[best] > 1.1 * without:",
        "test_table_target.py -k gross_errors_of_a_target",
    ),
    Bug(
        "lab-laplace-few-rows-without-bandwidths",
        'np.einsum("jif,jf->ji", np.abs(S[:, None] - X), W, out=out)',
        'np.einsum("jif,jf->ji", np.abs(S[:, None] - X), W**0, out=out)',
        "test_lab_kernels.py -k plain_sum",
    ),
    # copies: equal rows with equal targets are one row with the sum of their weights
    Bug(
        "table-outliers-by-all-copies",
        "observed = Observations.of(copies, Y)\n        if len(observed) <",
        "observed = Observations(np.arange(len(X)), np.arange(len(X)))\n        if len(observed) <",
        "test_table_weights.py -k tails",
    ),
    Bug(
        "table-transform-by-all-copies",
        "observed = Observations.of(copies, Y)\n        transformed =",
        "observed = Observations(np.arange(len(X)), np.arange(len(X)))\n        transformed =",
        "test_table_weights.py -k tails",
    ),
    Bug(
        "table-encoding-by-all-copies",
        "observed = Observations.of(copies, Y)\n    values =",
        "observed = Observations(np.arange(len(Y)), np.arange(len(Y)))\n    values =",
        "test_table_weights.py -k tails",
    ),
    Bug(
        "table-encoding-by-chance",
        "gains.mean() > LIMITS.standard_errors * standard_error",
        "gains.mean() > 0.0 * standard_error",
        "test_table.py -k rare_category",
    ),
    Bug(
        "table-encoding-always-of-indicators",
        "gains.mean() > LIMITS.standard_errors * standard_error",
        "gains.mean() > 9e9 * standard_error",
        "test_table.py -k interact_with_a_number",
    ),
    Bug(
        "lab-interpolation-in-single-precision",
        'needs_double = self.settings.objective == "interpolation"',
        "needs_double = bool(self.settings.optimizers)",
        "test_lab.py -k double_precision",
    ),
    Bug(
        "table-last-ridge-of-the-first-fold",
        "log_ridge = float(np.median([model.log_ridge for model in models]))",
        "log_ridge = models[0].log_ridge",
        "test_lab_solver.py -k median_settings",
    ),
    Bug(
        "table-last-bandwidths-of-the-first-fold",
        "log_bandwidths = np.median([model.log_bandwidths for model in models], axis=0)",
        "log_bandwidths = models[0].log_bandwidths",
        "test_lab_solver.py -k median_settings",
    ),
    # speed: what is kept, single precision, iterations of trees
    Bug(
        "table-fixed-points-forget-the-bandwidths",
        "sums / bandwidths",
        "sums",
        "test_lab_kernels.py -k fixed_points",
    ),
    Bug(
        "table-fixed-points-one-bandwidth-for-all",
        "out = self.summed * (-1 / np.asarray(bandwidths, dtype=self.summed.dtype))",
        "out = -self.summed",
        "test_lab_kernels.py -k fixed_points",
    ),
    Bug(
        "table-shifted-systems-without-reflections",
        'tridiagonal.reflect(np.asarray(B, dtype=np.float64), "T")',
        'tridiagonal.reflect(np.asarray(B, dtype=np.float64), "N")',
        "test_lab_solver.py -k shifted_systems",
    ),
    Bug(
        "table-shifted-systems-indefinite",
        "        if info != 0:\n            continue\n        solution, _ = solve(",
        "        solution, _ = solve(",
        "test_lab_solver.py -k shifted_systems",
    ),
    Bug(
        "table-single-precision-always",
        "if np.abs(single(X) - form(X)).max(initial=0.0) > PREDICTIONS.largest_change:",
        "if False:",
        "test_table_wide.py -k single_precision_if",
    ),
    Bug(
        "table-single-precision-never",
        "single = form._replace(centers=form.centers.astype(np.float32))",
        "single = form",
        "test_table_wide.py -k single_precision_if",
    ),
    Bug(
        "table-trees-many-iterations-of-few-rows",
        "limit = LIMITS.iterations if n >= LIMITS.many_rows else LIMITS.usual_iterations",
        "limit = LIMITS.iterations",
        "test_table_wide.py -k work_allows",
    ),
    Bug(
        "table-trees-no-growth-with-the-rows",
        "np.clip(n / LIMITS.many_rows, 1.0, LIMITS.growth) / per_iteration",
        "1.0 / per_iteration",
        "test_table_wide.py -k work_allows",
    ),
    Bug(
        "table-experts-of-all-further-rows",
        "further.take(some_rows(len(further), LIMITS.most_rows, seed))",
        "further",
        "test_table_experts.py -k limited_number",
    ),
    # near-copies and small machines
    Bug(
        "table-near-copies-apart",
        "return training._replace(groups=sets)",
        "return training",
        "test_copies.py -k keeps_near_copies_together",
    ),
    Bug(
        "table-near-copies-need-no-continuous-columns",
        "if not _has_continuous_columns(distinct, categories):",
        "if False:",
        "test_copies.py -k two_columns",
    ),
    Bug(
        "table-near-copies-across-categories",
        "codes = rows[:, categories] * NEAR_ROWS.category_distance",
        "codes = rows[:, categories] * 0.0",
        "test_copies.py -k categories_and_gaps",
    ),
    Bug(
        "table-distill-loss-of-its-own-rows",
        "held_out_loss = loss(fit(train), held_out)",
        "held_out_loss = loss(fit(np.arange(len(rows))), held_out)",
        "test_table_distill.py -k 'numbers or classes'",
    ),
    Bug(
        "table-distill-ignores-rows",
        "rows = self._new_rows(X)\n        elif self._sample",
        "rows = self.encoding_.encode(self._sample.table)\n        elif self._sample",
        "test_table_distill.py -k without_targets",
    ),
    Bug(
        "table-distill-hard-classes",
        "weight = np.maximum(probabilities[places].ravel(), 1e-9)",
        "weight = np.ones(X.shape[0])",
        "test_table_distill.py -k words_and_gaps",
    ),
    # classes: log-odds, weights and the calibration of their average
    Bug(
        "table-pool-knows-the-row",
        "others = np.setdiff1d(order, part)",
        "others = order",
        f"{CLASSES} -k own_score",
    ),
    Bug(
        "table-members-without-log-odds",
        "np.full(n_functions, slope)",
        "np.ones(n_functions)",
        f"{CLASSES} -k predict_log_odds",
    ),
    Bug(
        "table-slope-of-all-members",
        "return cls(factors / factors.sum(), calibration.slope)",
        "return cls(factors / factors.sum(), np.ones(len(factors)))",
        f"{CLASSES} -k platt",
    ),
    Bug(
        "table-units-replaced",
        "center=self.center * scale + center, scale=self.scale * scale)\n\n\ndef raw_predictions",
        "center=center, scale=self.scale)\n\n\ndef raw_predictions",
        f"{CLASSES} -k of_trees_alone",
    ),
    # intervals
    Bug(
        "table-one-width",
        "multiples * self._std(X)",
        "multiples * np.mean(self._std(X), axis=0)",
        "test_table_intervals.py -k cover_there",
    ),
    Bug(
        "table-ratios-know-their-error",
        "deviations[test] = _varying_deviation(squares[train], signs[train])(signs[test])",
        "deviations[test] = _varying_deviation(squares, signs)(signs[test])",
        "test_table_intervals.py -k not_seen",
    ),
    # warnings
    Bug(
        "table-shares-judged-instead",
        "warn_if_useless(-np.log(probability), -np.log(share), name, weight, capped=False)",
        "warn_if_useless(-np.log(share), -np.log(probability), name, weight, capped=False)",
        f"{CLASSES} -k are_a_reason",
    ),
    # importances
    Bug(
        "table-importance-of-seen-rows",
        "learner.fit(self.table[train], self.target[train], self.weight[train], groups)",
        "learner.fit(self.table, self.target, self.weight)",
        "test_table_importance.py -k 'both_sides'",
    ),
    Bug(
        "table-importance-without-categories",
        "set_params(categorical_features=categories, random_state=0)",
        "set_params(categorical_features=None, random_state=0)",
        "test_table_importance.py -k categories_are",
    ),
    Bug(
        "table-importances-of-an-earlier-fit",
        "            _n_functions=n_functions,\n            _importances=None,\n",
        "            _n_functions=n_functions,\n",
        "test_table_importance.py -k matter",
    ),
    # far from the training rows
    Bug(
        "table-no-reach",
        "within = np.clip(member(X), others - member.reach, others + member.reach)",
        "within = member(X)",
        "test_table_target.py -k within_its_reach",
    ),
    Bug(
        "table-no-bounds",
        "np.clip(super()._predict_rows(rows), *self._bounds)",
        "super()._predict_rows(rows)",
        "test_table_target.py -k are_bounded",
    ),
    Bug(
        "table-reach-of-other-units",
        "reach=self.reach * float(scale[0])",
        "reach=self.reach",
        "test_table_target.py -k within_its_reach",
    ),
    # weights
    Bug(
        "table-repeated-rows-count-once",
        "w = observations.sums(weights_or_ones(weight, len(copies)))",
        "w = np.ones(len(observations))",
        "test_table_weights.py -k by_hand",
    ),
    Bug(
        "table-scaling-of-repeated-rows",
        "X = take_rows(X, merged.first)  # weights and repetition must not differ",
        "X = table.X",
        "test_table_weights.py -k repetition",
    ),
    # frames
    Bug(
        "table-lacking-keys",
        "frame.reindex(columns=[*frame.columns, *lacking])",
        "frame",
        "test_table_frames.py -k lack_keys",
    ),
    Bug(
        "table-member-with-the-intervals-of-the-average",
        "out_of_fold_=None,\n            spread_=None,",
        "",
        "test_table.py -k members_are_models",
    ),
    Bug(
        "table-member-with-its-share",
        "members = [member._replace(weight=1.0)]",
        "members = [member]",
        "test_table.py -k 'members_are_models or members_of_a'",
    ),
    Bug(
        "table-single-precision-for-few-centers",
        "or len(form.centers) < PREDICTIONS.fewest_centers",
        "",
        "test_table_wide.py -k few_centers",
    ),
    Bug(
        "table-order-of-the-new-frame",
        "return _ranks(column, self.orders[place])",
        "return _ranks(column, _order(column.astype('category')))",
        "test_table_frames.py -k ordered_categories_have",
    ),
    Bug(
        "table-kinds-unchecked",
        'given not in (kind, "empty") and not may_be_numbers',
        "False",
        "test_table_frames.py -k another_kind",
    ),
    Bug(
        "lab2-missing-groups-are-one",
        "check_groups(groups, len(y))",
        "pass",
        "test_table_frames.py -k groups_must_not",
    ),
]
