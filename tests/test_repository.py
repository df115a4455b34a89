"""The repository: who imports whom, public names and their documentation, what is packed."""

import ast
import contextlib
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from test_properties import public_values

import mercerless

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(mercerless.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
METHODS = {"krein", "hyper", "dank", "asymmetric", "lab"}
FRONT = {"comparison", "commands", "cli"}  # they use the library; nothing in it uses them
OPTIONAL = "aeon dask distributed jinja2 matplotlib pandas pyarrow rapidfuzz rich skops skrub"


def run_python(code, **options):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, **options)


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def imports_of(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def may_import(module, target):
    """Whether one of our modules may import another, both named from below the package."""
    room, other = module.partition(".")[0], target.partition(".")[0]
    if room in FRONT | {"__init__"} or room == other:
        return True
    if room in METHODS and other in METHODS:
        return target.endswith(".estimators")  # a method uses the public estimators of another
    if room in {"core", "kernels", "spectra", "lowrank"}:
        return other in {"core", "kernels", "spectra", "lowrank"}
    return other not in FRONT


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports(path):
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name in imports_of(ast.walk(tree)):
        if name.startswith("mercerless."):
            assert may_import(module, name.removeprefix("mercerless.")), f"{module}: {name}"
        assert not re.match(r"sklearn\.(.*\.)?_", name), f"{module} imports the private {name}"
    names = [module, *(name.removeprefix("mercerless.") for name in imports_of(tree.body))]
    loaded = {name.split(".")[0] for name in names}
    if "comparison" in loaded:  # its door asks for pandas before it is imported
        loaded -= {"pandas"}
    assert not loaded & set(OPTIONAL.split()), "import optional packages where they are used"


def test_public_names_are_frozen():
    listed = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
    assert sorted(mercerless.__all__) == listed, "say so in CHANGES.md, then update the list"
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert sorted(node.names[0].name for node in imports) == listed, "editors read __init__.pyi"


def test_importing_the_package_loads_nothing_else():
    code = "import sys, mercerless; print('numpy' in sys.modules, 'sklearn' in sys.modules)"
    assert run_python(code).stdout.split() == ["False", "False"]
    with pytest.raises(AttributeError, match="no attribute 'Kreinridge'"):
        _ = mercerless.Kreinridge


def public_things():
    """Public classes and functions by name, also those of public modules."""
    things = list(public_values())
    for module in filter(inspect.ismodule, list(things)):
        with contextlib.suppress(ImportError):  # of a package that is missing
            things += [getattr(module, name) for name in module.__all__]
    return {t.__qualname__: t for t in things if inspect.isclass(t) or inspect.isfunction(t)}


PUBLIC = public_things()


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_docstrings(name):
    """Public classes and functions document their parameters, methods say what they do."""
    docscrape = pytest.importorskip("numpydoc.docscrape")
    thing = PUBLIC[name]
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        methods = [m for key, m in inspect.getmembers(thing, inspect.isfunction) if key[0] != "_"]
        ours = [m for m in methods if m.__module__.startswith("mercerless")]
        assert not [m.__name__ for m in ours if not inspect.getdoc(m)]
        if issubclass(thing, (tuple, Exception)) or thing.__init__ is object.__init__:
            return
    sections = docscrape.NumpyDocString(inspect.getdoc(thing))
    names = ", ".join(item.name for item in sections["Parameters"]).replace("*", "")
    documented = {part.strip() for part in names.split(",")}
    missing = set(inspect.signature(thing).parameters) - documented - {"args", "kwargs"}
    assert not missing or not sections["Parameters"], f"undocumented: {missing}"


def test_every_extra_that_a_message_names_exists():
    named = set()
    for path in MODULES:
        named |= set(re.findall(r"extra=\"(\w+)\"", path.read_text(encoding="utf-8")))
    assert named and named <= set(PROJECT["optional-dependencies"])


def test_the_version_is_said_alike():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = re.search(r"^version: (\S+)$", citation, re.M)[1]
    assert mercerless.__version__ == PROJECT["version"] == version


def test_every_package_has_a_license_in_the_list():
    names = list(PROJECT["dependencies"])
    for extra in ("plot", "cli", "strings", "series", "table", "dask", "skops"):
        names += PROJECT["optional-dependencies"].get(extra, [])
    packages = {Requirement(line).name for line in names} - {"mercerless"}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w, -]+) \| \w* ?\| [\w.-]+ \|", text, re.M)
    assert packages <= {name for row in rows for name in row.split(", ")}


def test_no_path_of_a_machine_in_the_tree():
    text_files = {".py", ".md", ".toml", ".yaml", ".yml", ".cff", ".csv", ""}
    for name in tracked_files():
        path = ROOT / name
        if path.suffix in text_files and path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert not re.search(r"(?<![\w.])/(work|root|home)/\w", text), name


def test_sdist_has_every_tracked_file_that_is_not_hidden(tmp_path):
    pytest.importorskip("hatchling")
    tracked = {name for name in tracked_files() if not name.startswith(".")}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        assert tracked <= {name.partition("/")[2] for name in archive.getnames()}


WITHOUT = """
import sys, pytest
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}.split():
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
sys.exit(pytest.main(["-q", "--co", "-p", "no:cacheprovider", "-p", "no:randomly", "tests"]))
"""


@pytest.mark.slow
def test_tests_are_collected_without_any_extra():
    done = run_python(WITHOUT.format(names=f"{OPTIONAL} openpyxl"), cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.skipif("MERCERLESS_OLDEST" not in os.environ, reason="only for make test-oldest")
def test_minimum_versions_are_what_runs():
    for needed in map(Requirement, importlib.metadata.requires("mercerless")):
        lowest = [s.version for s in needed.specifier if s.operator == ">="]
        if lowest and needed.marker is None:
            installed = importlib.metadata.version(needed.name)
            assert installed in SpecifierSet(f"=={lowest[0]}.*"), f"{needed}: {installed}"
