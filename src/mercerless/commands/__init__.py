"""The subcommands of ``mercerless``, one module each.

A module has ``add_parser(subparsers)``, which registers its arguments and ``set_defaults(run=run)``, and
``run(args) -> int | None``, whose result is the exit code. Optional packages are imported where used. Bad input is
raised as ``ValueError`` or ``OSError`` with one sentence, which `mercerless.cli.main` prints.
"""
