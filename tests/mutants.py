"""Random mutants of the source: how many of them do the tests notice?

    python tests/mutants.py N SEED [--only PART] [--folder FOLDER] [--seconds SECONDS]

N places are drawn uniformly among all comparisons, arithmetic, constants, arguments, conditions and statements of src
and changed one at a time in a copy. The quick tests run once without any change: which functions does each call?
A mutant is tried by the tests that call its function, fastest first, then by the other quick tests of the same files
(they share what is fitted once) and of files that name its module (they may call it in other processes), then by the
slow tests of these files. It is killed when one fails that passes without the change. A survivor is either equivalent
or a missing test.

All tests are collected once; each mutant is a forked process in which the functions get the changed code. Only changes
of what runs on import are imported anew.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy is imported

import argparse
import ast
import contextlib
import cProfile
import gc
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
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

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mercerless"
TESTS = list(ROOT.glob("tests/test_*.py"))
COPIED = ["src", "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CONTRIBUTING.md"]
PAIRS = "Lt LtE  Gt GtE  Eq NotEq  Is IsNot  In NotIn  Add Sub  Mult Div  BitAnd BitOr"
PAIRS = [pair.split() for pair in PAIRS.split("  ")]
OPERATORS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
OPERATORS |= {"Pow": "Mult", "FloorDiv": "Mult", "Mod": "Add"}
WORDS = {"warn", "print", "import_optional"}  # calls whose arguments are said to people
IMPORT = "an import that fails"
SYMMETRIC = {"minimum", "maximum", "min", "max", "union", "intersect1d", "isclose", "logaddexp"}
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
            if ast.unparse(node.func).split(".")[-1] not in SYMMETRIC:
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
    elif kind == "dropped condition" and len(node.values) == 2:
        node.__class__, node.__dict__ = type(node.values[1]), vars(node.values[1])
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
    """The changed tree of the file, and a line that describes the change."""
    tree = ast.parse(place.path.read_text(encoding="utf-8"))
    node = changeable(tree)[place.index]
    where = f"{place.path.relative_to(SOURCE)}:{node.lineno}"
    before = ast.unparse(node)
    change(node, place.kind)
    shown = [" ".join(code.split())[:80] for code in (before, ast.unparse(node))]
    return ast.fix_missing_locations(tree), f"{where} [{place.kind}] {'  ->  '.join(shown)}"


def function_lines(tree, line):
    """The lines of the innermost function whose body holds a line, and whether there is one.

    What stands outside of functions runs once, on import: then the lines are those of its class or module.
    """
    scopes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and node.lineno <= line <= node.end_lineno
    ]
    if not scopes:
        return range(1, 10**6), False
    innermost = scopes[-1]
    first = min(node.lineno for node in [innermost, *innermost.decorator_list])
    if isinstance(innermost, ast.FunctionDef) and line >= innermost.body[0].lineno:
        return range(first, first + 1), True
    return range(first, innermost.end_lineno + 1), False


def in_child(work, seconds):
    """What `work()` returns in a forked process; None if it needs more than these seconds of processor time."""
    with tempfile.NamedTemporaryFile() as file:
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            with open("output.txt", "w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            try:
                Path(file.name).write_text(json.dumps(work()))
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        deadline = time.monotonic() + 20 * seconds
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # its workers
        if os.WIFSIGNALED(ended[1]):
            return None
        if not (written := Path(file.name).read_text()):
            raise RuntimeError(Path("output.txt").read_text()[-3000:])
        return json.loads(written)


class Watch:
    """A plugin of pytest: notes times, failures and functions that are called, keeps some tests and orders them."""

    def __init__(self, choose=list, is_profiled=False):
        self.choose, self.is_profiled = choose, is_profiled
        self.times, self.failed, self.called = {}, [], {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        if not self.is_profiled:
            return (yield)
        profile = cProfile.Profile()
        with profile:
            done = yield
        for code in (entry.code for entry in profile.getstats()):
            if not isinstance(code, str) and "/src/mercerless/" in code.co_filename:
                place = f"{code.co_filename}:{code.co_firstlineno}"
                self.called.setdefault(place, []).append(item.nodeid)
        return done

    def pytest_collection_modifyitems(self, items):
        items[:] = self.choose(items)

    def pytest_runtest_logreport(self, report):
        self.times[report.nodeid] = self.times.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)


OPTIONS = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:randomly", "--timeout=600"]


def run_anew(watch, *options):
    """Import everything again, and run the tests: the exit code, times and failures."""
    for name in list(sys.modules):
        if name.split(".")[0] in ("mercerless", "tests", "conftest", "contract") or "test_" in name:
            del sys.modules[name]
    return int(pytest.main([*OPTIONS, *options], [watch])), watch.times, watch.failed


def run_items(items, watch, seconds=np.inf, at_most=np.inf):
    """Run collected tests, as many as can be started within so many seconds, until so many fail.

    These are of this process; four times as many on the clock, since some tests wait for others.
    """
    items[0].config.pluginmanager.register(watch)
    end = time.monotonic() + 4.0 * seconds
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        is_over = time.process_time() > seconds or time.monotonic() > end
        if is_over or len(watch.failed) >= at_most:
            break
    return watch


def first_failure(items, seconds):
    return "".join(run_items(items, Watch(), seconds, at_most=1).failed)


def measure(items):
    """How long every quick test takes, which of them fail, and which functions each of them calls."""
    quick = [item for item in items if not item.get_closest_marker("slow")]
    watch = run_items(quick, Watch(is_profiled=True))
    return watch.times, watch.failed, watch.called


def functions_of_files():
    """The living functions of every file of the source."""
    functions = {}
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType):
            functions.setdefault(thing.__code__.co_filename, []).append(thing)
    return {file: found for file, found in functions.items() if "/src/mercerless/" in file}


def change_functions(functions, tree, path):
    """Give the functions of a file the code that they have in the changed tree; modules imported later read it."""
    codes, todo = {}, [compile(tree, str(path), "exec")]
    while todo:
        code = todo.pop()
        codes[code.co_qualname, code.co_firstlineno] = code
        todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    for function in functions:
        code = function.__code__
        function.__code__ = codes[code.co_qualname, code.co_firstlineno]


class Mutants:
    """A plugin of pytest that runs the tests on mutants."""

    def __init__(self, folder, drawn, seconds):
        self.folder, self.drawn, self.seconds = folder, drawn, seconds

    def pytest_runtestloop(self, session):
        measured = self.folder / "measured.json"
        if not measured.exists():
            measured.write_text(json.dumps(in_child(lambda: measure(session.items), 3600.0)))
        times, self.failed, self.called = json.loads(measured.read_text())
        self.times = {name: time for name, time in times.items() if name not in self.failed}
        print(f"{len(self.failed)} tests fail without any mutant", flush=True)
        self.items = {item.nodeid: item for item in session.items}
        self.functions = functions_of_files()
        gc.freeze()  # so that forked processes share what is there
        killers = []
        for place in self.drawn:
            killers.append(self.killer_of(place))
            fate = "killed  " if killers[-1] else "SURVIVED"
            print(f"{fate} {mutant(place)[1]}   by {killers[-1] or 'nothing'}", flush=True)
        n_killed, n_imports = sum(map(bool, killers)), killers.count(IMPORT)
        share = 100 * n_killed / len(killers)
        print(f"{n_killed} of {len(killers)} killed ({share:.0f} %), {n_imports} by an import")
        return True

    def killer_of(self, place):
        """What notices the mutant: a test, the limit of time, or an import that fails; empty if nothing does."""
        tree = mutant(place)[0]
        path = self.folder / place.path.relative_to(ROOT)
        original = path.read_text(encoding="utf-8")
        lines, in_function = function_lines(ast.parse(original), place.line)
        quick = self.quick_tests(path, lines, place)
        seconds = sum(self.times[name] for name in quick)

        def failure(chosen, limit):
            if not chosen:
                return ""
            if not in_function:
                return self.failure_anew(chosen, limit)

            def work():
                change_functions(self.functions.get(str(path), ()), tree, path)
                return first_failure([self.items[name] for name in chosen], limit)

            killer = in_child(work, 5.0 * limit + 30.0)
            return "the limit of time" if killer is None else killer

        path.write_text(ast.unparse(tree), encoding="utf-8")  # for tests that start processes
        try:
            if killer := failure(quick, min(seconds, self.seconds)):
                return killer
            while killer := failure(self.slow_tests(place, quick), self.seconds):
                if killer not in self.items or not self.fails_anyhow(path, original, killer):
                    return killer
                path.write_text(ast.unparse(tree), encoding="utf-8")
            return ""
        finally:
            path.write_text(original, encoding="utf-8")

    def quick_tests(self, path, lines, place):
        """The tests that call a function that begins on one of these lines of a file, then others of related files.

        Those come first that call the lambda of the line, then those of files that are named like the module.
        """
        called = {tuple(place.rsplit(":", 1)): names for place, names in self.called.items()}

        def that_call(lines):
            of_file = [
                names
                for (file, line), names in called.items()
                if file == str(path) and int(line) in lines
            ]
            return set().union(*of_file)

        callers, closest = that_call(lines), that_call([place.line])
        part = place.path.relative_to(SOURCE).parts[0].removesuffix(".py")
        files = {name.split("::")[0] for name in callers} - {DRIVER}
        if not callers:
            files |= {f"tests/{test.name}" for test in TESTS if place.path.stem in test.read_text()}
        related = {name for name in self.times if name.split("::")[0] in files} - callers

        def time_of(name):
            file = name.split("::")[0]
            return self.times[name] / (5.0 if part in file or place.path.stem in file else 1.0)

        def by_time(names):
            return sorted(names & self.times.keys() & self.items.keys(), key=time_of)

        return by_time(callers & closest) + by_time(callers - closest) + by_time(related)

    def fails_anyhow(self, path, original, name):
        path.write_text(original, encoding="utf-8")
        if in_child(lambda: first_failure([self.items[name]], 600.0), 600.0):
            self.failed.append(name)
        return name in self.failed

    def failure_anew(self, chosen, limit):
        order = {name: i for i, name in enumerate(chosen)}

        def choose(items):
            found = [item for item in items if item.nodeid in order]
            return sorted(found, key=lambda item: order[item.nodeid])

        files = sorted({name.split("::")[0] for name in chosen})
        done = in_child(lambda: run_anew(Watch(choose), "-x", *files), 5.0 * limit + 60.0)
        if done is None:
            return ""  # perhaps only many tests: counted as a survivor
        code, _, failed = done
        if code not in (0, 1, 2):  # 2: a module of tests can no longer be imported
            raise RuntimeError(
                f"pytest ended with {code}: {Path('output.txt').read_text()[-3000:]}"
            )
        return failed[0] if failed else IMPORT if code else ""

    def slow_tests(self, place, quick):
        """Tests that are not quick: of the files of the quick ones, and the driver's of the same estimators."""
        part, stem = place.path.relative_to(SOURCE).parts[0].removesuffix(".py"), place.path.stem
        texts = {f"tests/{path.name}": path.read_text("utf-8") for path in TESTS}
        files = {name.split("::")[0] for name in quick} | {n for n in texts if part in texts[n]}
        estimators = {
            name.split("-")[-2] for name in quick if name.startswith(f"{DRIVER}::test_property")
        }

        def is_chosen(name):
            if name in self.times or name in self.failed:
                return False
            if name.startswith(f"{DRIVER}::test_property"):
                estimator = name.split("-")[-2]
                return estimator in estimators or estimator.lower().startswith(part)
            return name.split("::")[0] in files

        def distance(name):
            text = texts.get(name.split("::")[0], "")
            return DRIVER in name, stem not in name, part not in name, stem not in text

        chosen = filter(is_chosen, self.items)
        return sorted(chosen, key=distance)


def copy_into(folder):
    ignored = shutil.ignore_patterns("__pycache__", "_build", "gallery", "generated", "results")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, help="number of mutants")
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", default="", help="part of the path below src/mercerless")
    parser.add_argument("--folder", help="where the first run is kept for other seeds")
    parser.add_argument("--seconds", type=float, default=300.0, help="of quick and of slow tests")
    options = parser.parse_args()
    candidates = list(places(options.only))
    drawn = random.Random(options.seed).sample(candidates, min(options.n, len(candidates)))
    print(f"{len(drawn)} of {len(candidates)} mutants", flush=True)
    os.nice(5)
    with contextlib.ExitStack() as stack:
        folder = Path(options.folder or stack.enter_context(tempfile.TemporaryDirectory()))
        if not (folder / "src").exists():
            copy_into(folder)
        os.chdir(folder)
        paths = [str(folder / "src"), str(folder / "tests")]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.path[:0] = paths
        sys.dont_write_bytecode = True
        sys.exit(pytest.main(OPTIONS, [Mutants(folder, drawn, options.seconds)]))


if __name__ == "__main__":
    main()
