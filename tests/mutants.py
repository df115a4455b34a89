"""Random mutants of the source: how many of them do the tests notice?

    python tests/mutants.py N SEED [--only PART] [--folder FOLDER] [--slow SECONDS]

N places are drawn uniformly among all comparisons, arithmetic, constants, arguments, conditions and statements of src
and changed one at a time in a copy. The quick tests run once without any change: which lines does each of them run?
A mutant is tried by the tests that run its statement, fastest first, then by the slow tests of the same files. It is
killed when one fails that passes without the change. A survivor is either equivalent or a missing test.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy is imported

import argparse
import ast
import contextlib
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas  # noqa: F401 (imported once for all mutants)
import pytest
import scipy.stats  # noqa: F401
import sklearn.ensemble
import sklearn.model_selection
import sklearn.pipeline
import sklearn.svm  # noqa: F401
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mercerless"
COPIED = ["src", "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CONTRIBUTING.md"]
PAIRS = "Lt LtE  Gt GtE  Eq NotEq  Is IsNot  In NotIn  Add Sub  Mult Div  BitAnd BitOr"
PAIRS = [pair.split() for pair in PAIRS.split("  ")]
OPERATORS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
OPERATORS |= {"Pow": "Mult", "FloorDiv": "Mult", "Mod": "Add"}
WORDS = {"warn", "print", "import_optional"}  # calls whose arguments are said to people
DRIVER = "tests/test_properties.py"  # it runs every estimator


class Place(NamedTuple):
    """One possible change: a file, the position of the node among its changeable nodes, its line, and the kind."""

    path: Path
    index: int
    line: int
    kind: str


def is_number(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def is_text(node):
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def kinds_of(node):
    """The kinds of change that a node allows."""
    match node:
        case ast.Compare() if type(node.ops[0]).__name__ in OPERATORS:
            yield "comparison"
        case ast.BinOp() if type(node.op).__name__ in OPERATORS:
            if not is_text(node.left) and not is_text(node.right):
                yield "arithmetic"
        case ast.Constant() if is_number(node):
            yield "constant"
        case ast.If() | ast.IfExp() | ast.While():
            yield "inverted condition"
        case ast.BoolOp():
            yield "dropped condition"
        case ast.Call(args=[first, second]) if ast.dump(first) != ast.dump(second):
            yield "swapped arguments"
        case ast.Assign() | ast.AugAssign():
            yield "dropped statement"
        case ast.Expr() if isinstance(node.value, ast.Call):
            yield "dropped statement"


def other(operator):
    return getattr(ast, OPERATORS[type(operator).__name__])()


def change(node, kind):
    """Change a node in place."""
    if kind == "comparison":
        node.ops[0] = other(node.ops[0])
    elif kind == "arithmetic":
        node.op = other(node.op)
    elif kind == "constant" and isinstance(node.value, bool):
        node.value = not node.value
    elif kind == "constant":
        node.value = node.value + 1 if isinstance(node.value, int) else 2.0 * node.value or 1.0
    elif kind == "inverted condition":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif kind == "dropped condition":
        node.values = node.values[1:]
    elif kind == "swapped arguments":
        node.args = node.args[::-1]
    elif kind == "dropped statement":
        position = {"lineno": node.lineno, "col_offset": node.col_offset}
        node.__class__, node.__dict__ = ast.Pass, position


def is_skipped(node):
    """Whether only people or type checkers read what the node says."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] in WORDS


def changeable(tree):
    """The nodes that decide what the code does, in a fixed order."""
    todo, nodes = [tree], []
    while todo:
        node = todo.pop()
        if is_skipped(node):
            continue
        nodes.append(node)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                children = value if isinstance(value, list) else [value]
                todo += [child for child in children if isinstance(child, ast.AST)]
    return nodes


