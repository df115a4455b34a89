"""Bugs in solvers, kernels, spectra, votes and members."""

from bugs import Bug

KREIN, KREIN_E = "test_krein.py", "test_krein_estimators.py"
DANK, DANK_S, DANK_T = "test_dank.py", "test_dank_solver.py", "test_dank_tuning.py"
SIM, LAB, HYPER = "test_similarity_solvers.py", "test_lab_solver.py", "test_hyper.py"
STAT, VOTE, SPECTRA = "test_compare_statistics.py", "test_compare_vote.py", "test_spectra.py"
LOW, ASYM, WIDE = "test_lowrank.py", "test_asymmetric.py", "test_table_wide.py"
EXPERTS, THREADS = "test_table_experts.py", "test_threads.py"
ITEMS, EMBED, DIRECTED = "test_functions.py", "test_embedding.py", "test_directed.py"

BUGS = [
    # the eight that survived the first planting
    Bug("vote-leakage", " and other != split]", "]", f"{VOTE} -k tested_split"),
    Bug(
        "dank-gap-forgets-the-tube",
        "hi * (g - epsilon), lo * (g + epsilon)",
        "hi * (g - epsilon), lo * (g - epsilon)",
        f"{DANK_S} -k gap",
    ),
    Bug(
        "svm-center-intercept",
        "return coef, intercept - self.mean @ coef",
        "return coef, intercept",
        KREIN_E + " -k centered",
    ),
    Bug(
        "krein-gradient-dropped",
        "(positive, dropped, 1.0)]",
        "(positive, dropped, 0.0)]",
        f"{KREIN} -k gradient",
    ),
    Bug(
        "asymmetric-loo-zero",
        "np.where(lost, np.inf,",
        "np.where(lost, 0.0,",
        ASYM + " -k leave_one_out",
    ),
    Bug(
        "shift-not-shared",
        "+= self.shift_ / same.sum()",
        "+= self.shift_",
        f"{SPECTRA} -k duplicates",
    ),
    Bug("lowrank-norm-scale", "diagonal * n / b + (rest", "diagonal + (rest", f"{LOW} -k norm"),
    Bug(
        "dank-weighted-adaptation",
        "u = state.v[rows] / problem.weight[rows] / (2.0",
        "u = state.v[rows] / np.sqrt(problem.weight[rows]) / (2.0",
        f"{DANK} -k weight",
    ),
    # Krein: spheres, systems, gradients
    Bug(
        "sphere-ball-inside",
        "active = ~((smallest > -1.0) & (free <= R))",
        "active = free > R",
        f"{KREIN} -k brute",
    ),
    Bug(
        "sphere-lower-end",
        "delta = np.maximum((np.abs(t) - gap).max(axis=1), 0.0)",
        "delta = np.abs(t).max(axis=1)",
        f"{KREIN} -k precision",
    ),
    Bug(
        "sphere-hard-case",
        "np.sqrt(np.maximum(1.0 - norm[rows] ** 2, 0.0))",
        "np.maximum(1.0 - norm[rows], 0.0)",
        f"{KREIN} -k hard",
    ),
    Bug(
        "sphere-multiplier-sign",
        "return u, slack, smallest - delta, hard, steps",
        "return u, slack, smallest + delta, hard, steps",
        f"{KREIN} -k ganders",
    ),
    Bug(
        "sphere-pullback-radius",
        "kappa * np.where(solution.active, np.asarray(radius",
        "-kappa * np.where(solution.active, np.asarray(radius",
        f"{KREIN} -k pullback",
    ),
    Bug(
        "krein-penalties-swapped",
        "np.where(values > 0, plus[..., None], minus[..., None])",
        "np.where(values < 0, plus[..., None], minus[..., None])",
        f"{KREIN} -k dense",
    ),
    Bug(
        "krein-center-grand-mean",
        "        Kt += grand\n",
        "        Kt -= grand\n",
        "test_solver_properties.py -k landmark",
    ),
    Bug(
        "krein-weights-not-roots",
        "root = np.sqrt(weight).astype(K.dtype)",
        "root = weight.astype(K.dtype)",
        f"{KREIN_E} -k weight",
    ),
    Bug(
        "krein-intercept-at-predict",
        "intercept = system.offset - np.tensordot(system.center, coef, axes=(0, 0))",
        "intercept = system.offset - 0 * np.tensordot(system.center, coef, axes=(0, 0))",
        f"{KREIN_E} -k fitted",
    ),
    Bug(
        "krein-radius-scale",
        "R = np.sqrt(system.n) * np.asarray",
        "R = system.n * np.asarray",
        f"{KREIN} -k variance",
    ),
    Bug(
        "krein-parts-side",
        "side = np.sign(system.values) == sign",
        "side = np.sign(system.values) == -sign",
        f"{KREIN} -k part",
    ),
    Bug(
        "krein-low-rank-signature",
        "lift = J[:, None] * (R.T @ Z[:, keep])",
        "lift = R.T @ Z[:, keep]",
        f"{KREIN} -k landmarks",
    ),
    Bug(
        "krein-gradient-cross",
        "jump = nu[-1] - nu[0] if",
        "jump = nu[0] - nu[-1] if",
        f"{KREIN} -k gradient",
    ),
    Bug(
        "krein-gradient-low-rank",
        "for each in (*second, *first)",
        "for each in (*first, *second)",
        f"{KREIN} -k gradient",
    ),
    Bug(
        "krein-gradient-cauchy-matrix",
        "columns * (to_row[j] / to_row)",
        "columns / to_row",
        f"{KREIN} -k cauchy",
    ),
    Bug(
        "krein-gradient-mean",
        "coef_bar = K_val.T @ g - np.outer(mean, g.sum(axis=0))",
        "coef_bar = K_val.T @ g",
        f"{KREIN} -k gradient",
    ),
    Bug(
        "krein-gradient-alpha",
        "return float(weighted[s > 0].sum()), float(weighted[s < 0].sum())",
        "return float(weighted[s < 0].sum()), float(weighted[s > 0].sum())",
        f"{KREIN} -k gradient",
    ),
    # machines
    Bug(
        "svm-negative-penalty",
        "-1.0 / negative_penalty).astype",
        "-1.0 * negative_penalty).astype",
        f"{KREIN} -k penalty",
    ),
    Bug(
        "svm-projector-transposed",
        "projector = (left * factor) @ V.T",
        "projector = V @ (left * factor).T",
        f"{KREIN} -k weighted",
    ),
    Bug(
        "svm-hinge-gap",
        "return _relative(norm / 2 + cost @ loss, np.abs(beta).sum() - norm / 2)",
        "return _relative(norm / 2, np.abs(beta).sum() - norm / 2)",
        f"{KREIN} -k gaps",
    ),
    Bug(
        "svm-tube-gap",
        "y @ beta - epsilon * np.abs(beta).sum() - norm / 2",
        "y @ beta - norm / 2",
        f"{KREIN} -k gaps",
    ),
    Bug(
        "svm-pairs-sign",
        "flip = 1.0 if len(present) == 2 else -1.0",
        "flip = -1.0 if len(present) == 2 else 1.0",
        f"{KREIN} -k pairs",
    ),
    Bug(
        "svm-squared-cost", "cost = 2.0 * C * weights", "cost = C * weights", f"{KREIN} -k squared"
    ),
    Bug(
        "svm-squared-gap-of-an-infeasible-point",
        "_squared_hinge_dual(K, sign, cost * sign * loss, cost / 2)",
        "_squared_hinge_dual(K, sign, beta, cost / 2)",
        f"{KREIN} -k missing_before",
    ),
    # asymmetric ridge
    Bug(
        "asymmetric-no-transpose",
        "right = lu_solve(factor, right_side, trans=1, check_finite=False)",
        "right = lu_solve(factor, right_side, check_finite=False)",
        f"{ASYM} -k residuals",
    ),
    Bug(
        "asymmetric-weight",
        "+= alpha / weights_or_ones(weight, n)",
        "+= alpha * weights_or_ones(weight, n)",
        f"{ASYM} -k repeated",
    ),
    Bug(
        "asymmetric-intercept-scale",
        "border * coef[n:].sum(axis=0)",
        "coef[n:].sum(axis=0)",
        f"{ASYM} -k intercept",
    ),
    Bug(
        "asymmetric-choice",
        "side_error < (1 - LIMITS.tie) * best[0]",
        "side_error > (1 - LIMITS.tie) * best[0]",
        f"{ASYM} -k chosen",
    ),
    Bug(
        "asymmetric-loo-diagonal",
        "coef[:n] / diagonal) for coef",
        "coef[:n] * diagonal) for coef",
        f"{ASYM} -k leave_one_out",
    ),
    # DANK
    Bug(
        "dank-quartic-gradient",
        "return problem.p - point.kv - problem.curvature * point.v * point.q",
        "return problem.p - point.kv - 2 * problem.curvature * point.v * point.q",
        f"{DANK_S} -k first_order",
    ),
    Bug(
        "dank-projection-sign",
        "return np.clip(z - nu, lo, hi)",
        "return np.clip(z + nu, lo, hi)",
        f"{DANK_S} -k projection",
    ),
    Bug(
        "dank-gap-scale",
        "- epsilon * float(np.abs(v).sum())), 1e-200)",
        "+ epsilon * float(np.abs(v).sum())), 1e-200)",
        f"{DANK_S} -k gap",
    ),
    Bug(
        "dank-gap-signed",
        "np.maximum(best - (g * v - epsilon * np.abs(v)), 0.0)",
        "np.maximum(best - g * v, 0.0)",
        f"{DANK_S} -k gap",
    ),
    Bug(
        "dank-rank-shift",
        "strengths = adaptation.values - problem.rank_penalty / 2",
        "strengths = adaptation.values",
        f"{DANK_S} -k gradient",
    ),
    Bug(
        "dank-value-dropped",
        "rank * tau**2 / 4 - adaptation.dropped",
        "rank * tau**2 / 4 + adaptation.dropped",
        f"{DANK_S} -k dense",
    ),
    Bug(
        "dank-factor-root",
        "root = np.sqrt(state.adaptation.values - problem.rank_penalty / 2)",
        "root = np.sqrt(state.adaptation.values)",
        f"{DANK_S} -k certificate",
    ),
    Bug(
        "dank-outside-rows",
        "e = np.append(np.sqrt(problem.outside), root_weight)",
        "e = np.append(0.0, root_weight)",
        f"{DANK_S} -k dense",
    ),
    Bug(
        "dank-equal-rows",
        "shared[repeated] = weight[repeated] * of_groups[groups]",
        "shared[repeated] = of_groups[groups]",
        f"{DANK} -k share_by",
    ),
    Bug(
        "dank-svr-scale",
        "v[model.support_] = size * model.dual_coef_[0]",
        "v[model.support_] = model.dual_coef_[0]",
        f"{DANK} -k scale",
    ),
    Bug("dank-tuning-bound", "bound @ (a - image)", "bound @ (a + image)", f"{DANK_T} -k central"),
    Bug(
        "dank-tuning-centering",
        "in_penalty = q.curvature * (z @",
        "in_penalty = -q.curvature * (z @",
        f"{DANK_T} -k central",
    ),
    Bug(
        "dank-tuning-pair",
        "pair = -np.outer(z, v) - 2 * q.curvature",
        "pair = -np.outer(z, v) - q.curvature",
        f"{DANK_T} -k central",
    ),
    Bug(
        "dank-tuning-intercept",
        "np.add.at(z, rows, total / len(rows))",
        "np.add.at(z, rows, 0.0)",
        f"{DANK_T} -k no_row",
    ),
    Bug(
        "dank-adaptation-offset",
        "n_others = len(part.rows) - len(part.support)",
        "n_others = len(part.rows)",
        f"{DANK} -k adaptation",
    ),
    # the DANK paper's elements
    Bug(
        "dank-theory-shrinkage",
        "shrunk = np.maximum(values - rank_penalty / 2, 0.0)",
        "shrunk = np.maximum(values - rank_penalty, 0.0)",
        "test_dank_theory.py -k 'better_than or central'",
    ),
    Bug(
        "dank-theory-objective",
        "penalty = centering_penalty * (distance + rank_penalty * nuclear_norm)",
        "penalty = centering_penalty * distance + rank_penalty * nuclear_norm",
        "test_dank_theory.py -k equation_4",
    ),
    Bug(
        "dank-theory-lemma-1",
        "square = C**2 if sharp else n * C**2",
        "square = C if sharp else n * C",
        "test_dank_theory.py -k by_hand",
    ),
    Bug(
        "dank-theory-lipschitz",
        "return largest + 3.0 * kappa**2 * square",
        "return 0.02 * largest",
        "test_dank_theory.py -k random_pairs",
    ),
    Bug(
        "dank-theory-parts",
        "return PartsBound(between, printed, float(largest) * C**2 * between)",
        "return PartsBound(between, printed, printed)",
        "test_dank_theory.py -k theorem_6",
    ),
    Bug(
        "dank-theory-threshold",
        "threshold = -(2.0 * largest - smallest) * C * (within + sizes.max())",
        "threshold = -largest * C * (within + sizes.max())",
        "test_dank_theory.py -k screening",
    ),
    Bug(
        "dank-theory-line-7",
        "sign = -1.0 if as_printed else 1.0",
        "sign = 1.0",
        "test_dank_theory.py -k algorithm_1",
    ),
    Bug(
        "dank-theory-plane",
        "normal = self.signs * np.tile(self.y, 2)",
        "normal = self.signs",
        "test_dank_theory.py -k algorithm_2",
    ),
    Bug(
        "dank-theory-radius",
        "return float(np.log(distance / radius))",
        "return float(np.log(distance**2 / radius))",
        "test_dank_theory.py -k 'general_solver or rank'",
    ),
    # spectra, low rank
    Bug(
        "spectra-flip-as-clip",
        '"flip": np.abs(s), "square"',
        '"flip": np.maximum(s, 0.0), "square"',
        f"{SPECTRA} -k textbook",
    ),
    Bug(
        "spectra-shift-sign",
        "max(0.0, -s.min(initial=0.0))",
        "max(0.0, s.min(initial=0.0))",
        f"{SPECTRA} -k textbook",
    ),
    Bug(
        "spectra-center-test-mean",
        "centered -= self.column_means_ - self.column_means_.mean()",
        "centered -= powers.mean(axis=0) - powers.mean()",
        f"{SPECTRA} -k new_rows",
    ),
    Bug(
        "spectra-distance-half",
        "return -0.5 * np.maximum(values, 0.0) ** 2",
        "return -0.5 * np.maximum(values, 0.0)",
        "test_similarity.py -k distance",
    ),
    Bug(
        "spectra-symmetrize-reverse",
        'other = check_real(reverse, "reverse").T',
        'other = check_real(reverse, "reverse")',
        f"{SPECTRA} -k symmetrize",
    ),
    Bug(
        "lowrank-core-sides",
        "core = Q.T @ _entries(kernel, X, sample, sample) @ Q",
        "core = Q.T @ _entries(kernel, X, sample, sample)[:, ::-1] @ Q",
        f"{LOW} -k exact",
    ),
    Bug("lowrank-order", "transform[order[:rank]] =", "transform[:rank] =", f"{LOW} -k exact"),
    Bug(
        "lowrank-residual", "left[pivots] = 0.0\n", "left[pivots] = 1.0\n", f"{LOW} -k TestPivoted"
    ),
    # see: coverage, reasons, suspects
    Bug(
        "conformal-rank",
        "int(np.ceil((n + 1) * coverage - 1e-9))",
        "int(np.ceil(n * coverage - 1e-9))",
        "test_conformal.py -k rank",
    ),
    Bug(
        "conformal-own-label",
        "train = fold_of != fold",
        "train = fold_of == fold",
        "test_conformal.py -k own_label",
    ),
    Bug(
        "spread-left",
        "logs[is_center] = -np.log(",
        "logs[is_center] = np.log(",
        "test_conformal.py -k posterior",
    ),
    Bug(
        "spread-penalty",
        "alpha=2.0 * LIMITS.penalty",
        "alpha=9.0 * LIMITS.penalty",
        "test_conformal.py -k optimal",
    ),
    Bug(
        "reasons-base",
        "effect = mix @ (Y - mean).T",
        "effect = mix @ Y.T",
        "test_reasons.py -k add_up",
    ),
    Bug(
        "reasons-path",
        "(panel + (node + 1.0) / 2.0) / n_panels",
        "(node + 1.0) / 2.0",
        "test_reasons.py -k add_up",
    ),
    Bug(
        "suspects-rate",
        "false_alarms = np.cumsum(improbable) / max(n, 1)",
        "false_alarms = np.arange(1.0, len(improbable) + 1) / (n * proba.shape[1])",
        "test_suspects.py -k drawn",
    ),
    # similarity: paths, stacking, sparse machine
    Bug(
        "stack-spectral-column-mean",
        "centered -= (column_mean - total_mean)[:, None]",
        "centered -= column_mean[:, None]",
        f"{SIM} -k spectral",
    ),
    Bug(
        "stack-spectral-filter",
        "transformed / values / (transformed + ridge",
        "transformed / np.abs(values) / (transformed + ridge",
        f"{SIM} -k spectral",
    ),
    Bug(
        "stack-feature-weights",
        "np.where(is_constant, 0.0, np.sqrt(weight) / divisor)",
        "np.where(is_constant, 0.0, 1.0 / divisor)",
        f"{SIM} -k repeated",
    ),
    Bug(
        "stack-feature-norm",
        "np.fill_diagonal(work, diagonal + penalty * norm)",
        "np.fill_diagonal(work, diagonal + penalty)",
        f"{SIM} -k primal",
    ),
    Bug(
        "stack-profiles-weights",
        "return cls.fit(A, weight, len(A), np.sqrt(column_weight))",
        "return cls.fit(A, weight, len(A))",
        f"{SIM} -k profiles",
    ),
    Bug("stack-logistic-momentum", "step / (step + 3.0)", "step / 3.0", f"{SIM} -k logistic"),
    Bug(
        "stack-logistic-weights",
        "bias_rate = root[:, 0] ** 2 /",
        "bias_rate = root[:, 0] /",
        f"{SIM} -k logistic",
    ),
    Bug(
        "stack-neighbors-ties-beyond",
        "is_tied = last_two[:, 1] - last_two[:, 0] <= tol[:, 0]",
        "is_tied = last_two[:, 1] < last_two[:, 0]",
        f"{SIM} -k ties_beyond",
    ),
    Bug(
        "stack-spectrum-reflections",
        'self.tridiagonal.reflect(columns, "T")',
        'self.tridiagonal.reflect(columns, "N")',
        f"{SIM} -k spectral",
    ),
    Bug(
        "stack-class-distances",
        "[:, :size].mean(axis=1)",
        "[:, size - 1]",
        f"{SIM} -k class_distances",
    ),
    Bug(
        "stack-temperature-prior",
        "+ 2.0 * pull * (b - 1.0)",
        "+ pull * (b - 1.0)",
        f"{SIM} -k temperature",
    ),
    Bug(
        "stack-fence-decides",
        "> RULES.extreme_targets else (cut, fenced)",
        "> 0.0 else (cut, fenced)",
        f"{SIM} -k two_rows",
    ),
    Bug(
        "stack-three-settings",
        'kind="stable")[: RULES.n_best]]',
        'kind="stable")[-RULES.n_best :]]',
        f"{SIM} -k selection",
    ),
    Bug(
        "landmarks-fold-votes",
        "is_labeled &= self.fold_of[items] != left",
        "is_labeled &= True",
        "test_landmarks.py -k held_out",
    ),
    Bug(
        "landmarks-fold-in-its-sums",
        "for number, part in enumerate(by_fold) if number != fold]",
        "for number, part in enumerate(by_fold) if number >= 0]",
        "test_landmarks.py -k without_a_fold",
    ),
    Bug(
        "landmarks-triangles-kept",
        "self.spans[width]._replace(triangle=None)",
        "self.spans[width]",
        "test_landmarks.py -k smaller_than",
    ),
    Bug(
        "landmarks-points-saved-twice",
        'if name != "at_points"}',
        "}",
        "test_landmarks.py -k smaller_than",
    ),
    Bug(
        "landmarks-center-of-sums",
        "products.cross[:, outputs] - np.outer(products.first, mean)",
        "products.cross[:, outputs]",
        "test_landmarks.py -k 'without_a_fold or family_of_all'",
    ),
    Bug(
        "several-without-sum",
        "total = squares if total is None else total + squares",
        "total = squares",
        "test_several.py -k any_order",
    ),
    # LAB
    Bug(
        "lab-evidence-noise",
        "value = np.log(Q) + (logdet - p * np.log(ridge * N)) / N",
        "value = np.log(Q) + (logdet - p * np.log(ridge)) / N",
        f"{LAB} -k evidence",
    ),
    Bug(
        "lab-evidence-ridge",
        "ridge_gradient = penalty / Q + ridge * np.trace(inverse) - p / N",
        "ridge_gradient = penalty / Q + ridge * np.trace(inverse)",
        f"{LAB} -k gradients",
    ),
    Bug(
        "lab-interpolation-sign",
        "G[support] = -U @ coef.T",
        "G[support] = U @ coef.T",
        f"{LAB} -k gradients",
    ),
    Bug(
        "lab-shared-weights",
        "1 / np.maximum(weights_or_ones(weight, n), 1e-16)",
        "1 / np.sqrt(np.maximum(weights_or_ones(weight, n), 1e-16))",
        f"{LAB} -k evidence",
    ),
    Bug(
        "lab-grid-start",
        "explained, logdet = shifted_systems(A, B, ridges * n)",
        "explained, logdet = shifted_systems(A, B, ridges)",
        f"{LAB} -k grid",
    ),
    Bug(
        "lab-blind-start",
        "best = min(best, (blind, float(values[k]),",
        "best = min(best, (False, float(values[k]),",
        f"{LAB} -k see",
    ),
    Bug(
        "lab-slope-sign",
        "(H * c) @ S - Z * (H @ c)[:, None]",
        "Z * (H @ c)[:, None] - (H * c) @ S",
        f"{WIDE} -k slopes",
    ),
    Bug(
        "lab-weights-of-sums",
        "target = Phi.T @ (Y * root).astype(dtype)",
        "target = Phi.T @ Y.astype(dtype)",
        f"{WIDE} -k of_weights",
    ),
    Bug("lab-single-distance", "D += squares\n", "D += 0 * squares\n", f"{WIDE} -k near_a_center"),
    Bug(
        "lab-target-bias",
        "self.inverse(moved).mean(axis=1)",
        "self.inverse(knots)",
        "test_table_target.py -k mean_target",
    ),
    Bug(
        "lab-target-weights",
        "share = np.bincount(place, weights=weight)",
        "share = np.bincount(place).astype(float)",
        "test_table_target.py -k mean_target",
    ),
    Bug("lab-map-root", "V * np.sqrt(eigenvalues)", "V * eigenvalues", f"{WIDE} -k map_shrinks"),
    Bug(
        "lab-logistic-ridge", "of_scores + self.ridge * PC", "of_scores + PC", f"{WIDE} -k logistic"
    ),
    Bug(
        "lab-experts-leak",
        "known = rows.take(train).joined(",
        "known = rows.joined(",
        f"{EXPERTS} -k held_out",
    ),
    Bug("lab-experts-alone", "largest) + LIMITS.neighbors", "largest)", f"{EXPERTS} -k around"),
    Bug(
        "lab-experts-metric",
        "rows.X * np.exp(-scale)",
        "rows.X * np.exp(0 * scale)",
        f"{EXPERTS} -k matters",
    ),
    Bug(
        "lab-leave-one-out",
        "(q / s[:, None]) / g[:, None]",
        "(q / s[:, None])",
        f"{EXPERTS} -k leave_one_out",
    ),
    Bug(
        "lab-statistics-leak",
        "others = fold != k",
        "others = fold >= 0",
        "test_table.py -k own_target",
    ),
    Bug(
        "lab-unseen-category",
        "np.where(np.isin(values, self.codes), place, len(self.codes))",
        "np.minimum(place, len(self.codes) - 1)",
        "test_table.py -k by_hand",
    ),
    Bug(
        "lab-gaps-of-trees",
        "self.mark_of[marked]] > 0, np.nan,",
        "self.mark_of[marked]] < 0, np.nan,",
        "test_table.py -k gaps_and_categories",
    ),
    Bug(
        "lab-codes-of-trees",
        '"categorical_features": list(categories) or None',
        '"categorical_features": None',
        "test_table.py -k split_categories",
    ),
    # the hyper-kernel paper's elements
    Bug(
        "hyper-theory-grid",
        "items = X[random.permutation(len(X))[: items_of_grid(n_centers)]]",
        "items = X[: items_of_grid(n_centers)]",
        "test_hyper_theory.py -k equation_9",
    ),
    Bug(
        "hyper-theory-parts",
        "coef = np.concatenate([solution.coef for solution in solutions]) / len(parts)",
        "coef = np.concatenate([solution.coef for solution in solutions])",
        "test_hyper_theory.py -k algorithm_1",
    ),
    Bug(
        "hyper-theory-lemma-11",
        "spread = 4.0 * variance + 4.0 / 3.0 * bound * distance ** (1.0 - theta)",
        "spread = 4.0 * variance + 4.0 / 3.0 * bound * distance",
        "test_hyper_theory.py -k lemma_11",
    ),
    Bug(
        "hyper-theory-noise",
        "of_variance = 2.0 ** (2.0 - theta) * (q * norm) ** theta",
        "of_variance = 0.2 * (q * norm) ** theta",
        "test_hyper_theory.py -k proposition_9",
    ),
    Bug(
        "hyper-theory-decomposition",
        "fixed=of_fixed - bias,",
        "fixed=bias - of_fixed,",
        "test_hyper_theory.py -k decomposition",
    ),
    Bug(
        "hyper-theory-tail",
        "2.0 ** (d + 2) * float(d) ** d",
        "2.0 ** (d + 1) * float(d) ** d",
        "test_hyper_theory.py -k printed",
    ),
    # kernels that share their normal equations
    Bug(
        "hyper-path-of-other-rows",
        "hyper = id(candidate.hyper_kernel)",
        "hyper = index",
        "test_hyper_machine.py -k share_the_normal",
    ),
    Bug(
        "hyper-path-in-parts",
        "is_plain = task.epsilon is None and not task.nonnegative and task.n_parts == 1",
        "is_plain = task.epsilon is None and not task.nonnegative",
        "test_hyper_machine.py -k paths_serve",
    ),
    # hyper
    Bug(
        "hyper-kept-sections-of-other-columns",
        "place = (rows.start, rows.stop, columns.start, columns.stop)",
        "place = (rows.start, rows.stop)",
        f"{HYPER} -k evaluated_once",
    ),
    Bug(
        "hyper-sections-evaluated-again",
        "            kept[place] = design.blocks(rows, columns)\n        return kept[place]",
        "            return design.blocks(rows, columns)\n        return kept[place]",
        f"{HYPER} -k evaluated_once",
    ),
    Bug(
        "hyper-wishart-iterates",
        "return n_centers > LIMITS.direct_sections",
        "return True",
        "test_hyper_machine.py -k paths_serve",
    ),
    Bug(
        "hyper-wishart-elimination",
        "eliminated /= 8.0",
        "eliminated /= 4.0",
        f"{HYPER} -k its_definition",
    ),
    Bug(
        "hyper-block-weights",
        "yield left, right, 1.0 if same and a == b else 2.0",
        "yield left, right, 1.0",
        f"{HYPER} -k sum_of_their_blocks",
    ),
    Bug(
        "hyper-intercept",
        "intercept = float(root @ solved[:, 0] / (root @ solved[:, 1]))",
        "intercept = float(root @ solved[:, 0] / len(root))",
        f"{HYPER} -k stationary",
    ),
    Bug(
        "hyper-ridge-weights",
        "ridge = alpha * weight.sum()",
        "ridge = alpha * len(weight)",
        f"{HYPER} -k reduced",
    ),
    Bug(
        "hyper-missing-entries",
        "used = ~np.isnan(y)\n        if not used.all():",
        "used = ~np.isnan(y)\n        y = np.nan_to_num(y)\n        if not used.all() and False:",
        f"{HYPER} -k missing",
    ),
    Bug(
        "hyper-folds-mixed",
        "of_fold = rows[folds == k]",
        "of_fold = rows[folds != k]",
        "test_hyper_machine.py",
    ),
    Bug(
        "hyper-constant-knows-the-fold",
        "known = rest[~np.isnan(rest)]",
        "known = S[~np.isnan(S)]",
        f"{HYPER} -k constant_kernel",
    ),
    # statistics and votes
    Bug(
        "statistics-no-overlap",
        "(1.0 + ratio) * of_items + of_training)",
        "of_items + of_training)",
        f"{STAT} -k definition",
    ),
    Bug(
        "statistics-pair-covariance",
        "np.add.outer(variances, variances) - 2.0 * covariance",
        "np.add.outer(variances, variances) - covariance",
        f"{STAT} -k definition",
    ),
    Bug(
        "statistics-critical",
        "float(studentized_range / np.sqrt(2.0))",
        "float(studentized_range)",
        f"{STAT} -k 'eight or definition or percent'",
    ),
    Bug(
        "statistics-repeats",
        "sums = _sums(units, rows) / tested_in[:, None]",
        "sums = _sums(units, rows)",
        f"{STAT} -k definition",
    ),
    Bug(
        "statistics-strata",
        "covariance += len(sums) * np.cov(sums, rowvar=False)",
        "covariance += np.cov(sums, rowvar=False)",
        f"{STAT} -k definition",
    ),
    Bug(
        "vote-weights",
        "np.bincount(column, weights=WEIGHTS).argmax()",
        "np.bincount(column).argmax()",
        f"{VOTE} -k 'joint_vote'",
    ),
    Bug(
        "vote-all-repeats",
        "if other[0] == split[0] and other",
        "if other",
        f"{VOTE} -k tested_split",
    ),
    # functions of items, the embedding, both directions
    Bug(
        "store-mixes-directions",
        "memory.store(name, symmetric)",
        "memory.store(name, True)",
        f"{ITEMS} -k directed_values",
    ),
    Bug(
        "store-forgets-the-change",
        "return bool(_differences(before, now).max() > 10.0 * max(noise, rounding))",
        "return False",
        f"{ITEMS} -k 'out_of_sight or other_ones'",
    ),
    Bug(
        "store-keeps-evicted-values",
        "self.values[freed] = np.nan self.values[:, freed] = np.nan",
        "self.values[freed] = np.nan",
        f"{ITEMS} -k bounded",
    ),
    Bug(
        "embedding-scale",
        "scale = np.divide(np.sign(values), np.sqrt(np.abs(values))",
        "scale = np.divide(np.sign(values), np.abs(values)",
        f"{EMBED} -k signed",
    ),
    Bug(
        "embedding-center",
        "mean @ projection, float",
        "0.0 * mean @ projection, float",
        f"{EMBED} -k scaling",
    ),
    Bug(
        "shares-swapped",
        "residuals = np.stack([left, right])",
        "residuals = np.stack([right, left])",
        f"{ASYM} -k weights_of_both_sides",
    ),
    Bug(
        "directed-shares-return",
        "votes = step @ after - returning[:, None] * self.ballots.sums",
        "votes = step @ after",
        f"{DIRECTED} -k walk",
    ),
    Bug(
        "directed-shares-one-way-twice",
        "back = transitions(affinities_out.T)",
        "back = transitions(affinities_out)",
        f"{DIRECTED} -k walk",
    ),
    Bug(
        "directed-shares-of-self",
        "np.fill_diagonal(affinities_out, 0.0)",
        "pass",
        f"{DIRECTED} -k walk",
    ),
    Bug(
        "lab-weights-see-the-fold",
        "others = np.setdiff1d(np.arange(len(averaged)), part)\n        averaged[part] = weighted_sum(weigh",
        "others = np.arange(len(averaged))\n        averaged[part] = weighted_sum(weigh",
        f"{LAB} -k weights_of_other_folds",
    ),
    Bug(
        "directed-profile-unit",
        "squares_between(self.profiles, self.profiles) self.unit = median_square(squares)",
        "squares_between(self.profiles, self.profiles)\n        self.unit = 1.0",
        f"{DIRECTED} -k textbook",
    ),
    Bug(
        "directed-rows-always",
        "if not paired_z(new, old, weight) > RULES.optional_families",
        "if not paired_z(new, old, weight) > -99.0",
        f"{DIRECTED} -k rows_take_part",
    ),
    Bug(
        "threads-never-held",
        "one_blas_thread() if n_rows < min_rows else nullcontext()",
        "nullcontext()",
        THREADS,
    ),
    Bug(
        "threads-not-given-back",
        "with _blas().limit(limits=1):",
        "if _blas().limit(limits=1):",
        THREADS,
    ),
    Bug("threads-of-kernels-lost", "1 if alone else allowed_threads()", "1", THREADS),
    Bug("threads-held-for-good", "_HELD.release()", "pass", THREADS),
    Bug(
        "mask-read",
        "if isinstance(A, np.ma.MaskedArray) and np.ma.is_masked(A):",
        "if False:",
        "test_contract.py -k beneath_a_mask",
    ),
    Bug(
        "names-score-by-position",
        """At most 1; 0 for the mean of the targets.
        \"\"\"
        return super().score(X, align_by_name(X, y), align_by_name(X, sample_weight))""",
        """At most 1; 0 for the mean of the targets.
        \"\"\"
        return super().score(X, y, sample_weight)""",
        "test_frames.py -k score_finds_labels",
    ),
    Bug(
        "names-positions-without-a-word",
        "_warn_of_other_positions(X, values) if rows is None",
        "if rows is None",
        "test_frames.py -k positions_in_another_order",
    ),
]
