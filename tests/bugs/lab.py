"""Bugs in what LAB selects, announces and draws."""

from bugs import Bug

HONEST, PARTS = "test_lab_honest.py", "test_lab_parts.py"
SOLVER, DISPLAY = "test_lab_solver.py", "test_lab_inspection.py"
STEPS = "test_lab_optimizers.py"

BUGS = [
    Bug(
        "lab-class-units-of-rows",
        "class_units(Y, training.weight)\n        table, machine",
        "class_units(Y)\n        table, machine",
        "test_contract.py -k 'equal_repetition and LABClassifier'",
    ),
    # weights of rows
    Bug(
        "lab2-units-without-weights",
        "if self._optimizers else target_units(Y, training.weight)",
        "if self._optimizers else target_units(Y, np.ones(len(Y)))",
        f"{HONEST} -k hardly_any_weight",
    ),
    Bug(
        "lab2-deviation-without-weights",
        "np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weight))",
        "np.sqrt(np.mean((Z - mean) ** 2, axis=0))",
        f"{HONEST} -k repeated_rows",
    ),
    Bug(
        "lab2-errors-with-lowered-weights",
        "[float(np.mean(np.sum((p - held.rows.Y) ** 2, axis=1))) for p in predictions]",
        "[float(np.average(np.sum((p - held.rows.Y) ** 2, axis=1), weights=held.rows.weight)) for p in predictions]",
        f"{HONEST} -k lowered_weights",
    ),
    Bug(
        "lab2-start-without-weights",
        "smaller = replace(problem, X=first.X, Y=first.Y, weight=first.weight)",
        "smaller = replace(problem, X=first.X, Y=first.Y, weight=None)",
        f"{HONEST} -k hardly_any_weight",
    ),
    Bug(
        "lab2-mean-of-other-weights",
        "self.weight[numbers] / self.weight[numbers].mean()",
        "self.weight[numbers] / self.weight.mean()",
        f"{PARTS} -k mean_one",
    ),
    Bug(
        "lab2-losses-without-weights",
        "return weights * np.sum((predictions - truth) ** 2, axis=1)",
        "return np.sum((predictions - truth) ** 2, axis=1)",
        f"{PARTS} -k losses_of_rows",
    ),
    Bug(
        "lab2-tree-losses-without-weights",
        "return losses * self.rows.weight",
        "return losses",
        f"{PARTS} -k repeated_rows",
    ),
    Bug(
        "lab2-rows-renumbered",
        "OutOfFold(training.used[rows], predictions",
        "OutOfFold(rows, predictions",
        f"{PARTS} -k keep_their_numbers",
    ),
    Bug(
        "lab2-spread-of-other-rows",
        "take_rows(X, np.searchsorted(used, held.rows[sample]))",
        "take_rows(X, held.rows[sample] % len(X))",
        f"{PARTS} -k rows_that_were_held_out",
    ),
    # what predicts
    Bug(
        "lab2-named-kernel-with-others",
        "Plan(settings, (self.kernel,), rows, more",
        'Plan(settings, ("gaussian",), rows, more',
        f"{HONEST} -k named_kernel",
    ),
    Bug(
        "lab2-ridge-uninvited",
        'all_rows="ridge" in names and 5 <= n',
        "all_rows=5 <= n",
        "test_table.py -k chosen_members",
    ),
    Bug(
        "lab2-certificate-without-weight",
        'max(getattr(member, "certificate", 0.0) for member in members)',
        'max(getattr(candidate.refit(), "certificate", 0.0) for candidate in candidates)',
        f"{HONEST} -k with_weight",
    ),
    Bug(
        "lab2-certificate-of-another-point",
        "predictions, loss, state.certificate, curve, state.iteration, by_iteration",
        "predictions, loss, watches[0].kept[-1].state.certificate, curve, state.iteration, by_iteration",
        f"{HONEST} -k validation_chose",
    ),
    Bug(
        "lab2-certificate-of-the-plain-target",
        "certificate=max(certificates)",
        "certificate=plain.certificate",
        f"{HONEST} -k through_a_transform",
    ),
    Bug(
        "lab2-all-iterations-again",
        "settings = settings._replace(max_iter=candidate.n_iter)",
        "settings = settings._replace(max_iter=settings.max_iter)",
        f"{PARTS} -k iterations_of_the_folds",
    ),
    # held-out rows that choose for themselves
    Bug(
        "lab2-own-choice",
        "np.argmin([loss[others].sum() for loss in losses])",
        "np.argmin([loss.sum() for loss in losses])",
        f"{HONEST} -k best_of_the_others",
    ),
    Bug(
        "lab2-own-iterations",
        "predictions = cross_chosen(settings, [_losses(p, rows, folds) for p in settings], folds)",
        "predictions = np.concatenate([min(w.kept, key=lambda c: c.error).predictions for w in watches])",
        f"{HONEST} -k chosen_by_the_others",
    ),
    Bug(
        "lab2-own-trees",
        "trees = Candidate(LIMITS.name, chosen, partial(",
        "trees = Candidate(LIMITS.name, "
        "np.concatenate([min(s, key=every.take(v).loss) for s, (_, v) in zip(stages, folds)]), partial(",
        f"{HONEST} -k chosen_by_other_folds",
    ),
    Bug(
        "lab2-ridge-sees-all-rows",
        "plain[-1].predict(rows.X[valid], known.X)",
        "one_bandwidth(form, rows).predict(rows.X[valid], rows.X)",
        f"{SOLVER} -k fits_without_them",
    ),
    Bug(
        "lab2-evidence-sees-all-rows",
        "learned[-1].predict(rows.X[valid], known.X)",
        "bandwidth_per_feature(form, rows).predict(rows.X[valid], rows.X)",
        f"{SOLVER} -k fits_without_them",
    ),
    Bug(
        "lab2-hold-out-in-one-part",
        "np.array_split(places, min(5, len(places)))",
        "[places]",
        f"{HONEST} -k parts_of_held_out",
    ),
    Bug(
        "lab2-way-back-by-own-error",
        "held_out.way_back(without=part)",
        "held_out.way_back()",
        f"{PARTS} -k way_back",
    ),
    Bug(
        "lab2-transform-by-own-weights",
        "weighted_sum(weigh(others), both[:, part])",
        "weighted_sum(weigh(slice(None)), both[:, part])",
        f"{PARTS} -k way_back",
    ),
    # members
    Bug(
        "lab2-support-of-folds",
        "share = 1.0 if len(folds) == 1 else len(train) / len(rows)",
        "share = 1.0",
        f"{PARTS} -k in_proportion",
    ),
    Bug(
        "lab2-centers-of-refits",
        "size = -(-len(machine.model.support) * len(self.train) // n)",
        "size = len(machine.model.support)",
        f"{PARTS} -k in_proportion",
    ),
    Bug(
        "lab2-unseen-class",
        "scores.min(axis=1, keepdims=True) - 2.0",
        "scores.max(axis=1, keepdims=True) - 2.0",
        f"{PARTS} -k least_likely",
    ),
    Bug(
        "lab2-pool-without-slopes",
        "weighted_sum(self.weights * self.slopes, predictions)",
        "weighted_sum(self.weights, predictions)",
        "test_table_classes.py -k as_large_as",
    ),
    Bug(
        "lab2-first-of-equal-rows",
        "        shares = class_shares(table.copies, labels, weight)",
        "        shares = None",
        "test_table_classes.py -k order_of_equal_rows",
    ),
    Bug(
        "lab2-trees-of-first-class",
        "weight = given.observed\n        X = X[place]",
        "weight = given._replace(shares=None).observed\n        X = X[place]",
        "test_table_classes.py -k different_classes",
    ),
    Bug(
        "lab2-newton-leaves-the-bound",
        "is_free = (v > 0.0) | (gradient < 0.0)",
        "is_free = np.full(len(v), True)",
        "test_averaging.py -k log_loss_is_minimal",
    ),
    Bug(
        "lab2-linear-of-all-rows",
        "path = linear_path(known.take(train), LIMITS.inverse_penalties)",
        "path = linear_path(known, LIMITS.inverse_penalties)",
        "test_table_linear.py -k held_out_labels",
    ),
    Bug(
        "lab2-linear-penalty-of-weights",
        "model.set_params(C=inverse / weight.sum())",
        "model.set_params(C=inverse / weight.sum() ** 2)",
        "test_table_linear.py -k repeated_rows",
    ),
    Bug(
        "lab2-linear-unseen-class",
        "functions[0] = seen[0].min() - 2.0",
        "functions[0] = 0.0",
        "test_table_linear.py -k least_likely",
    ),
    Bug(
        "lab2-few-centers",
        "if n <= LIMITS.all_rows or most < LIMITS.fewest_centers:",
        "if n < LIMITS.all_rows:",
        f"{PARTS} -k within_the_memory",
    ),
    Bug(
        "lab2-gaps-by-the-smaller-scale",
        "scale[gap] = np.maximum(scale[gap],",
        "scale[gap] = np.minimum(scale[gap],",
        f"{PARTS} -k same_gaps",
    ),
    Bug(
        "lab2-fixed-columns-unpenalized",
        "P[fixed, fixed] = fixed_weight",
        "P[fixed, fixed] = 0.0",
        "test_table_wide.py -k fixed_columns",
    ),
    Bug(
        "lab2-logistic-without-weights",
        "weighted = (self.weight[:, None] * residual).astype(self.Phi.dtype)",
        "weighted = residual.astype(self.Phi.dtype)",
        "test_table_wide.py -k logistic",
    ),
    # tables
    Bug(
        "lab2-gaps-of-ordered-categories",
        "np.nan if word is None else places[word]",
        "-1.0 if word is None else places[word]",
        f"{PARTS} -k ordered_categories",
    ),
    Bug(
        "lab2-whole-numbers-as-floats",
        "float(value).is_integer(): return str(int(value))",
        "float(value).is_integer(): return str(value)",
        f"{PARTS} -k one_point_zero",
    ),
    Bug(
        "lab2-arrow-words",
        "return not kind.ordered\n    return holds_words(column)",
        "return not kind.ordered\n    return str(kind) in ('str', 'string', 'object')",
        "test_table.py -k memory_of_arrow",
    ),
    # pictures
    Bug(
        "lab2-picture-backwards",
        'by_prediction = np.argsort(self.order, kind="stable")',
        'by_prediction = np.argsort(-self.order, kind="stable")',
        f"{DISPLAY} -k bandwidths",
    ),
    Bug(
        "lab2-picture-of-other-features",
        "[:, features].T",
        "[:, : len(features)].T",
        f"{DISPLAY} -k bandwidths",
    ),
    Bug(
        "lab2-ring-at-the-end",
        "best = errors.argmin()",
        "best = len(errors) - 1 - errors.argmin()",
        "test_pictures.py -k descent",
    ),
    Bug(
        "lab2-widths-in-scaled-units",
        "model.bandwidths_.ravel() / np.abs(slope)",
        "model.bandwidths_.ravel() * np.abs(slope)",
        "test_pictures.py -k one_dimension",
    ),
    # Algorithm 1
    Bug(
        "lab3-theta-of-other-form",
        'factor = np.sqrt(2.0) if form == "gaussian" else 1.0',
        "factor = 1.0",
        f"{STEPS} -k 'estimator_is or every_form'",
    ),
    Bug(
        "lab3-gradient-of-the-mean",
        "return at.value, -total_weight * in_log_bandwidths",
        "return at.value, -1.0 * in_log_bandwidths",
        f"{STEPS} -k on_batches",
    ),
    Bug(
        "lab3-batches-with-support",
        "rest = np.setdiff1d(np.arange(len(problem.X)), support)",
        "rest = np.arange(len(problem.X))",
        f"{STEPS} -k on_batches",
    ),
    Bug(
        "lab3-adam-with-bias",
        "unbiased = mean / (1.0 - 0.9**step)",
        "unbiased = mean",
        f"{STEPS} -k on_batches",
    ),
    Bug(
        "lab3-growth-without-step",
        "growth_step=support.step,",
        "growth_step=None,",
        f"{STEPS} -k 'estimator_is or whole_steps'",
    ),
    Bug(
        "lab3-standardized-targets",
        "units = range_scaling(Y) if self._optimizers else target_units(Y, training.weight)",
        "units = target_units(Y, training.weight)",
        f"{STEPS} -k estimator_is",
    ),
    Bug(
        "lab3-divergence-unsaid",
        "if broke_down or after > before:",
        "if broke_down:",
        f"{STEPS} -k diverge",
    ),
    Bug(
        "lab3-clipped-range",
        "low=np.full_like(half, -np.inf), high=np.full_like(half, np.inf),",
        "",
        f"{STEPS} -k scaled_to_their_range",
    ),
    Bug(
        "lab3-last-steps",
        "if is_last: n_steps = optimizer.final_steps or n_steps",
        "if not is_last: n_steps = optimizer.final_steps or n_steps",
        f"{STEPS} -k take_turns",
    ),
]