def places(only):
    """Every possible change of the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        if only in str(path.relative_to(SOURCE)):
            nodes = changeable(ast.parse(path.read_text(encoding="utf-8")))
            for i, node in enumerate(nodes):
                yield from (Place(path, i, node.lineno, kind) for kind in kinds_of(node))


def mutant(place):
    """The changed text of the file, and a line that describes the change."""
    tree = ast.parse(place.path.read_text(encoding="utf-8"))
    node = changeable(tree)[place.index]
    where = f"{place.path.relative_to(SOURCE)}:{node.lineno}"
    before = ast.unparse(node)
    change(node, place.kind)
    shown = [" ".join(code.split())[:80] for code in (before, ast.unparse(node))]
    return ast.unparse(
        ast.fix_missing_locations(tree)
    ), f"{where} [{place.kind}] {'  ->  '.join(shown)}"


def statement_lines(tree, line):
    """The lines of the innermost statement of a function that holds a line, else of its class, else of the module.

    What stands outside of functions runs once, on import; the tests that notice it are those of what uses it.
    """
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    inside = [node for node in statements if node.lineno <= line <= node.end_lineno]
    functions = [node for node in inside if isinstance(node, ast.FunctionDef)]
    innermost = inside[-1]
    if functions and innermost is not functions[-1]:
        body = getattr(innermost, "body", None)
        return range(innermost.lineno, body[0].lineno if body else innermost.end_lineno + 1)
    scopes = functions or [node for node in inside if isinstance(node, ast.ClassDef)]
    return range(scopes[-1].lineno, scopes[-1].end_lineno + 1) if scopes else range(1, 10**6)


class Watch:
    """A plugin of pytest: keeps and orders the tests that are chosen, and notes times and failures."""

    def __init__(self, choose=None, seconds=np.inf):
        self.choose, self.seconds = choose, seconds
        self.times, self.failed = {}, []

    def pytest_collection_modifyitems(self, items):
        if self.choose is not None:
            items[:] = self.choose(items)

    def pytest_runtest_logreport(self, report):
        self.times[report.nodeid] = self.times.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logfinish(self):
        if time.process_time() > self.seconds:
            raise pytest.exit("the time for slow tests is used", returncode=0)


def run_pytest(folder, watch, options):
    """In a process of its own: what happens in it is read from the files that it leaves."""
    os.setpgid(0, 0)
    os.chdir(folder)
    paths = [str(folder / "src"), str(folder / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.path[:0] = paths
    with open("output.txt", "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", *options], [watch])
    Path("watched.json").write_text(json.dumps([watch.times, watch.failed]))
    os._exit(int(code))


def forked(folder, watch, *options, seconds):
    """Exit code, times and failures of pytest; the code is None if it needs more than these seconds of processor time.

    The process is forked, so that NumPy and its like are imported only once.
    """
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        try:
            run_pytest(folder, watch, options)
        finally:
            os._exit(70)
    deadline = time.monotonic() + 12 * seconds
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # its workers
    if os.WIFSIGNALED(ended[1]):
        return None, {}, []
    code = os.WEXITSTATUS(ended[1])
    if code not in (0, 1, 2, 5):  # 2: a module of tests can no longer be imported; 5: no tests
        raise RuntimeError(
            f"pytest ended with {code}:\n{(folder / 'output.txt').read_text()[-3000:]}"
        )
    return code, *json.loads((folder / "watched.json").read_text())


class Baseline:
    """A copy of the code in which all quick tests ran once: which lines each of them runs, and for how long."""

    def __init__(self, folder, slow_seconds):
        self.folder, self.slow_seconds = folder, slow_seconds
        if not (folder / "times.json").exists():
            self.measure()
        times, failed = json.loads((folder / "times.json").read_text())
        self.times = {name: time for name, time in times.items() if name not in failed}
        self.failed = failed
        self.lines = CoverageData(str(folder / ".coverage"))
        self.lines.read()

    def measure(self):
        ignored = shutil.ignore_patterns("__pycache__", "_build", "gallery", "generated", "results")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.folder / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, self.folder / name)
        options = ["-m", "not slow", "--cov", "--cov-context=test", "--cov-report="]
        _, *watched = forked(self.folder, Watch(), *options, seconds=3600)
        (self.folder / "times.json").write_text(json.dumps(watched))

    def tests_of(self, place):
        """The tests that run the changed statement, fastest first."""
        lines = statement_lines(ast.parse(place.path.read_text(encoding="utf-8")), place.line)
        path = self.folder / place.path.relative_to(ROOT)
        contexts = self.lines.contexts_by_lineno(str(path))
        names = {name.split("|")[0] for line in lines for name in contexts.get(line, ())}
        return sorted(names & self.times.keys(), key=self.times.get)

    def slow_tests(self, place, quick):
        """A choice among slow tests: those of the files of the quick ones, and of the driver's same estimators."""
        part = place.path.relative_to(SOURCE).parts[0].removesuffix(".py")
        named = {f"tests/{path.name}" for path in self.folder.glob(f"tests/test_*{part}*.py")}
        files = {name.split("::")[0] for name in quick} | named | {DRIVER}
        estimators = {
            name.split("-")[-2] for name in quick if name.startswith(f"{DRIVER}::test_property")
        }

        def is_chosen(item):
            if item.nodeid in self.times or item.nodeid in self.failed:
                return False
            if not item.nodeid.startswith(DRIVER):
                return True
            estimator = str(item.callspec.params["case"]).split("-")[0]
            return estimator in estimators or estimator.lower().startswith(part)

        def choose(items):
            chosen = [item for item in items if is_chosen(item)]
            return sorted(chosen, key=lambda item: (part not in item.path.name, item.path.name))

        return sorted(files), choose

    def try_quick(self, names, most=150.0):
        """The first of these tests that fails, of as many as take `most` seconds."""
        seconds = dict(zip(names, np.cumsum([self.times[name] for name in names]), strict=True))
        chosen = [name for name in names if seconds[name] <= most] or names[:1]

        def choose(items):
            found = {item.nodeid: item for item in items}
            return [found[name] for name in chosen if name in found]

        limit = 30.0 + 5.0 * seconds[chosen[-1]]
        files = sorted({name.split("::")[0] for name in chosen})
        return self.first_failure(choose, *files, seconds=limit)

    def try_slow(self, place, names, seconds):
        """The first slow test that fails, and passes without the change."""
        files, choose = self.slow_tests(place, names)
        return self.first_failure(choose, *files, watched=seconds, seconds=10 * seconds)

    def first_failure(self, choose, *files, seconds, watched=np.inf):
        options = ["-x", "--timeout=600", *files]
        code, _, failed = forked(self.folder, Watch(choose, watched), *options, seconds=seconds)
        if code is None:
            return f"the limit of {seconds:.0f} s"
        return failed[0] if failed else "the import" if code == 2 else ""

    def killer_of(self, place):
        """What notices the mutant: a test, the limit of time, or an import that fails; empty if nothing does."""
        path = self.folder / place.path.relative_to(ROOT)
        original = path.read_text(encoding="utf-8")
        names = self.tests_of(place)
        try:
            self.write(path, mutant(place)[0])
            if names and (killer := self.try_quick(names)):
                return killer
            while killer := self.try_slow(place, names, self.slow_seconds):
                if "::" not in killer:
                    return killer
                self.write(path, original)
                alone = self.first_failure(
                    lambda items: [i for i in items if i.nodeid == killer], killer, seconds=600
                )
                if not alone:
                    return killer
                self.failed.append(killer)
                self.write(path, mutant(place)[0])
            return ""
        finally:
            self.write(path, original)

    @staticmethod
    def write(path, text):
        """Change a file, and forget what was compiled from it."""
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, help="number of mutants")
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", default="", help="part of the path below src/mercerless")
    parser.add_argument(
        "--folder", help="where the first run is kept for other seeds of the same code"
    )
    parser.add_argument(
        "--slow", type=float, default=300.0, help="seconds of slow tests for a mutant"
    )
    options = parser.parse_args()
    candidates = list(places(options.only))
    drawn = random.Random(options.seed).sample(candidates, min(options.n, len(candidates)))
    os.nice(5)
    with contextlib.ExitStack() as stack:
        folder = options.folder or stack.enter_context(tempfile.TemporaryDirectory())
        baseline = Baseline(Path(folder), options.slow)
        print(
            f"{len(drawn)} of {len(candidates)} mutants; {len(baseline.failed)} tests fail without any",
            flush=True,
        )
        killers = []
        for place in drawn:
            killers.append(baseline.killer_of(place))
            print(
                f"{'killed  ' if killers[-1] else 'SURVIVED'} {mutant(place)[1]}   by {killers[-1] or 'nothing'}",
                flush=True,
            )
    n_killed, n_imports = sum(map(bool, killers)), killers.count("the import")
    print(
        f"{n_killed} of {len(drawn)} killed ({100 * n_killed / len(drawn):.0f} %), {n_imports} by an import"
    )


if __name__ == "__main__":
    main()
