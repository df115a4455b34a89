"""The subcommands of ``mercerless``, one module each, imported when it is the one to run.

A module has ``add_arguments(parser)``, which also sets the description and the examples of the help, and ``run(args)
-> int | None``, whose result is the exit code. Bad input is raised as ``ValueError`` or ``OSError`` with one sentence,
which `mercerless.cli.main` prints.
"""
