"""The command line: ``mercerless {inspect, compare, fit, predict}``, each a module of `mercerless.commands`."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

#: The commands, in the order the help lists them.
COMMANDS = {
    "inspect": "describe a similarity or distance matrix, and draw it",
    "compare": "find out what works on your data, with a report",
    "fit": "fit the recommended or a named learner and save it",
    "predict": "predict for new items with a saved model",
}


def build_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for these words of a command line; only the module of the command they name is imported."""
    parser = argparse.ArgumentParser(
        prog="mercerless", description="Learn with the similarity you have."
    )
    parser.add_argument(
        "--version", action="version", version=f"mercerless {version('mercerless')}"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        command = subparsers.add_parser(
            name, help=purpose, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name in words:
            module = import_module(f"mercerless.commands.{name}")
            command.set_defaults(run=module.run)
            module.add_arguments(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 for success, 2 for bad input, 130 when interrupted."""
    started = time.perf_counter()  # imports and reading count toward a budget
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions
        import argcomplete

        argcomplete.autocomplete(build_parser(list(COMMANDS)))
    words = list(sys.argv[1:] if argv is None else argv)
    program = f"mercerless {words[0]}" if words and words[0] in COMMANDS else "mercerless"
    _accept_all_characters()
    try:
        args, unknown = build_parser(words).parse_known_args(words)
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not understood; see {program} --help.")
        args.started, args.words = started, words
        return args.run(args)
    except (ValueError, OSError, MemoryError, ImportError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: interrupted, nothing was written.", file=sys.stderr)
        return 130


def _accept_all_characters() -> None:
    """Print a question mark for what the encoding of the terminal lacks, such as the ² of R², instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
