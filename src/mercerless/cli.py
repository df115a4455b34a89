"""The command line: ``mercerless {inspect, compare, fit, predict}``, each a module of `mercerless.commands`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from mercerless.commands import compare, fit, inspect, predict

#: The modules of the subcommands, in the order the help lists them.
COMMANDS = (inspect, compare, fit, predict)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with every subcommand."""
    parser = argparse.ArgumentParser(prog="mercerless", description="Learn with the similarity you have.")
    parser.add_argument("--version", action="version", version=f"mercerless {version('mercerless')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 for success, 2 for bad input, 130 when interrupted."""
    args = build_parser().parse_args(argv)
    try:
        return args.run(args) or 0
    except (ValueError, OSError, MemoryError, ImportError) as error:
        print(f"mercerless {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"mercerless {args.command}: interrupted, nothing was written.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
