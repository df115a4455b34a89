"""Bugs in reading files and frames, in the learners of a comparison, and in the commands."""

from bugs import Bug

FRAMES, PROPERTIES = "test_frames.py", "test_reading_properties.py"
LEARNERS, FIT, FILES = "test_compare_learners.py", "test_cli_fit_predict.py", "test_files.py"
CORPUS = "test_corpus.py"
DATA = "test_report_data.py"

BUGS = [
    # the three that a stranger planted
    Bug(
        "read-test-frame-by-position",
        "chosen = frame.iloc[:, [places[name] for name in names]]",
        "chosen = frame.iloc[:, : len(list(names))]",
        f"{FRAMES} -k found_by_their_names",
    ),
    Bug(
        "read-test-columns-of-rare-classes",
        "problem.X_test[:, rows]",
        "problem.X_test[:, : len(rows)]",
        f"{FRAMES} -k rare_classes",
    ),
    Bug(
        "read-fit-splits-groups",
        "keep_groups(estimator, inner_folds(problem, np.arange(len(problem.y))))",
        "pass",
        f"{FIT} -k kept_together",
    ),
    # matrices
    Bug(
        "read-triangle-lacks-diagonal",
        "if n_items == n_rows + 1:",
        "if False:",
        f"{CORPUS} -k triangle",
    ),
    Bug(
        "read-upper-triangle-from-the-left",
        "np.roll(row, place) for place, row in enumerate(square)",
        "row for row in square",
        f"{CORPUS} -k triangle",
    ),
    # problem.py
    Bug(
        "read-labels-by-position",
        "y, groups = (align_by_name(X, values) for values in (y, groups))",
        "groups = align_by_name(X, groups)",
        f"{FRAMES} -k found_by_their_names",
    ),
    Bug(
        "read-test-labels-by-position",
        "y_test = align_by_name(X_test, y_test)",
        "y_test = align_by_name(X, y_test)",
        f"{FRAMES} -k found_by_their_names",
    ),
    Bug(
        "read-test-labels-cast",
        "return alike if np.array_equal(alike, numbers) else numbers",
        "return alike",
        f"{FRAMES} -k not_cast",
    ),
    Bug(
        "read-ids-not-selected",
        "tuple(problem.ids[i] for i in rows)",
        "problem.ids[: len(rows)]",
        f"{PROPERTIES} -k selection",
    ),
    Bug(
        "read-split-transposed",
        "X_test = problem.X[np.ix_(test, train)]",
        "X_test = problem.X[np.ix_(train, test)].T",
        f"{PROPERTIES} -k marked",
    ),
    Bug(
        "read-digest-without-groups",
        "for given in (self.X, self.y, self.groups, *of_test, *others):",
        "for given in (self.X, self.y, *of_test, *others):",
        f"{PROPERTIES} -k digest",
    ),
    Bug(
        "read-nearest-is-farthest",
        'rows - smallest if kind == "dissimilarity" else largest - rows',
        'largest - rows if kind == "dissimilarity" else rows - smallest',
        f"{PROPERTIES} -k neighbors_keep",
    ),
    # columns.py
    Bug("read-weekday", "dates.dt.day_of_week", "dates.dt.day", f"{PROPERTIES} -k weekdays"),
    Bug(
        "read-gaps-unmarked",
        'strategy="median", add_indicator=True',
        'strategy="median", add_indicator=False',
        f"{PROPERTIES} -k medians",
    ),
    Bug(
        "read-arrow-words",
        "return bool(types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype))",
        'return str(dtype).lower().startswith(("int", "uint", "float", "bool"))',
        f"{FRAMES} -k arrow",
    ),
    # tables.py, reading.py, files.py, sheets.py
    Bug(
        "read-labels-in-the-order-of-the-file",
        '[by_item.get(item, "") for item in ids]',
        "list(by_item.values())",
        f"{PROPERTIES} -k labels_and_groups",
    ),
    Bug(
        "read-groups-in-the-order-of-the-file",
        "read_labels(name, len(table.frame), table.ids)",
        "read_labels(name, len(table.frame))",
        f"{PROPERTIES} -k labels_and_groups",
    ),
    Bug(
        "read-train-for-test",
        'cell.startswith("test") for cell in cells',
        'cell.startswith("train") for cell in cells',
        f"{PROPERTIES} -k train_and_test",
    ),
    Bug(
        "read-any-test-array",
        'if arrays_module.split_name(name) == (base, "test")',
        'if arrays_module.split_name(name)[1] == "test"',
        f"{PROPERTIES} -k whatever_comes_first",
    ),
    Bug(
        "read-unlisted-pairs-near",
        '(0.0, known.max()) if kind == "distance" else (known.max(), 0.0)',
        '(0.0, known.max()) if kind == "distance" else (known.max(), known.max())',
        f"{PROPERTIES} -k pairs",
    ),
    Bug(
        "read-pairs-one-way",
        "X = np.where(np.isnan(X), X.T, X) is_listed |= is_listed.T",
        "is_listed |= is_listed.T",
        f"{PROPERTIES} -k pairs",
    ),
    Bug(
        "read-sheet-empty-cells-free",
        "_check_bounds(place, n_filled * width, what)",
        "_check_bounds(place, len(row), what)",
        f"{FILES} -k anyone_waits",
    ),
    Bug(
        "read-sheet-tag-cut",
        "rest = text[end:][:LIMITS.sheet_chunk]",
        'rest = b""',
        f"{FILES} -k cut_anywhere",
    ),
    # labels.py, formats.py, matrices.py
    Bug(
        "read-missing-word-is-a-class",
        "gaps = set(MISSING) if none_is_missing else set(MISSING) - {NONE}",
        'gaps = {""}',
        f"{CORPUS} -k without_a_label",
    ),
    Bug(
        "read-none-always-missing",
        "frame[name] = frame[name].where(~is_none, NONE)",
        "pass",
        f"{CORPUS} -k none_is_a_level",
    ),
    Bug(
        "read-unlabeled-columns-stay",
        "X_test = X_test[:, labeled] if X_test.shape[1] > labeled.max() else X_test",
        "X_test = X_test[:, : len(labeled)]",
        f"{CORPUS} -k both_sides",
    ),
    Bug(
        "read-unlabeled-test-marks-stay",
        "problem = _split_rows(problem, test[labeled])",
        "problem = _split_rows(problem, test[: len(labeled)])",
        f"{CORPUS} -k split_follows",
    ),
    Bug(
        "read-last-hit-for-best",
        "best[pair] = max(float(row[11]), best.get(pair, -np.inf))",
        "best[pair] = float(row[11])",
        f"{CORPUS} -k 'matrices and hits'",
    ),
    Bug(
        "read-directed-graph-both-ways",
        "if not pairs.directed:",
        "if True:",
        f"{CORPUS} -k 'matrices and directed'",
    ),
    Bug(
        "read-class-first-overlooked",
        "if self._is_class_first(table):",
        "if False:",
        f"{CORPUS} -k 'in_front'",
    ),
    Bug(
        "read-stretched-from-the-left",
        "np.interp(places, np.linspace(0.0, 1.0, len(one)), one)",
        "np.interp(np.arange(longest), np.arange(len(one)), one)",
        f"{CORPUS} -k stretched",
    ),
    Bug(
        "read-printed-blocks-mixed",
        "for column, number in zip(block, numbers):",
        "for column, number in zip(columns, numbers):",
        f"{CORPUS} -k 'matrices and print'",
    ),
    Bug(
        "read-sheet-from-zero",
        "return titles[int(sheet) - 1]",
        "return titles[int(sheet) % len(titles)]",
        f"{CORPUS} -k sheet_is_chosen",
    ),
    # gaps.py
    Bug(
        "read-gaps-mean-twice",
        "np.nanmean(X, axis=1)[:, None] + np.nanmean(X, axis=0) - total",
        "np.nanmean(X, axis=1)[:, None] + np.nanmean(X, axis=0)",
        f"{PROPERTIES} -k means_of_its_row",
    ),
    Bug(
        "read-gaps-one-side",
        "guess = (guess + guess.T) / 2",
        "pass",
        f"{PROPERTIES} -k completed_in_the_same_way",
    ),
    # learners.py
    Bug(
        "read-lab-after-one-hot",
        "if preprocessor is None or self.encodes:",
        "if preprocessor is None:",
        f"{LEARNERS} -k 'defaults or prepared'",
    ),
    Bug(
        "read-lab-of-many-rows",
        "return terms.choose(TableClassifier, TableRegressor)(random_state=terms.random_state)",
        "return terms.choose(TableClassifier, TableRegressor)(['local'] if terms.is_large else 'auto', "
        "random_state=terms.random_state)",
        f"{LEARNERS} -k defaults",
    ),
    Bug(
        "read-directed-one-way",
        "return np.hstack([rows, X[np.ix_(train, test)].T])",
        "return rows",
        f"{LEARNERS} -k both_directions",
    ),
    Bug(
        "read-directed-out-twice",
        "return X[:, :n], X[:, n:]",
        "return X[:, :n], X[:, :n]",
        f"{LEARNERS} -k both_directions",
    ),
    Bug(
        "read-lab-without-groups", 'return {"groups": groups}', "return {}", f"{LEARNERS} -k hears"
    ),
    Bug(
        "read-shared-whatever-the-center",
        "self.negative_penalty, self.center, _digest(weight)",
        "self.negative_penalty, _digest(weight)",
        f"{PROPERTIES} -k equal_settings",
    ),
    Bug(
        "read-nothing-is-shared",
        "return basis, weight, self._stabilize(K, weight)",
        "return basis, weight, stabilize(K, self.negative_penalty, weight, center=self.center)",
        f"{PROPERTIES} -k other_penalties",
    ),
    Bug(
        "read-shared-whatever-the-mode",
        "self.key_ = (self.mode, self.rtol, _digest(self._check_train(X)))",
        "self.key_ = (self.rtol, _digest(self._check_train(X)))",
        f"{PROPERTIES} -k equal_settings",
    ),
    # items.py
    Bug(
        "read-predictions-of-all-repeats",
        "if split[0] == comparison.splits[0][0]]",
        "]",
        f"{PROPERTIES} -k first_repeat",
    ),
    Bug(
        "read-suspects-of-other-items",
        "labels = np.searchsorted(classes, problem.y[seen])",
        "labels = np.searchsorted(classes, problem.y[: len(seen)])",
        f"{PROPERTIES} -k predicted_otherwise",
    ),
    Bug(
        "read-confusion-transposed",
        "np.add.at(counts, (target.astype(int), predicted.astype(int)), 1)",
        "np.add.at(counts, (predicted.astype(int), target.astype(int)), 1)",
        f"{PROPERTIES} -k confusion",
    ),
    Bug(
        "read-distances-of-other-items",
        "euclidean_distances(scaled[np.searchsorted(kept, rows)])",
        "euclidean_distances(scaled[: len(rows)])",
        f"{PROPERTIES} -k among_all",
    ),
    # the page
    Bug(
        "page-escapes-nothing",
        "key: value if isinstance(value, Html) else escape(str(value))",
        "key: str(value)",
        f"{DATA} -k is_escaped",
    ),
    Bug(
        "page-suspects-by-chance",
        "suspicious |= is_rare & (observed > LIMITS.suspect_ratio * expected)",
        "suspicious |= observed > 0",
        f"{DATA} -k beyond_chance",
    ),
    Bug(
        "page-ties-torn-apart",
        "best = int(np.where(is_end, total, np.inf).argmin())",
        "best = int(total.argmin())",
        f"{DATA} -k least_cost",
    ),
    Bug(
        "page-kappa-of-the-given",
        "by_chance = float(given @ called)",
        "by_chance = float(given @ given)",
        f"{DATA} -k those_of_scikit_learn",
    ),
    Bug(
        "page-curves-of-the-first-repeat",
        "shift = scores[name] - points[-1][1]",
        "shift = 0.0",
        f"{DATA} -k end_at",
    ),
    Bug(
        "page-repeats-inside-groups",
        "across = np.where(groups[:, None] == groups, np.inf, D)",
        "across = D",
        f"{DATA} -k windows",
    ),
    Bug(
        "page-repeats-of-sorted-files",
        "beside >= LIMITS.share and beside >= 3.0 * by_chance",
        "beside >= LIMITS.share",
        f"{DATA} -k sorted_classes",
    ),
    Bug(
        "page-scores-cost-nothing",
        "per_shuffle = _seconds_of_score(comparison, refit) * len(names)",
        "per_shuffle = 0.0",
        f"{DATA} -k as_often_as",
    ),
    Bug(
        "page-scales-without-time",
        'if problem.kind == "table" and has_time:',
        'if problem.kind == "table":',
        f"{DATA} -k only_if_there_is_time",
    ),
    Bug(
        "page-counts-of-missing-codes",
        "return counts[:, counts.any(axis=0)]",
        "return counts",
        f"{DATA} -k cramers_v",
    ),
    Bug(
        "page-cells-are-html",
        'return fill("data.cut-cell", text=beginning, whole=text[: LIMITS.whole_cell])',
        'return fill("data.cut-cell", text=Html(beginning), whole=text[: LIMITS.whole_cell])',
        f"{DATA} -k hostile_cells",
    ),
    Bug(
        "page-pairs-by-chance",
        "if pair.by_chance * len(pairs) < LIMITS.by_chance",
        "if pair.by_chance < LIMITS.by_chance",
        f"{DATA} -k none_by_chance",
    ),
    Bug(
        "read-decimal-commas-beside-words",
        'frame[name] = column.map(_with_point, na_action="ignore")',
        "pass",
        "test_corpus.py -k beside_words",
    ),
    Bug(
        "predict-strings-without-names",
        "ids = list(items)  # strings name themselves",
        "pass",
        "test_cli_fit_predict.py -k strings_with_probabilities",
    ),
    Bug(
        "read-title-of-two-cells",
        "for place, length in enumerate(lengths) if length > 1), 0)",
        "for place, length in enumerate(lengths) if length > 2), 0)",
        "test_corpus.py -k is_a_title",
    ),
    Bug(
        "page-associations-of-the-first-rows",
        "return np.linspace(0, n_rows - 1, min(n_rows, LIMITS.repeats)).round().astype(int)",
        "return np.arange(min(n_rows, LIMITS.repeats))",
        f"{DATA} -k sorted_by_class",
    ),
    Bug(
        "page-target-without-its-name",
        "self.target = label.strip() or None",
        "pass",
        f"{DATA} -k target_of_a_file",
    ),
    Bug(
        "page-file-of-other-items",
        "items = comparison.rows_of_splits[repeat, fold].tolist()",
        "items = list(range(len(record.predicted)))",
        f"{DATA} -k holds_every",
    ),
    # commands
    Bug(
        "read-predict-takes-what-is-given",
        '"takes": learner.takes',
        '"takes": "symmetric"',
        f"{FIT} -k alone",
    ),
    Bug(
        "read-fit-directed-as-it-is",
        "estimator.fit(matrix_for(problem, learner.takes), problem.y, **group_options)",
        "estimator.fit(matrix_for(problem, 'given'), problem.y, **group_options)",
        f"{FIT} -k averaged",
    ),
    Bug(
        "read-fit-lab-without-groups",
        "group_options = group_arguments(estimator, problem.groups)",
        "group_options = {}",
        f"{FIT} -k tells_lab",
    ),
    Bug(
        "read-reasons-of-shuffled-items",
        "matrix = matrix[[ids.index(name) for name in trained]]",
        "pass",
        f"{FIT} -k 'reasons and krein'",
    ),
    Bug(
        "read-predict-forgets-the-reverse",
        "estimator.predict_proba(rows, **back).T",
        "estimator.predict_proba(rows).T",
        f"{FIT} -k predicts_with_both",
    ),
    Bug(
        "read-reasons-of-distances",
        'new["train"] = innermost(estimator, train)[1]',
        'new["train"] = train',
        f"{FIT} -k 'reasons and krein'",
    ),
    Bug(
        "read-split-option-turned-round",
        "use_split=not args.no_split",
        "use_split=args.no_split",
        f"{PROPERTIES} -k about_the_data",
    ),
    Bug("read-seed-dropped", "random_state=args.seed,", "", f"{PROPERTIES} -k about_the_run"),
    Bug(
        "read-inspect-labels-by-position",
        "labels = read_labels(args.labels, len(values), ids)",
        "labels = read_labels(args.labels, len(values))",
        f"{PROPERTIES} -k inspect_finds",
    ),
    Bug(
        "read-inspect-numbers-for-classes",
        "classify = matrix.labels is None or is_classes(matrix.labels)",
        "classify = matrix.labels is None or not is_classes(matrix.labels)",
        f"{PROPERTIES} -k inspect_suggests",
    ),
    Bug(
        "read-formula-from-minus",
        'if text[:1] in tuple("=+-@\\t\\r")',
        'if text[:1] in tuple("=+@\\t\\r")',
        f"{PROPERTIES} -k spreadsheet",
    ),
    Bug(
        "read-output-over-input",
        "if path is not None and Path(path).exists() and output.exists() and output.samefile(path):",
        "if path is not None and output == Path(path):",
        f"{PROPERTIES} -k an_output",
    ),
    Bug(
        "read-interrupted-is-done",
        'interrupted, nothing was written.", file=sys.stderr) return 130',
        'interrupted, nothing was written.", file=sys.stderr) return 0',
        f"{PROPERTIES} -k exit_codes",
    ),
    Bug(
        "read-thousands-of-new-rows-as-gaps",
        "cells = cells.map(dict(zip(cells, plain_numbers(list(cells)))))",
        "pass",
        "test_cli_fit_predict.py -k another_way",
    ),
    Bug(
        "read-other-dates-as-gaps",
        "return as_dates(cells, form)",
        "return dates",
        "test_cli_fit_predict.py -k another_way",
    ),
    Bug(
        "read-labels-of-thousands-as-gaps",
        "return _as_numbers(plain_numbers(cells))",
        "return _as_numbers(cells)",
        "test_corpus.py -k few_labels_with_thousands",
    ),
    Bug(
        "read-points-of-thousands-as-decimals",
        "return cell if plain == digits else text.replace(digits, plain)",
        "return cell",
        "test_corpus.py -k beside_decimal_commas",
    ),
    Bug(
        "read-excel-errors-as-comments",
        'startswith("#") and not line.lstrip().startswith(LIMITS.excel_errors)',
        'startswith("#")',
        "test_corpus.py -k errors_of_excel",
    ),
    Bug(
        "read-labels-of-other-names-in-order",
        "_check_names(rows, ids, path)",
        "pass",
        "test_corpus.py -k other_names",
    ),
    Bug(
        "read-missing-groups-as-one",
        "_check_group_gaps(problem.groups)",
        "pass",
        "test_compare_inputs.py -k groups_must_not",
    ),
    Bug(
        "read-currencies-as-one",
        "marks = {amount.mark for amount in numbers if not amount.is_zero} if len(marks) != 1:",
        "marks = {amount.mark for amount in numbers if not amount.is_zero} if not marks:",
        f"{CORPUS} -k one_scale",
    ),
    Bug(
        "read-parentheses-as-positive",
        'bare.append(f"-{amount.digits}")',
        "bare.append(amount.digits)",
        f"{CORPUS} -k parentheses",
    ),
    Bug("read-percentages-as-written", 'if mark == "%":', "if False:", f"{CORPUS} -k parentheses"),
    Bug(
        "read-percentages-without-a-word",
        'note_percents(table, name, name in description["percents"])',
        "pass",
        f"{FIT} -k percentages",
    ),
    Bug(
        "read-amounts-as-words-of-a-matrix",
        "return _with_ids(_with_amounts(table))",
        "return _with_ids(table)",
        f"{CORPUS} -k percentages",
    ),
    Bug(
        "read-hits-by-their-last-column",
        "best[pair] = max(float(row[11]), best",
        "best[pair] = max(float(row[-1]), best",
        f"{CORPUS} -k hits_of_a_search",
    ),
    Bug(
        "read-similarities-with-an-empty-diagonal",
        'if lacks_diagonal(table, len(whole)) and (kind or _kind(whole)) == "similarity":',
        "if False:",
        f"{CORPUS} -k may_have_gaps",
    ),
    Bug(
        "read-counts-of-rows-as-numbers",
        "if named and name.lower() in NAMES.counters and counts_rows(first):",
        "if False:",
        f"{CORPUS} -k column",
    ),
    Bug(
        "read-formulas-without-values-as-gaps",
        "if unsaved.search(text):",
        "if False:",
        f"{CORPUS} -k formulas",
    ),
    Bug(
        "read-index-dropped",
        "is_data = index.name is not None and",
        "is_data = False and",
        f"{CORPUS} -k repeated_values",
    ),
    Bug("read-gap-codes-without-a-word", "if is_far:", "if False:", f"{CORPUS} -k odd_numbers"),
    Bug(
        "read-strange-words-without-a-word",
        "if len(words) and levels and not words.isin(levels).any():",
        "if False:",
        f"{FIT} -k missing_or_strange",
    ),
    Bug(
        "read-rows-of-gaps-as-floats",
        'column.astype(object).map(str, na_action="ignore").astype(object)',
        'column.astype(object).map(str, na_action="ignore")',
        f"{FIT} -k missing_or_strange",
    ),
    Bug(
        "read-labels-in-other-words-without-a-word",
        "return len(pairs) == n_values == n_classes",
        "return list(values) == list(y)",
        f"{CORPUS} -k tell_the_labels",
    ),
    Bug(
        "read-square-without-its-last-column",
        "if not table.named and len(columns) == len(table.frame):",
        "if False:",
        "test_cli_compare.py -k gap.csv",
    ),
    Bug(
        "read-headers-in-comments-as-none",
        "header = _commented_header(text, lines[0], rows, separator)",
        'header = ""',
        f"{CORPUS} -k tables",
    ),
    Bug(
        "read-new-pairs-as-rows",
        'content = listed_pairs(content, description["ids"]) or content',
        "pass",
        f"{FIT} -k given_as_pairs",
    ),
]
