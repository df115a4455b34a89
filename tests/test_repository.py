"""The repository keeps its own rules: who imports whom, documented and frozen public names, commands that exist."""

import ast
import importlib
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import tomllib
from pathlib import Path

import numpydoc.validate
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import mercerless

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(mercerless.__file__).parent  # also that of an installed wheel

# Who may import whom, from the ground up. A folder is a method, a file in it a floor.
GROUND = {
    "core.files",
    "core.memory",
    "core.optional",
    "core.threads",
    "core.validation",
    "core.blocks",
}
MATRICES = {"kernels", "spectra", "lowrank"}
METHODS = {"krein", "hyper", "dank", "asymmetric", "lab"}
AUTOMATIC = {"similarity", "table"}
TOP = {"inspection", "comparison", "commands", "cli", "persistence", "theory", "datasets", ""}
# The floors inside a method; a file may import those on lower floors and on its own.
FLOORS = {
    "solver": 0,
    "tensor": 0,
    "thresholds": 0,
    "linear": 0,
    "quartic": 0,
    "model": 0,
    "support": 0,
    "optimizers": 0,
    "theory": 1,
    "data": 1,
    "selection": 1,
    "machine": 1,
    "stack": 1,
    "families": 1,
    "landmarks": 1,
    "landmark_families": 1,
    "directions": 1,
    "reasons": 1,
    "members": 1,
    "choice": 1,
    "hits": 1,
    "hit_families": 1,
    "timing": 1,
    "hit_kind": 1,
    "hit_stack": 1,
    "nearby": 1,
    "sparse": 2,
    "small": 0,
    "importance": 1,
    "distill": 2,
    "encoding": 1,
    "target": 1,
    "outliers": 1,
    "plan": 1,
    "weighing": 1,
    "spread": 1,
    "fit": 1,
    "base": 2,
    "features": 2,
    "labels": 1,
    "comparisons": 2,
    "several": 2,
    "explaining": 2,
    "embedding": 2,
    "estimators": 2,
    "display": 3,
}
MODULES = sorted(path for path in SOURCE.rglob("*.py"))


