"""How many functions of ours a fit walks through: a measure of how much has to be read to follow it.

``python tests/walks.py`` prints the count for the two automatic learners, ``--list`` also the functions, in the order
of their first calls. A function is counted once however often it is called; comprehensions and lambdas count as parts
of the functions they stand in.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

import mercerless

ROOT = Path(mercerless.__file__).parent
PARTS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")


def functions_called(work, *arguments):
    """Names of our functions that a call of `work` walks through, with their files, in the order of first calls."""
    called = {}

    def note(frame, event, _):
        if event != "call":
            return
        code = frame.f_code
        if code.co_name in PARTS:
            return
        path = Path(code.co_filename)
        if ROOT in path.parents:
            called.setdefault((str(path.relative_to(ROOT)), code.co_qualname))

    sys.setprofile(note)
    try:
        work(*arguments)
    finally:
        sys.setprofile(None)
    return list(called)


def fits():
    """Names and functions of the fits that are followed."""
    random = np.random.RandomState(0)
    X = random.normal(size=(120, 3))
    y = X[:, 0] + X[:, 1] ** 2
    distances = np.abs(X[:, None] - X).sum(axis=2)
    classes = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    similar = mercerless.SimilarityClassifier("precomputed", kind="distance", random_state=0)
    table = mercerless.TableRegressor(random_state=0)
    yield "SimilarityClassifier.fit", similar.fit, (distances, classes)
    yield "TableRegressor.fit", table.fit, (X, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the functions too")
    parser.add_argument("--only", default="", help="a part of the name of a fit")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, fit, data in fits():
        if arguments.only not in name:
            continue
        called = functions_called(fit, *data)
        print(f"{len(called):4d}  {name}")
        if arguments.list:
            for path, function in called:
                print(f"      {path:32s} {function}")


if __name__ == "__main__":
    main()
