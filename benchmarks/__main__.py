"""Every claim of this library is one command.

python -m benchmarks list                        # the claims, their commands, their rows
python -m benchmarks papers krein --table 3      # one claim; more words go to its script (--full, --sets yacht)
python -m benchmarks papers lab compare
python -m benchmarks speed krein                 # and remember its ratios; a slower commit is named
python -m benchmarks all [--full] [--limit 60]   # everything within an hour, into benchmarks/runs; goes on
python -m benchmarks all --plan                  # what each claim took when it ran last; runs nothing
python -m benchmarks all papers see              # some of it
python -m benchmarks pages [--check]             # write the rows' numbers into README and docs
python -m benchmarks history                     # commits that made something slower
"""

import argparse
import os
import sys

from benchmarks.claims import CLAIMS, HERE, chosen


def show():
    for claim in CLAIMS:
        rows = claim.csv.relative_to(HERE.parent).as_posix() + (
            "" if claim.csv.exists() else " (not run yet)"
        )
        print(f"{claim.what}\n    python -m benchmarks {claim.name}\n    {rows}")


def measure(words):
    """Run the chosen claims into their results; returns the exit code."""
    from benchmarks import history
    from benchmarks.run import record, run

    claims, options = chosen(words)
    failed, ended = False, {}
    for claim in claims:
        if claim.data and not os.environ.get("MERCERLESS_DATA"):
            print(f"{claim.name}: set MERCERLESS_DATA to the folder of data sets", file=sys.stderr)
            failed = True
            continue
        status, seconds, _ = run(claim, options)
        failed |= status != "done"
        ended.setdefault(claim.script, []).append(status)
        if status == "done":
            record(claim, options, seconds)
    if words[0] == "speed" and options in ([], ["--full"]):  # other sizes are not to be compared
        for script, ends in ended.items():
            if set(ends) == {"done"}:
                print("\n".join(history.slower(history.append(script))))
    return int(failed)


def everything(words):
    from benchmarks.run import Evidence, plan

    parser = argparse.ArgumentParser(prog="python -m benchmarks all")
    parser.add_argument(
        "--full", action="store_true", help="the papers' protocols where a script has them; hours"
    )
    parser.add_argument("words", nargs="*", help="some claims only: papers krein table3")
    parser.add_argument(
        "--limit", type=float, help="seconds for each script; unless --full an hour over all"
    )
    parser.add_argument(
        "--plan", action="store_true", help="say what each claim took, and run nothing"
    )
    parser.add_argument(
        "--folder", help="where rows go; benchmarks/runs/reduced or benchmarks/runs/full"
    )
    options = parser.parse_args(words)
    claims = chosen(options.words)[0] if options.words else CLAIMS
    if options.plan:
        print(plan(claims))
        return 0
    total = None if options.full or options.limit else 3600.0
    folder = options.folder or HERE / "runs" / ("full" if options.full else "reduced")
    return int(not Evidence(folder, options.full, claims)(options.limit, total))


def written(words):
    from benchmarks.pages import rewrite

    parser = argparse.ArgumentParser(prog="python -m benchmarks pages")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 if a page differs"
    )
    check = parser.parse_args(words).check
    stale = rewrite(check)
    print(
        "\n".join(f"{'differs' if check else 'written'}: {name}" for name in stale)
        or "all pages show their rows"
    )
    return int(check and bool(stale))


def regressions():
    from benchmarks import history

    found = [line for script in history.RATIOS for line in history.slower(history.read(script))]
    print("\n".join(found) or "no commit made a remembered ratio worse by a quarter")


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
                return written(rest)
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
