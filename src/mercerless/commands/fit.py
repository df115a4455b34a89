"""``mercerless fit``: fit the recommended, or a named, learner on all of the data and save it."""

import argparse
import json
import sys
import warnings
from typing import Any

import numpy as np

from mercerless import persistence
from mercerless.commands import _common
from mercerless.commands._arguments import add_data_arguments, add_run_arguments
from mercerless.comparison.learners import (
    Learner,
    Terms,
    group_arguments,
    matrix_for,
    select_learners,
)
from mercerless.comparison.problem import Problem
from mercerless.comparison.scoring import inner_folds, keep_groups
from mercerless.comparison.series import to_text
from mercerless.comparison.words import check_metric


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.description = """\
Fit one learner on all of the data and save it for 'mercerless predict'. Without --learner, a
comparison within the budget chooses it. The file is written with skops, not pickle: loading it runs
no code from the file."""
    parser.epilog = """\
examples:
  mercerless fit scores.csv --labels classes.txt                    what a comparison recommends
  mercerless fit table.csv --labels price --learner table -o table.skops
  mercerless predict model.skops new-rows.csv                       then predict

exit codes: 0 done, 2 something is wrong with the input, 130 interrupted (nothing is written)"""
    add_data_arguments(parser)
    add_run_arguments(parser)
    parser.add_argument(
        "--learner", metavar="NAME", help="the learner, by its name in the report (the recommended)"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="SKOPS",
        default="model.skops",
        help="where the model goes (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Read, choose, fit, save."""
    persistence.check_installed()
    output = _common.check_output(args.output, ".skops")
    problem = _common.read(args)
    are_texts = all(isinstance(item, str) for item in problem.items or ())
    if not are_texts and problem.similarity != "dtw":
        raise ValueError(
            "A model of series cannot be kept in a file; fit it in Python, with the code that "
            "'mercerless compare' prints."
        )
    if args.learner is None:
        args.processes = []
        comparison = _common.run_comparison(args, problem)
        if comparison.interrupted:
            raise KeyboardInterrupt
        print(f"\n{comparison}\n")
        learner = comparison.learner()
        estimator = comparison.estimator()
    else:
        (learner,), limits = select_learners(problem, (args.learner,))
        if learner.name in limits:
            learner = learner.in_form(limits[learner.name].form)
        metric = check_metric(args.metric, problem.task)
        estimator = learner.build(Terms(problem, metric, args.seed))
    if problem.groups is not None:
        keep_groups(estimator, inner_folds(problem, np.arange(len(problem.y))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        group_options = group_arguments(estimator, problem.groups)
        estimator.fit(matrix_for(problem, learner.takes), problem.y, **group_options)
    for warning in caught:
        print(f"mercerless fit: {warning.message}", file=sys.stderr)
    model = {
        "estimator": without_search(estimator),
        "description": json.dumps(describe(problem, learner)),
    }
    persistence.save(model, output)
    print(f"{learner.title} fitted on {len(problem.y)} items\nmodel   {output}")
    return 0


def without_search(estimator: Any) -> Any:
    """Return a fitted estimator without the record of its search, also inside a vote or after a preprocessing."""
    if hasattr(estimator, "estimators_") and hasattr(estimator, "named_estimators_"):
        estimator.estimators_ = [without_search(member) for member in estimator.estimators_]
        estimator.named_estimators_ = dict(zip(estimator.named_estimators_, estimator.estimators_))
        return estimator
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        estimator.steps[-1] = (name, without_search(last))
        return estimator
    return getattr(estimator, "best_estimator_", estimator)


def category_levels(problem: Problem) -> dict[str, list[str]]:
    """Return the words of every column of categories, which 'predict' compares with those of new rows."""
    roles = problem.roles or {}
    names = [name for name, role in roles.items() if role.startswith("category")]
    return {name: sorted(problem.X[name].dropna().astype(str).unique()) for name in names}


def describe(problem: Problem, learner: Learner) -> dict[str, Any]:
    """Return the description that 'predict' needs to read new items, as plain values."""
    similarity = problem.similarity
    if callable(similarity):
        similarity = f"{similarity.__module__}:{similarity.__name__}"
    items = problem.items
    if similarity == "dtw" and items is not None:
        items = tuple(to_text(item) for item in items)
    smallest = 0.0
    largest = 0.0
    if problem.is_matrix:
        smallest = float(problem.X.min())
        largest = float(problem.X.max())
    return {
        "format": 2,
        "learner": learner.name,
        "takes": learner.takes,
        "kind": problem.kind,
        "task": problem.task,
        "largest": largest,
        "smallest": smallest,
        "n_columns": int(problem.X.shape[1]),
        "prepared": problem.preprocessor is not None,
        "roles": problem.roles,
        "ids": problem.ids,  # tuples become lists in JSON
        "items": items,
        "similarity": similarity,
        "missing": problem.missing,
        "percents": problem.percents,
        "levels": category_levels(problem),
        "columns": problem.columns,
        "target": problem.target,
        "matrices": list(problem.matrices) if problem.others else [],
    }