def name_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(path):
    """The modules a file imports, ours without the package's name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} uses a relative import"
            # "from mercerless import spectra" imports the module spectra
            yield from (
                [f"mercerless.{alias.name}" for alias in node.names]
                if node.module == "mercerless"
                else [node.module]
            )


def may_import(module, target):
    """Whether one of our modules may import another, both named without the package."""
    room, _, file = module.partition(".")
    other_room, _, other_file = target.partition(".")
    if module == "datasets":
        return False
    if target in GROUND:
        return module not in GROUND or module in ("core.validation", "core.blocks")
    if module in GROUND:
        return False
    if target == "core.display":
        return file == "display" or room == "inspection"
    if room in MATRICES:
        return other_room in MATRICES
    if room == "core":
        return other_room in MATRICES | {"core"}
    if room in METHODS | AUTOMATIC:
        if other_room == room:
            return FLOORS[other_file.split(".")[0]] <= FLOORS[file.split(".")[0]]
        if other_room in METHODS and (room in AUTOMATIC or other_file == "estimators"):
            return True  # of another method, a method uses public estimators only
        return other_room in MATRICES | {"core"}
    if room == "comparison":
        return other_room not in ("commands", "cli")
    if room in ("commands", "cli", ""):
        return True
    return other_room not in ("comparison", "commands", "cli")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_import_directions(path):
    for module in imports_of(path):
        if module == "mercerless" or module.startswith("mercerless."):
            target = module.removeprefix("mercerless").removeprefix(".")
            assert may_import(name_of(path), target), f"{name_of(path)} may not import {module}"
        private = re.match(r"sklearn\.(.*\.)?_", module)
        assert not private, f"{name_of(path)} imports scikit-learn's private {module}"


def test_forbidden_imports_are_noticed():
    forbidden = [
        ("core.memory", "core.validation"), ("core.blocks", "kernels"), ("kernels.base", "core.folds"),
        ("core.folds", "krein.solver"), ("krein.solver", "krein.selection"), ("krein.selection", "hyper.solver"),
        ("krein.estimators", "krein.display"), ("krein.estimators", "table.fit"), ("dank.solver", "core.display"),
        ("similarity.estimators", "comparison"), ("datasets", "core.files"), ("spectra", "core.folds"),
        ("lab.estimators", "table.fit"),
    ]  # fmt: skip
    assert not [pair for pair in forbidden if may_import(*pair)]


@pytest.mark.parametrize("folder", ["benchmarks", "docs/examples"])
def test_benchmarks_and_examples_use_the_public_api(folder):
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
                "mercerless"
            ):
                continue
            if path.name == "krein.py" and node.module == "mercerless.krein.solver":
                continue  # the cost of one gradient, which no estimator gives alone
            if path.name == "compare_statistics.py":
                continue  # the statistics behind a comparison, thousands of times without its learners
            if path.name == "similarity_ideas.py":
                continue  # the scores of all settings, which no estimator gives
            public = importlib.import_module(node.module).__all__
            assert node.module.removeprefix("mercerless.") in ("mercerless", *mercerless.__all__)
            for alias in node.names:
                assert alias.name in public, (
                    f"{path.name} imports {alias.name}, which {node.module} does not offer"
                )


def test_optional_packages_are_imported_where_used():
    optional = {
        "matplotlib",
        "dask",
        "distributed",
        "skops",
        "rich",
        "pandas",
        "pyarrow",
        "rapidfuzz",
    }
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:  # the top level only
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                )
                assert not optional & {name.split(".")[0] for name in names}, (
                    f"{name_of(path)} needs {names} to load"
                )


def test_a_class_name_means_one_thing():
    """Also that of a type, which is an assignment to a name in the style of classes."""
    nodes = [node for path in MODULES for node in ast.parse(path.read_text()).body]
    targets = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    names += [
        name.id
        for name in targets
        if isinstance(name, ast.Name) and re.fullmatch(r"[A-Z]\w*[a-z]\w*", name.id)
    ]
    assert sorted(names) == sorted(set(names))


def privates_of_others(source):
    """Uses of a private name on anything but self, cls, super(), or what the function makes of its own class."""
    uses = []
    for function in [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
    ]:
        own = {"self", "cls", "super()", "type(self)"}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(
                ("type(self)(", "clone(self)")
            ):
                own |= {ast.unparse(target) for target in node.targets}
        for node in ast.walk(function):
            named = isinstance(node, ast.Attribute) and re.fullmatch(r"_[a-z]\w*", node.attr)
            if (
                named
                and node.attr not in ("_replace", "_asdict", "_fields")
                and ast.unparse(node.value) not in own
            ):
                uses.append(ast.unparse(node))
    return uses


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*/estimators.py")), ids=name_of)
def test_no_estimator_uses_the_privates_of_another(path):
    assert privates_of_others(path.read_text()) == []


def test_a_private_of_another_is_noticed():
    code = "def fit(self, model):\n    copy = clone(self)\n    copy._fit()\n"
    code += "    self._a._b(model._fit_one, type(self)._c)"
    assert sorted(privates_of_others(code)) == ["model._fit_one", "self._a._b"]


def test_no_module_imports_the_privates_of_another():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mercerless."):
                folder = SOURCE.joinpath(
                    *node.module.split(".")[1:]
                )  # of a package, whose modules may be private
                names = [
                    alias.name for alias in node.names if not (folder / f"{alias.name}.py").exists()
                ]
                private = [name for name in names if name.startswith("_")]
                assert not private, f"{name_of(path)} imports {private} from {node.module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_arrays_are_annotated_in_one_way(path):
    tree = ast.parse(path.read_text())
    annotated = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.arg | ast.AnnAssign | ast.FunctionDef)
    ]
    hints = [
        node.returns if isinstance(node, ast.FunctionDef) else node.annotation for node in annotated
    ]
    others = [
        ast.unparse(hint)
        for hint in hints
        if hint is not None and "np.ndarray" in ast.unparse(hint)
    ]
    assert not others, f"{name_of(path)} says np.ndarray for NDArray in {others}"


def public_objects():
    """Public classes, functions, and the methods and properties defined on our classes."""
    modules = [mercerless] + [
        importlib.import_module(f"mercerless.{name}")
        for name in mercerless.__all__
        if inspect.ismodule(getattr(mercerless, name))
    ]
    seen = {}
    for module in modules:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.ismodule(thing) or not getattr(thing, "__module__", "").startswith(
                "mercerless"
            ):
                continue
            path = f"{thing.__module__}.{thing.__qualname__}"
            seen[path] = thing
            if inspect.isclass(thing):
                seen |= public_members(thing)
    return seen


ESTIMATORS = r"mercerless\.(core|krein|hyper|dank|asymmetric|lab|similarity|table)\."


def public_members(cls):
    """Methods and properties that are written in a class, and for estimators those that it inherits from ours."""
    return {
        f"{base.__module__}.{base.__qualname__}.{name}": getattr(base, name)
        for base in cls.__mro__
        if base is cls or re.match(ESTIMATORS, base.__module__)
        for name, value in vars(base).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }


# Sections and sentence forms we ask for; codes of numpydoc.validate that we do not: summaries may be noun phrases
# over one line, and short methods need no extended summary, See Also or Examples.
IGNORED = {
    "GL01",
    "GL02",
    "GL03",
    "ES01",
    "SA01",
    "SA04",
    "EX01",
    "SS03",
    "SS05",
    "SS06",
    "RT02",
    "RT03",
    "YD01",
    "GL08",
    "PR08",
    "PR09",
    "RT04",
    "RT05",
    "PR06",
    "PR02",
}


@pytest.mark.parametrize("path", sorted(public_objects()))
def test_docstrings(path):
    thing = public_objects()[path]
    assert inspect.getdoc(thing), f"{path} has no docstring"
    own = thing.fget.__doc__ if isinstance(thing, property) else thing.__doc__
    if own is None:  # inherited, and checked where it is written
        return
    ignored = (
        IGNORED | {"PR01"} if inspect.isclass(thing) and issubclass(thing, tuple) else IGNORED
    )  # has Attributes
    if "." not in getattr(
        thing, "__qualname__", "."
    ):  # a class or a function of a module, not a method
        ignored = ignored - {"EX01"}
    errors = [
        f"{code}: {text}"
        for code, text in numpydoc.validate.validate(path)["errors"]
        if code not in ignored
    ]
    assert not errors, errors


def test_public_names_are_frozen():
    listed = (ROOT / "tests" / "public_names.txt").read_text().split()
    found = sorted(mercerless.__all__)
    assert found == listed, (
        "public names changed: say so in CHANGES.md, then update tests/public_names.txt"
    )


def test_importing_the_package_loads_nothing_else():
    code = "import sys, mercerless; print([name for name in sys.modules if name.startswith(('numpy', 'sklearn'))])"
    code += "; mercerless.KreinRidge; import mercerless.cli; print('numpy' in sys.modules, dir(mercerless))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert (
        first == "[]"
        and second.startswith("True")
        and all(repr(name) in second for name in mercerless.__all__)
    )
    with pytest.raises(AttributeError, match="no attribute 'Kreinridge'"):
        _ = mercerless.Kreinridge


@pytest.mark.slow
def test_every_module_can_be_imported_first():
    code = """
        import importlib, pkgutil, sys, mercerless
        modules = pkgutil.walk_packages(mercerless.__path__, "mercerless.")
        for name in [module.name for module in modules if not module.name.endswith("__main__")]:
            for loaded in [name for name in sys.modules if name.startswith("mercerless")]:
                del sys.modules[loaded]
            print(name, flush=True)
            importlib.import_module(name)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    names = done.stdout.split()
    assert done.returncode == 0, (names[-1], done.stderr)
    assert "mercerless.lab.display" in names and len(names) > 100


