"""Bugs in kernels of items, learned kernels and adapters, files, memory, row blocks and data sets."""

from bugs import Bug

FUNCTIONS, ITEMS, KERNELS = "test_functions.py", "test_items.py", "test_kernels.py"
DISK = "test_disk.py"
MEMORY, BLOCKS, WRITING = "test_memory.py", "test_blocks.py", "test_writing.py"
PERSISTENCE, DATASETS, LEARNED = "test_persistence.py", "test_datasets.py", "test_learned.py"
LOCAL, SETS = "test_lab_kernels.py", "test_paper_sets.py"

BUGS = [
    Bug(
        "memo-stars-of-arguments",
        "*names, *_unusual_arguments(thing)",
        "*names",
        "test_functions.py -k takes_its_arguments",
    ),
    # what tells items and functions apart
    Bug(
        "items-key-without-dtype",
        'kind = f"{item.dtype.str}{item.shape}".encode()',
        'kind = f"{item.shape}".encode()',
        f"{FUNCTIONS} -k never_taken",
    ),
    Bug(
        "items-key-without-shape",
        'kind = f"{item.dtype.str}{item.shape}".encode()',
        'kind = f"{item.dtype.str}".encode()',
        f"{FUNCTIONS} -k never_taken",
    ),
    Bug(
        "items-key-of-subclasses",
        "if type(item) is np.ndarray and item",
        "if isinstance(item, np.ndarray) and item",
        f"{FUNCTIONS} -k never_taken",
    ),
    Bug(
        "items-equal-pickles",
        "self.identities.append(id(thing))",
        "pass",
        f"{FUNCTIONS} -k never_taken",
    ),
    Bug(
        "items-pickle-of-choice",
        "return any(hook in attributes for attributes in own for hook in hooks)",
        "return False",
        f"{FUNCTIONS} -k 'forgetful or in_place'",
    ),
    Bug(
        "items-partials-share-a-memory",
        "arguments = _content((function.args, function.keywords))",
        "arguments = 0",
        f"{FUNCTIONS} -k partials_share",
    ),
    Bug(
        "items-lists-and-pairs-share",
        "memory.store(name, symmetric)",
        "memory.store(symmetric)",
        f"{FUNCTIONS} -k share_nothing",
    ),
    Bug(
        "items-directions-share",
        "memory.store(name, symmetric)",
        "memory.store(name)",
        f"{FUNCTIONS} -k directed_values",
    ),
    # changed functions
    Bug(
        "items-state-not-compared",
        "if memory.state != state:",
        "if memory.state is None:",
        f"{FUNCTIONS} -k 'called_anew and 21'",
    ),
    Bug(
        "items-state-without-closure",
        "[_attributes(value, names) for value in closure],",
        "[],",
        f"{FUNCTIONS} -k 'called_anew and 21'",
    ),
    Bug(
        "items-state-without-globals",
        "{name: _attributes(value, names) for name, value in reached.items()},",
        "{},",
        f"{FUNCTIONS} -k 'called_anew and 21'",
    ),
    Bug(
        "items-state-without-defaults",
        "function.__defaults__,",
        "",
        f"{FUNCTIONS} -k 'called_anew and 21'",
    ),
    Bug(
        "items-state-without-keyword-defaults",
        "function.__kwdefaults__,",
        "",
        f"{FUNCTIONS} -k 'called_anew and 21'",
    ),
    Bug(
        "items-state-without-inner-code",
        "{*code.co_names, *(name for names in inner for name in names)}",
        "{*code.co_names}",
        f"{FUNCTIONS} -k 'called_anew and 21'",
    ),
    Bug(
        "items-state-without-classes",
        "(kind.__bases__, attributes)",
        "kind.__bases__",
        f"{FUNCTIONS} -k 'called_anew and 21'",
    ),
    Bug(
        "items-own-changes-count",
        "memory.state = state_of(function)",
        "memory.state = state",
        f"{FUNCTIONS} -k 'itself_changes'",
    ),
    Bug(
        "items-asks-the-diagonal",
        "places = np.flatnonzero(is_known & (first[:, None] != second))",
        "places = np.flatnonzero(is_known & (first[:, None] == second))",
        f"{FUNCTIONS} -k 'out_of_sight or other_ones'",
    ),
    Bug(
        "items-change-not-forgotten",
        "memory.clear() known = None",
        "memory.clear()",
        f"{FUNCTIONS} -k out_of_sight",
    ),
    Bug(
        "items-change-seen-by-diag-not-forgotten",
        "(drawn, drawn)): memory.clear()",
        "(drawn, drawn)):\n                    pass",
        f"{FUNCTIONS} -k out_of_sight",
    ),
    # the store
    Bug(
        "items-freed-place-keeps-a-column",
        "self.values[freed] = np.nan self.values[:, freed] = np.nan",
        "self.values[freed] = np.nan",
        f"{FUNCTIONS} -k 'bounded or make_room'",
    ),
    Bug(
        "items-transposed-store",
        "store.write(second, first, K.T)",
        "store.write(second, first, K.T[::-1])",
        f"{FUNCTIONS} -k known_in_the_other",
    ),
    # workers
    Bug(
        "items-infinite-from-workers",
        "= values bad = np.flatnonzero(~_is_value(values))",
        "= values\n        bad = np.flatnonzero(np.isnan(values))",
        f"{FUNCTIONS} -k workers_that",
    ),
    Bug(
        "items-infinite-from-workers-kept",
        "out[a, ~_is_value(out[a])] = np.nan",
        "pass",
        f"{FUNCTIONS} -k workers_that",
    ),
    Bug(
        "items-tiles-swapped",
        "self.function, rows[t[0].ravel()], columns[t[1].ravel()], todo[t]",
        "self.function, rows[t[0].ravel()], columns[t[0].ravel() % len(columns)], todo[t]",
        f"{FUNCTIONS} -k workers_give",
    ),
    # what a model keeps
    Bug(
        "items-kept-by-reference",
        "copy(item) if type(item) in changeable else item",
        "item",
        f"{ITEMS} -k 'items_that_change'",
    ),
    Bug(
        "items-scale-in-place",
        "return K * K.dtype.type(self.factor)",
        "K *= K.dtype.type(self.factor)\n        return K",
        f"{ITEMS} -k writes_into",
    ),
    Bug(
        "items-kernel-kept-by-reference",
        "copied = copy(kernel)",
        "copied = kernel",
        f"{ITEMS} -k kernel_that_changes",
    ),
    Bug(
        "items-inner-kernel-kept-by-reference",
        "attributes[name] = own_kernel(value)",
        "pass",
        f"{ITEMS} -k kernel_that_changes",
    ),
    Bug(
        "items-parameters-kept-by-reference",
        "attributes[name] = copy(value)",
        "pass",
        f"{ITEMS} -k kernel_that_changes",
    ),
    # settings and sizes
    Bug(
        "items-threads-without-settings",
        "return _SETTINGS.open[-1] if _SETTINGS.open else _Setting()",
        "return _Setting()",
        f"{MEMORY} -k inside_a_context",
    ),
    Bug(
        "items-settings-of-others",
        "own = _SETTINGS.own.get()",
        "own = None",
        f"{MEMORY} -k any_order",
    ),
    Bug(
        "items-settings-closed-in-order",
        "_SETTINGS.open.remove(setting)",
        "_SETTINGS.open.pop()",
        f"{MEMORY} -k any_order",
    ),
    Bug(
        "items-settings-left-behind",
        "return partial(_call_with, _current_setting(), function)",
        "return partial(_call_with, _Setting(), function)",
        f"{MEMORY} -k wherever",
    ),
    Bug("items-kibibytes", "base = 1024 if", "base = 1000 if", f"{MEMORY} -k sizes_are_read"),
    Bug(
        "items-check-memory-too-late",
        "if n_bytes > budget:",
        "if n_bytes > 2 * budget:",
        f"{MEMORY} -k exactly",
    ),
    Bug(
        "items-given-limit-loses",
        "budget = memory_budget(memory_limit) if n_bytes",
        "budget = memory_budget()\n    if n_bytes",
        f"{MEMORY} -k exactly",
    ),
    Bug(
        "items-blocks-beyond-the-budget",
        "step = max(1, int(budget // max(1.0, bytes_per_row)))",
        "step = 1 + int(budget // max(1.0, bytes_per_row))",
        f"{MEMORY} -k blocks_hold",
    ),
    # row blocks
    Bug("items-odd-chunk-dropped", "sums = pairs + sums[2 * len(pairs) :]", "sums = pairs", BLOCKS),
    Bug(
        "items-rows-in-sorted-order",
        "out[order] = X[rows[order]].compute()",
        "out[:] = X[rows[order]].compute()",
        BLOCKS,
    ),
    Bug(
        "items-targets-not-sliced",
        "(None if a is None else a[rows] for a in others)",
        "(None if a is None else a[: len(block)] for a in others)",
        BLOCKS,
    ),
    Bug(
        "items-sums-in-reverse",
        "total = combine(total, value)",
        "total = combine(value, total)",
        f"{BLOCKS} -k order",
    ),
    # files
    Bug("items-litter", "partial.unlink(missing_ok=True)", "pass", WRITING),
    Bug(
        "items-written-in-place",
        'partial = path.with_name(f".{path.name}.{os.getpid()}.part")',
        "partial = path",
        WRITING,
    ),
    # models in files
    Bug(
        "items-trusts-names-like-ours",
        'is_ours = any(module == name or module.startswith(name + ".") for name in MODULES)',
        'is_ours = module.startswith("mercerless")',
        f"{PERSISTENCE} -k like_ours",
    ),
    Bug(
        "items-trusts-whatever-we-import",
        "return inspect.isclass(thing) and thing.__module__ == module",
        "return inspect.isclass(thing)",
        f"{PERSISTENCE} -k only_imports",
    ),
    Bug(
        "items-trusts-functions",
        "return inspect.isclass(thing) and thing.__module__ == module",
        "return thing.__module__ == module",
        f"{PERSISTENCE} -k only_imports",
    ),
    Bug(
        "items-trusts-parts-of-a-name",
        "trusted = [trusted] if isinstance(trusted, str) else list(trusted)",
        "pass",
        f"{PERSISTENCE} -k part_of_it",
    ),
    # the algebra of kernels and adapters
    Bug(
        "items-sample-not-reused",
        "store.write(*keys, sample, kept_items(keys[0], subset))",
        "pass",
        f"{FUNCTIONS} -k show_symmetry",
    ),
    Bug(
        "items-sample-in-one-direction",
        "sample[j, i] = sample[i, j]",
        "pass",
        f"{FUNCTIONS} -k show_symmetry",
    ),
    Bug(
        "items-store-writes-gaps",
        "np.copyto(part[some], block[some], where=~np.isnan(block[some]))",
        "part[some] = block[some]",
        f"{FUNCTIONS} -k leave_known_values",
    ),
    Bug(
        "items-grown-store-without-gaps",
        "values[size:] = np.nan",
        "values[size:] = 0.0",
        f"{FUNCTIONS} -k knows_no_other",
    ),
    # values in a folder, batches, gaps
    Bug(
        "disk-another-version",
        'if stored["version"] != self.version:',
        "if False:",
        f"{DISK} -k another_function",
    ),
    Bug(
        "disk-another-function",
        'if stored["function"] != self.fingerprint:',
        "if False:",
        f"{DISK} -k another_function",
    ),
    Bug(
        "disk-order-of-hashes",
        "return type(thing).__name__, sorted(digests)",
        "return type(thing).__name__, digests",
        f"{DISK} -k whatever_their_hashes",
    ),
    Bug(
        "disk-values-that-changed",
        "if self.has_changed(known):",
        "if False:",
        f"{DISK} -k out_of_sight",
    ),
    Bug(
        "disk-kept-at-the-end-only",
        "if not last and perf_counter() - self.last_written < 1.0:",
        "if not last:",
        f"{DISK} -k killed",
    ),
    Bug("disk-lost-with-a-failure", "keep(last=True)", "pass", f"{DISK} -k loses_nothing"),
    Bug(
        "disk-directions-mixed",
        'return "both_directions" if symmetric else "one_direction"',
        'return "both_directions"',
        f"{DISK} -k what_was_written",
    ),
    Bug(
        "disk-own-changes-count",
        "memory.clear() memory.fingerprint = fingerprint(function)",
        "memory.clear()\n    memory.fingerprint = fingerprint(function)",
        f"{DISK} -k counts_itself",
    ),
    Bug(
        "disk-gap-is-a-number",
        "if value is None: return GAP",
        "if value is None:\n        return 0.0",
        f"{DISK} -k without_a_value",
    ),
    Bug(
        "disk-minus-infinity-is-a-gap",
        "if number == GAP: raise",
        "if False:\n        raise",
        f"{DISK} -k infinite_values",
    ),
    Bug(
        "disk-batch-too-short",
        "if len(values) != len(pairs):",
        "if len(values) > len(pairs):",
        f"{DISK} -k bad_batches",
    ),
    # kernels by name
    Bug("named-empty-rows", "out[both_empty] = 1.0", "pass", "test_named.py -k tanimoto"),
    Bug(
        "named-presence-ignored",
        'Tanimoto(presence=kernel == "jaccard")',
        "Tanimoto()",
        "test_named.py -k jaccard",
    ),
    Bug("named-gower-counts-gaps", "n_known += both", "n_known += 1", "test_named.py -k gower_of"),
    Bug("named-gower-by-position", "row = row[names]", "pass", "test_named.py -k gower_in"),
    Bug(
        "named-gower-beyond-range",
        "np.maximum(1.0 - distance / (width or 1.0), 0.0)",
        "1.0 - distance / (width or 1.0)",
        "test_named.py -k gower_of",
    ),
    # what a saved model says
    Bug(
        "saved-versions-ignored",
        "_warn_of_versions(path)\n    try:",
        "try:",
        f"{PERSISTENCE} -k other_versions",
    ),
    Bug(
        "saved-numpy-minor-warns",
        '"scikit-learn": 2, "numpy": 1',
        '"scikit-learn": 2, "numpy": 3',
        f"{PERSISTENCE} -k other_versions",
    ),
    Bug(
        "saved-kinds-swapped",
        '"category" if each else "number"',
        '"number" if each else "category"',
        f"{PERSISTENCE} -k hold_words",
    ),
    # tiles of kernel matrices
    Bug(
        "items-tile-not-mirrored",
        "out[columns, rows] = tile.T",
        "out[columns, rows] = 0.0",
        f"{KERNELS} -k large_symmetric",
    ),
    Bug(
        "items-diagonal-tile-as-computed",
        "np.copyto(tile, tile.T.copy(), where=below[: len(tile), : len(tile)])",
        "tile[1, 0] *= 1.0000001",
        f"{KERNELS} -k large_symmetric",
    ),
    Bug(
        "items-both-triangles",
        "is_symmetric and len(X) >= min_symmetric",
        "is_symmetric and len(X) >= 12_000",
        f"{KERNELS} -k one_triangle",
    ),
    Bug(
        "items-tiles-of-other-columns",
        "prepared.right[:, columns]",
        "prepared.right[:, : columns.stop - columns.start]",
        f"{KERNELS} -k any_shape",
    ),
    Bug(
        "items-power-skips-a-digit",
        'f"{degree:b}"[1:]',
        'f"{degree:b}"[2:]',
        f"{KERNELS} -k whole_powers",
    ),
    Bug(
        "items-negative-scale-definite",
        "return False if self.kernel.definite else None",
        "return self.kernel.definite",
        f"{KERNELS} -k 'Scale or algebra'",
    ),
    Bug(
        "items-scale-pullback",
        "inner = self.kernel.pullback(X, Y, G) * self.factor",
        "inner = self.kernel.pullback(X, Y, G)",
        f"{KERNELS} -k Scale",
    ),
    Bug(
        "items-product-pullback-swapped",
        "self.left.pullback(X, Y, G * self.right(X, Y)),",
        "self.left.pullback(X, Y, G * self.left(X, Y)),",
        f"{KERNELS} -k Product",
    ),
    Bug(
        "items-theta-cut",
        "cut = len(self.left.theta)",
        "cut = len(self.right.theta)",
        f"{KERNELS} -k 'Sum or Difference or Product or theta'",
    ),
    Bug(
        "items-rectangle-of-derivatives",
        "tensor[: len(X), len(X) :]",
        "tensor[: len(X), : len(Y)]",
        f"{KERNELS} -k GaussianProcess",
    ),
    Bug(
        "items-rate-of-rbf",
        "return Gaussian(np.sqrt(n_features / 2))",
        "return Gaussian(np.sqrt(n_features) / 2)",
        f"{KERNELS} -k 'scikit_learn'",
    ),
    Bug(
        "items-scale-of-gaussian",
        "np.sqrt(X.shape[1] * variance / 2)",
        "np.sqrt(X.shape[1] / 2) * variance",
        f"{KERNELS} -k AsKernel",
    ),
    Bug(
        "items-metric-with-params-definite",
        "True if self.metric in with_default_parameters and not self.params else None",
        "True if self.metric in with_default_parameters else None",
        f"{KERNELS} -k Metric",
    ),
    Bug(
        "items-differences-of-covariances",
        "(8 * (K[2] - K[1]) - (K[3] - K[0])) / (12 * step)",
        "(8 * (K[2] - K[1]) + (K[3] - K[0])) / (12 * step)",
        f"{KERNELS} -k Covariance",
    ),
    # learned and local kernels
    Bug(
        "items-learned-diagonal-without-intercept",
        "return (values + self.intercept).astype(X.dtype, copy=False)",
        "return values.astype(X.dtype, copy=False)",
        LEARNED,
    ),
    Bug(
        "items-last-of-equal-items",
        "for index, key in reversed(list(enumerate(_keys(items))))",
        "for index, key in enumerate(_keys(items))",
        LEARNED,
    ),
    Bug(
        "items-trend-of-the-diagonal",
        "values += self.trend_coef[:2].sum()",
        "values += self.trend_coef[:1].sum()",
        LEARNED,
    ),
    Bug(
        "items-old-and-new-items",
        "values[old_x] = (right @ self.item_coef[:, x[old_x]]).T",
        "pass",
        LEARNED,
    ),
    Bug(
        "items-two-zeros",
        "for row in np.asarray(X, dtype=float) + 0.0]",
        "for row in np.asarray(X, dtype=float)]",
        LEARNED,
    ),
    Bug(
        "items-local-gradient",
        "return W * (square - 2 * S * linear + S * S * one)",
        "return W * (square - S * linear + S * S * one)",
        f"{LOCAL} -k 'gradient or pullback or LocalGaussian'",
    ),
    # data sets
    Bug("items-checksum", "if digest != info.sha256:", "if not digest:", f"{SETS} -k damaged"),
    Bug(
        "items-missing-rows-of-openml",
        "labels = fetched.target[complete]",
        "labels = fetched.target[: complete.sum()]",
        f"{SETS} -k openml",
    ),
    Bug(
        "items-one-sided-distances",
        "return np.maximum(one_sided, one_sided.T)",
        "return np.minimum(one_sided, one_sided.T)",
        f"{DATASETS} -k definition",
    ),
    Bug(
        "items-noise-as-deviation",
        "return y + np.sqrt(noise) * y.std()",
        "return y + noise * y.std()",
        f"{DATASETS} -k noise",
    ),
]
