"""Random mutants of the source: how many of them do the tests notice?

    python tests/mutants.py N SEED [--only PART] [--jobs 2] [--limit SECONDS]

N places are drawn uniformly among all comparisons, arithmetic, constants, arguments, conditions and statements of src
and changed one at a time in a temporary copy. Tests named like the module or importing it run first, then those of its
users. A mutant is killed when one fails; survivors are printed: each is either equivalent or a missing test.
"""

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mercerless"
COPIED = ["src", "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CONTRIBUTING.md"]
PAIRS = "Lt LtE  Gt GtE  Eq NotEq  Is IsNot  In NotIn  Add Sub  Mult Div  BitAnd BitOr"
PAIRS = [pair.split() for pair in PAIRS.split("  ")]
OPERATORS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
OPERATORS |= {"Pow": "Mult", "FloorDiv": "Mult", "Mod": "Add"}
WORDS = {"warn", "print", "import_optional"}  # calls whose arguments are said to people
GENERAL = ("test_properties.py", "test_contract.py")  # they run every estimator


class Place(NamedTuple):
    """One possible change: a file, the position of the node among its changeable nodes, and the kind of change."""

    path: Path
    index: int
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
            yield from (
                Place(path, i, kind) for i, node in enumerate(nodes) for kind in kinds_of(node)
            )


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


def name_of(path):
    return ".".join(["mercerless", *path.relative_to(SOURCE).with_suffix("").parts])


class Tests:
    """Which files of tests to run for a module, the nearest first."""

    def __init__(self):
        self.texts = {p.name: p.read_text(encoding="utf-8") for p in ROOT.glob("tests/test_*.py")}
        self.users = {}
        for path in SOURCE.rglob("*.py"):
            for name in re.findall(r"from (mercerless[\w.]*) import", path.read_text("utf-8")):
                self.users.setdefault(name, set()).add(name_of(path))

    def distance(self, name, path, near):
        text, stem = self.texts[name], path.stem
        if stem in name or re.search(rf"\b{re.escape(name_of(path))}\b", text):
            return 0
        if path.relative_to(SOURCE).parts[0].removesuffix(".py") in name:
            return 1
        return 2 if any(re.search(rf"\b{re.escape(user)}\b", text) for user in near) else 3

    def of(self, path):
        near = self.users.get(name_of(path), set())
        near = near | {user for name in near for user in self.users.get(name, set())}
        distances = {name: self.distance(name, path, near) for name in self.texts}
        order = sorted(distances, key=lambda name: (distances[name], name))
        nearest = [name for name in order if distances[name] < 3]
        return nearest + [name for name in GENERAL if name in self.texts.keys() - nearest]


def run(folder, names, limit, *options):
    """The exit code of pytest and what it prints; the code is None if the limit is reached."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "no:randomly", "--timeout=60", *options, *(f"tests/{name}" for name in names)]
    paths = os.pathsep.join([str(folder / "src"), str(folder / "tests")])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=limit)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0], None


def copied(folder):
    ignored = shutil.ignore_patterns(
        "__pycache__", "_build", "gallery", "generated", "results", "runs"
    )
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)


def is_killed(place, names, failing, limit):
    """Whether a test fails on the mutant that passes without it, and which."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        copied(folder)
        text, described = mutant(place)
        (folder / place.path.relative_to(ROOT)).write_text(text, encoding="utf-8")
        without = [f"--deselect={name}" for name in failing]
        output, code = run(folder, names, limit, "-x", *without)
    if code not in (0, 1, 2, None):  # 2: a module can no longer be imported
        raise RuntimeError(f"pytest ended with {code}:\n{output[-2000:]}")
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    by = found[1] if found else "the limit of time" if code is None else "nothing"
    print(f"{'killed  ' if code else 'SURVIVED'} {described}   by {by}", flush=True)
    return bool(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, help="number of mutants")
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", default="", help="part of the path below src/mercerless")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a mutant")
    options = parser.parse_args()
    candidates = list(places(options.only))
    drawn = random.Random(options.seed).sample(candidates, min(options.n, len(candidates)))
    tests = Tests()
    names = {place: tests.of(place.path) for place in drawn}
    needed = sorted({name for listed in names.values() for name in listed})
    output, _ = run(ROOT, needed, None, "-n", str(options.jobs))
    failing = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    print(
        f"{len(drawn)} of {len(candidates)} mutants; {len(failing)} tests fail without any",
        flush=True,
    )

    def try_one(place):
        return is_killed(place, names[place], failing, options.limit)

    with ThreadPoolExecutor(options.jobs) as pool:
        killed = list(pool.map(try_one, drawn))
    print(f"{sum(killed)} of {len(drawn)} killed ({100 * sum(killed) / len(drawn):.0f} %)")


if __name__ == "__main__":
    main()