def test_type_checkers_see_the_names_that_are_loaded_on_use():
    seen = {}
    for node in ast.walk(ast.parse((SOURCE / "__init__.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("mercerless"):
            seen |= {alias.name: node.module for alias in node.names}
    loaded = {name: f"mercerless.{home}" for name, home in mercerless._HOME_OF.items()}
    assert seen == {name: loaded.get(name, "mercerless") for name in mercerless.__all__}


def test_readme_commands_exist():
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)", readme)):
        assert re.search(rf"^{target}:", makefile, re.M), f"README names make {target}"
    for command in set(re.findall(r"`mercerless ([a-z]+)", readme)):
        assert (SOURCE / "commands" / f"{command}.py").exists(), (
            f"README names mercerless {command}"
        )


def test_readme_example_runs():
    """The README's first Python block runs as it is."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-c", blocks[0]], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_no_machine_in_the_tree():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    for name in tracked.stdout.split():
        path = ROOT / name
        if (
            path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".cff", ".csv", ""}
            and path.is_file()
        ):
            text = path.read_text(errors="ignore")
            assert not re.search(r"(?<![\w.])/(work|root|home)/\w", text), (
                f"{name} names a path of some machine"
            )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_name_that_a_message_or_docstring_gives_exists(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for name in re.findall(r"(?<![\w/.-])mercerless(?:\.[A-Za-z_]\w*)+", node.value):
                assert resolves(name), (
                    f"{path.name}:{node.lineno} names {name}, which does not exist"
                )


def resolves(name):
    """Whether a dotted name is a module, or an attribute of one that can be reached by its parents."""
    found = mercerless
    for i, part in enumerate(parts := name.split(".")[1:]):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(["mercerless", *parts[: i + 1]]))
            except ImportError:
                return False
    return True


def test_a_name_that_does_not_exist_is_noticed():
    assert resolves("mercerless.spectra.SpectrumTransformer") and resolves("mercerless.cli.main")
    assert not resolves("mercerless.SpectrumTransformer") and not resolves(
        "mercerless.kernels.Nonsense"
    )


def test_sdist_has_every_tracked_file_that_is_not_hidden(tmp_path):
    pytest.importorskip("hatchling")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        name
        for name in tracked.stdout.split()
        if not name.startswith(".") and (ROOT / name).exists()
    }
    assert wanted <= packed


def test_the_version_is_said_alike():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    citation = re.search(
        r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M
    )[1]
    assert mercerless.__version__ == project == citation
    assert f"## {project}" in (ROOT / "CHANGES.md").read_text(encoding="utf-8")


def test_every_runtime_package_has_a_license_and_a_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra in ("plot", "cli", "strings", "table", "dask", "skops"):
        lines += project["optional-dependencies"][extra]
    names = {Requirement(line).name for line in lines} - {"mercerless"} | {
        "package"
    }  # the head of the table
    rows = re.findall(
        r"^\| ([\w, -]+) \| \w* ?\| [\w.-]+ \|",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.M,
    )
    assert names == {name for row in rows for name in row.split(", ")}


def test_messages_name_extras_that_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    named = {}
    for path in SOURCE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "import_optional":
                given = {word.arg: word.value for word in call.keywords} | dict(
                    zip(("name", "extra"), call.args)
                )
                named[given["extra"].value] = path.name
    assert named and not named.keys() - extras.keys(), f"there is no such extra: {named}"


@pytest.mark.skipif("MERCERLESS_OLDEST" not in os.environ, reason="only for make test-oldest")
def test_minimum_versions_are_what_runs():
    ours = ["", "plot", "cli", "strings", "table", "dask", "skops", "test"]
    requirements = [Requirement(line) for line in importlib.metadata.requires("mercerless")]
    for needed in requirements:
        applies = needed.marker is None or any(
            needed.marker.evaluate({"extra": extra}) for extra in ours
        )
        lowest = [s.version for s in needed.specifier if s.operator == ">="]
        if applies and lowest:
            installed = importlib.metadata.version(needed.name)
            assert Version(installed) in SpecifierSet(f"=={lowest[0]}.*"), (
                f"{needed} does not resolve: {installed}"
            )
