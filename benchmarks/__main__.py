"""Every claim of this library is one command.

python -m benchmarks list                        # the claims, their commands, their rows
python -m benchmarks papers krein --table 3      # one claim; more words go to its script (--full, --sets yacht)
python -m benchmarks papers lab compare
python -m benchmarks speed krein                 # and remember its ratios; a slower commit is named
python -m benchmarks all [--full] [--limit 60]   # everything within an hour, into benchmarks/runs; resumes
python -m benchmarks all --plan                  # what each claim took when it ran last; runs nothing
python -m benchmarks all papers see              # some of it
python -m benchmarks pages [--check]             # write the rows' numbers into README and docs
python -m benchmarks history                     # commits that made something slower
"""

import argparse
import sys
from pathlib import Path

from benchmarks.claims import CLAIMS, HERE, chosen


def show():
    for claim in CLAIMS:
        rows = claim.csv.relative_to(HERE.parent).as_posix()
        note = "" if claim.csv.exists() else " (not run yet)"
        print(f"{claim.what}\n    python -m benchmarks {claim.name}\n    {rows}{note}")


def measure(words):
    """Run the chosen claims into their results; returns the exit code."""
    from benchmarks import history
    from benchmarks.run import record, run

    claims, options = chosen(words)
    ended = {claim.script: True for claim in claims}
    for claim in claims:
        if claim.lacks_data():
            print(f"{claim.name}: set MERCERLESS_DATA to the folder of data sets", file=sys.stderr)
            ended[claim.script] = False
            continue
        status, seconds, _ = run(claim, claim.words() + options)
        if status == "done":
            record(claim, options, seconds)
        else:
            ended[claim.script] = False
    if words[0] == "speed" and options in ([], ["--full"]):  # other sizes are not to be compared
        for script in (script for script, is_done in ended.items() if is_done):
            print("\n".join(history.slower(history.append(script))))
    return int(not all(ended.values()))


def everything(words):
    from benchmarks.run import default_folder, plan, run_all

    parser = argparse.ArgumentParser(prog="python -m benchmarks all")
    parser.add_argument("words", nargs="*", help="some claims only: papers krein table3")
    parser.add_argument("--full", action="store_true", help="the papers' protocols; hours")
    parser.add_argument("--limit", type=float, help="seconds for each claim; else no limit")
    parser.add_argument("--plan", action="store_true", help="what each claim took; runs nothing")
    parser.add_argument("--folder", help="where rows go; benchmarks/runs/reduced or .../full")
    options = parser.parse_args(words)
    claims, _ = chosen(options.words)
    if options.plan:
        print(plan(claims))
        return 0
    folder = Path(options.folder or default_folder(options.full))
    return int(not run_all(folder, claims, options.full, options.limit))


def pages(words):
    from benchmarks.pages import rewrite

    parser = argparse.ArgumentParser(prog="python -m benchmarks pages")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if a page differs"
    )
    check = parser.parse_args(words).check
    stale = rewrite(check)
    word = "differs" if check else "written"
    print("\n".join(f"{word}: {name}" for name in stale) or "all pages show their rows")
    return int(check and bool(stale))


def regressions():
    from benchmarks import history

    lines = [line for script in history.SCRIPTS for line in history.slower(history.read(script))]
    print("\n".join(lines) or "no commit made a remembered ratio worse by a quarter")


def main(words):
    """One door; returns the exit code."""
    try:
        match words:
            case ["list"]:
                show()
            case ["papers" | "speed", *_]:
                return measure(words)
            case ["all", *rest]:
                return everything(rest)
            case ["pages", *rest]:
                return pages(rest)
            case ["history"]:
                regressions()
            case ["-h" | "--help"]:
                print(__doc__)
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (ValueError, LookupError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
