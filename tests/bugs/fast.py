"""Bugs in what makes kernels, strings and fits fast, and in what is foretold of their time."""

from bugs import Bug

FUNCTIONS, KERNELS, TIMING = "test_functions.py", "test_kernels.py", "test_timing.py"
DANK_S, HYPER = "test_dank_solver.py", "test_hyper.py"

BUGS = [
    # DANK and hyper-kernels
    Bug(
        "fast-eigenpairs-of-new-rows",
        "further = np.tile(adaptation.offset, (n_further, 1))",
        "further = np.zeros((n_further, len(adaptation.offset)))",
        f"{DANK_S} -k unsupported",
    ),
    Bug(
        "fast-paths-of-wrong-fold",
        "rows = np.flatnonzero(self.fold_of != fold)",
        "rows = np.flatnonzero(self.fold_of != (fold + 1) % (self.fold_of.max() + 1))",
        "test_hyper_machine.py -k paths_of_training",
    ),
    Bug(
        "fast-paths-with-the-fold",
        "inside = [value for key, value in self.equations.items() if fold not in key]\n        products",
        "inside = list(self.equations.values())\n        products",
        "test_hyper_machine.py -k paths_of_training",
    ),
    Bug(
        "fast-groups-of-columns",
        "zip(self.left[1:], self.right[1:])",
        "zip(self.left[1:-1], self.right[1:-1])",
        f"{KERNELS} -k many_features",
    ),
    Bug(
        "fast-groups-of-centers",
        "np.subtract(Xt, S[group, :, None], out=distances)",
        "np.subtract(Xt, S[: len(distances), :, None], out=distances)",
        "test_lab_kernels.py -k groups_of_centers",
    ),
    Bug(
        "fast-squares-of-scaled-columns",
        "right[:, -2] /= 4",
        "right[:, -2] /= 2",
        f"{KERNELS} -k TestGaussian",
    ),
    Bug(
        "fast-machines-stop-at-once",
        "if total > self.least * (1 + 1e-9):",
        "if total > 0.5 * self.least:",
        "test_hyper_machine.py -k decides",
    ),
    Bug(
        "fast-inverse-of-too-few-terms",
        "slice(stop - n_columns, min(stop, p)), slice(0, min(stop, p))",
        "slice(stop - n_columns, min(stop, p)), slice(0, stop - n_columns + 1)",
        f"{HYPER} -k inverse_factor",
    ),
    Bug(
        "fast-constant-beside-intercept",
        'getattr(hyper, "constant", False) and not task.fit_intercept',
        'getattr(hyper, "constant", False)',
        "test_hyper_machine.py -k multiple_of_one",
    ),
    Bug(
        "fast-repeated-rows",
        "rows = rows[counts[value_of] > 1]",
        "rows = rows[counts[value_of] > 2]",
        f"{DANK_S} -k repeated",
    ),
    Bug(
        "fast-diagonal-pairs-once",
        "design.matrix_of_pairs(left, first, second), weight",
        "design.matrix_of_pairs(left, first, second), np.ones(len(first))",
        f"{HYPER} -k normal_equations",
    ),
    # strings
    Bug(
        "fast-jaro-directions",
        'if same and self.similarity.startswith("jaro"):',
        "if False:",
        f"{FUNCTIONS} -k short_and_long",
    ),
    Bug(
        "fast-strings-always-short",
        "return bool(np.sum(lengths > n_letters) <= most_longer * len(strings))",
        "return True",
        f"{FUNCTIONS} -k 'one_long or values_of_long'",
    ),
    Bug(
        "fast-strings-unchecked-columns",
        "        self._check_strings(columns, range(len(columns)))\n",
        "",
        f"{FUNCTIONS} -k no_string",
    ),
    # announcements
    Bug(
        "fast-landmarks-for-few-rows",
        "if n_rows < 2 * LIMITS.landmarks:",
        "if n_rows < 0:",
        f"{TIMING} -k hardly_fewer",
    ),
    # kernels
    Bug(
        "fast-pieces-skipped",
        "    return list(_slices(0, len(block), height))",
        "    return list(_slices(0, height, height))",
        f"{KERNELS} -k any_shape",
    ),
    Bug(
        "fast-wide-squares-of-other-rows",
        "            q += squares[rows, None] + squares",
        "            q += squares[: len(q), None] + squares",
        f"{KERNELS} -k all_pairs",
    ),
    Bug(
        "fast-wide-products-without-scale",
        "        U = self._embed(X)\n        np.matmul(U, U.T, out=out)",
        "        U = X\n        np.matmul(U, U.T, out=out)",
        f"{KERNELS} -k all_pairs",
    ),
    Bug(
        "fast-shared-widths-of-one-center",
        "if len(Y) and np.all(widths == widths[0]):",
        "if len(Y):",
        "test_lab_kernels.py -k tensor",
    ),
    Bug(
        "fast-near-pairs-by-expanded-squares",
        "        with_near = np.flatnonzero(K.max(axis=1) >= nearest)",
        "        with_near = np.flatnonzero(K.max(axis=1) > 2)",
        "test_lab_kernels.py -k copies_and_far",
    ),
    # the time of fits
    Bug(
        "fast-announced-twice",
        "        if self.expected is not None:\n            return\n",
        "",
        f"{TIMING} -k once",
    ),
    Bug(
        "fast-announced-in-silence",
        '        if progress_setting() is not False:\n            print(f"{message}',
        '        if True:\n            print(f"{message}',
        f"{TIMING} -k silences",
    ),
    Bug(
        "fast-estimate-quadratic",
        "n_products * 2.0 * float(n_rows) ** 3",
        "n_products * 2.0 * float(n_rows) ** 2",
        f"{TIMING} -k seconds_of_products",
    ),
    Bug(
        "fast-always-measured",
        "if n_operations < LIMITS.announced * LIMITS.slowest:",
        "if n_operations < 0:",
        f"{TIMING} -k nothing_is_measured",
    ),
    Bug(
        "fast-block-forgets-the-limit",
        "        memory_limit = enclosing.memory_limit",
        "        memory_limit = None",
        f"{TIMING} -k limit_of_memory",
    ),
    Bug(
        "fast-clock-travels",
        "return SilentClock, ()",
        "return FitClock, (self.name,)",
        f"{TIMING} -k another_process",
    ),
]
