"""Bugs in the vote, the schedule, the workers, the page, the code to copy, the verdict and the command of compare."""

from bugs import Bug

RUN = "test_compare.py -k "
VOTING = "test_compare_vote.py -k "
SEVERAL = "test_compare_several.py -k "
INPUTS = "test_compare_inputs.py -k "

BUGS = [
    Bug(
        "page-rows-that-were-not-wanted",
        "worth_a_look = odd_section(problem, odd)",
        "pass\n    worth_a_look = odd_section(problem, odd)",
        "test_report_data.py -k without_rows",
    ),
    Bug(
        "page-first-rows-that-were-not-wanted",
        "        if rows:\n            first_rows = _first_rows(problem)",
        "        if problem:\n            first_rows = _first_rows(problem)",
        "test_report_data.py -k without_rows",
    ),
    Bug(
        "page-rows-only-once",
        'words.append("--no-rows")',
        "pass",
        "test_compare_inputs.py -k goes_on",
    ),
    Bug("run-vote-weights", "WEIGHTS = (3, 2, 2)", "WEIGHTS = (4, 2, 1)", VOTING + "joint_vote"),
    Bug(
        "run-vote-with-constant",
        'for name, of_name in records.items() if name != "dummy"',
        "for name, of_name in records.items()",
        VOTING + "'chosen_by or nothing_to_choose'",
    ),
    Bug(
        "run-baselines-late",
        'return SHARES.baseline if families == {"baseline"} else SHARES.cheap',
        "return SHARES.cheap",
        RUN + "baselines_have",
    ),
    Bug(
        "run-slow-start",
        "self.started = max(self.options.started, latest_start)",
        "self.started = self.options.started",
        RUN + "slow_start",
    ),
    Bug(
        "run-search-that-does-not-fit",
        "if wall < (1 - SHARES.spare) * self.remaining:",
        "if wall < 9 * self.remaining:",
        RUN + "does_not_fit",
    ),
    Bug(
        "run-no-limit",
        "return max(at_least, SHARES.tolerance * self._seconds(step), share)",
        "return np.inf",
        RUN + "takes_too_long",
    ),
    Bug(
        "run-group-lost",
        "self.groups |= {learner.name: [learner] for learner in learners}",
        "self.groups |= {learner.name: [learner] for learner in learners[:1]}",
        RUN + "one_slow_machine",
    ),
    Bug(
        "run-no-pilot",
        "if is_expensive and not is_known and not self._is_expected(group):",
        "if is_expensive and is_known and not self._is_expected(group):",
        RUN + "tried_on_a_small_part",
    ),
    Bug(
        "run-early-processes-idle",
        "process = processes.pop() if processes else StartedProcess()",
        "process = StartedProcess()",
        RUN + "started_early",
    ),
    Bug(
        "run-early-processes-left",
        "for process in processes:\n            process.close()",
        "for process in processes[:0]:\n            process.close()",
        RUN + "started_early",
    ),
    Bug(
        "run-stopped-loses-results",
        'return [slot.take("stopped") for slot in self.slots if slot.job is not None]',
        "return []",
        RUN + "'stopped_job and inf'",
    ),
    Bug(
        "run-page-with-threads",
        "@threadpool_limits.wrap(limits=1)",
        "@threadpool_limits.wrap(limits=2)",
        "test_report_data.py -k one_thread",
    ),
    Bug(
        "run-code-of-first-matrix",
        'return f"X = {matrices}[{name!r}]"',
        'return f"X = {matrices}[{problem.array!r}]"',
        SEVERAL + "estimators_are",
    ),
    Bug(
        "run-code-without-symmetrizing",
        'if problem.asymmetry and learner.takes in ("symmetric", "distances"):',
        'if problem.asymmetry and learner.takes in ("distances",):',
        "test_compare_learners.py -k symmetrizes_what",
    ),
    Bug(
        "run-verdict-ties-reversed",
        "not comparison.differences.better(position, i)",
        "not comparison.differences.better(i, position)",
        RUN + "told_apart_in_words",
    ),
    Bug(
        "run-verdict-hides-failures",
        "if failed:\n        names = _and",
        "if left_out and failed:\n        names = _and",
        RUN + "failing_learner_is_named",
    ),
    Bug(
        "run-command-forgets-words",
        'words.append(f"--missing={word}")',
        "words.append(word)",
        INPUTS + "command_that_goes_on",
    ),
    Bug(
        "run-command-forgets-seed",
        'if args.seed:\n        words += ["--seed", str(args.seed)]',
        'if not args.seed:\n        words += ["--seed", str(args.seed)]',
        INPUTS + "command_that_goes_on",
    ),
    Bug(
        "run-one-direction-for-two",
        "rows = (rows + problem.reverse_test) / 2",
        "rows = problem.reverse_test",
        "test_compare_learners.py -k may_have_both",
    ),
    Bug(
        "run-alike-by-chance",
        "corrected = max(0.0, phi_square - (k - 1) * (r - 1) / (n - 1))",
        "corrected = phi_square",
        "test_report_data.py -k cramers_v",
    ),
    Bug(
        "run-gap-keeps-its-word",
        "frame[name] = rest",
        "frame[name] = column",
        INPUTS + "calls_missing",
    ),
    Bug(
        "run-test-rows-of-first",
        'return others[takes.removeprefix("matrix ")]',
        "return problem.X_test",
        SEVERAL + "take_the_matrix",
    ),
    Bug(
        "run-vote-of-equals",
        "compared.difference[0, 1] >= compared.standard_error[0, 1]",
        "compared.difference[0, 1] > compared.standard_error[0, 1]",
        VOTING + "without_a_mistake",
    ),
    Bug(
        "run-vote-until-beyond-doubt",
        "return bool(compared.difference[0, 1] >= compared.standard_error[0, 1])",
        "return bool(compared.difference[0, 1] >= 2.0 * compared.standard_error[0, 1])",
        VOTING + "far_ahead",
    ),
    Bug(
        "run-choice-by-all-splits",
        "first = best_three(records, other_splits(split, splits), metric)[0]",
        "first = best_three(records, splits, metric)[0]",
        VOTING + "had_no_say",
    ),
    Bug(
        "run-probabilities-in-another-order",
        "probability[:, np.searchsorted(classes, estimator.classes_)] = given",
        "probability[:, : given.shape[1]] = given",
        "test_compare_probabilities.py -k not_trained",
    ),
    Bug(
        "run-curves-of-the-other-class",
        "score = kept[:, positive]",
        "score = kept[:, 1 - positive]",
        "test_report_data.py -k that_were_scored",
    ),
    Bug(
        "run-probabilities-not-in-files",
        'plain["probability"] = probability if probability.size else np.empty((0, 0))',
        'plain["probability"] = np.empty((0, 0))',
        "test_compare_probabilities.py -k files_of_a_run",
    ),
    Bug(
        "run-boosting-in-its-turn",
        "expected = [step for step in fitting if self._is_expected(step.group)]",
        "expected = []",
        RUN + "boosting_has",
    ),
    Bug(
        "run-nothing-after-the-deadline",
        "self._need(group, levels[-1]) > self.remaining + SHARES.expected_seconds",
        "self._need(group, levels[-1]) > self.remaining",
        RUN + "boosting_has",
    ),
    Bug(
        "run-processes-that-start-too-late",
        "if start_seconds > SHARES.start_workers * self.budget and not options.processes:",
        "if start_seconds > 100 * self.budget and not options.processes:",
        RUN + "no_processes",
    ),
    Bug(
        "run-warp-beyond-the-window",
        "is_in_band = np.abs(r - s) <= widths",
        "is_in_band = np.full(n_pairs, True)",
        "test_compare_series.py -k plain_program",
    ),
    Bug(
        "run-warp-to-the-end-of-the-longest",
        "totals[is_end] = sums[column_lengths[is_end], np.flatnonzero(is_end)]",
        "totals[is_end] = sums[-1, np.flatnonzero(is_end)]",
        "test_compare_series.py -k plain_program",
    ),
]
