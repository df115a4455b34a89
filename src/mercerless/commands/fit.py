"""``mercerless fit``: fit the recommended, or a named, learner on all of the data and save it."""

import argparse

from mercerless.commands import shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.usage = "mercerless fit DATA [options]"
    parser.description = """\
Fit one learner on all of the data and save it for 'mercerless predict'. Without --learner, a
comparison within the budget chooses it. Loading the file runs no code from it."""
    parser.epilog = """\
examples:
  mercerless fit animals.csv --labels species                      what a comparison recommends
  mercerless fit animals.csv --labels species --learner table -o model.skops
  mercerless predict model.skops new-animals.csv

exit codes: 0 done, 2 something is wrong with the input, 130 interrupted (nothing is written)"""
    shared.add_data_arguments(parser)
    shared.add_run_arguments(parser)
    parser.add_argument("--learner", metavar="NAME", help="the learner, by its name in the report")
    parser.add_argument(
        "-o", "--output", metavar="SKOPS", default="model.skops", help="(%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Check, read, choose, fit, save."""
    options = shared.check_data(args)
    shared.run_options(args)
    output = shared.check_output(args.output, ".skops", args.data)
    from mercerless import persistence
    from mercerless.commands import models
    from mercerless.comparison.learners import select_learners
    from mercerless.comparison.work import fit_all

    persistence.check_installed()
    problem = shared.read(args, options)
    if args.learner is None:
        workers = shared.start_workers(args)
        try:
            comparison = shared.compare(args, problem, workers)
        finally:
            workers.close()
        if comparison.interrupted:
            raise KeyboardInterrupt
        print(f"\n{comparison}\n")
        if comparison.recommended is None:
            return 2
        learner = comparison.learner()
    else:
        (learner,) = select_learners(problem, [args.learner])
    with shared.plain_warnings("fit"):
        model = fit_all(problem, learner)
    model = getattr(model, "best_estimator_", model)  # without the record of a search
    models.save(model, models.About.of(problem, learner), output)
    print(f"{learner.title}, fitted on {problem.n_items:,} items\nmodel   {output}")
    return 0
