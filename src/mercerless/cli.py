"""The command line: ``mercerless {inspect, compare, fit, predict}``, each a module of `mercerless.commands`."""

import argparse
import sys
from collections.abc import Sequence


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with every subcommand, in the order the help lists them."""
    from importlib.metadata import version

    from mercerless.commands import compare, fit, inspect, predict

    parser = argparse.ArgumentParser(prog="mercerless", description="Learn with the similarity you have.")
    parser.add_argument("--version", action="version", version=f"mercerless {version('mercerless')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (inspect, compare, fit, predict):
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 for success, 2 for bad input, 130 when interrupted."""
    program = "mercerless"
    try:  # from the imports on, which take their time
        args = build_parser().parse_args(argv)
        program = f"mercerless {args.command}"
        return args.run(args) or 0
    except (ValueError, OSError, MemoryError, ImportError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: interrupted, nothing was written.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
