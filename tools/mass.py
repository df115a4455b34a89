"""How much code there is: lines and syntax nodes per folder; fails if the library outgrew the number in pyproject.toml.

A line is a line of code, without docstrings, comments and blank lines. A node is a node of the syntax tree, without
annotations and docstrings. A commit that needs more nodes raises `tool.mass.nodes` and says why.
"""

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class WithoutAnnotations(ast.NodeTransformer):
    """Removes annotations, which cost a reader little."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Name("annotation", ast.Load())
        self.generic_visit(node)
        return node


def measure(path: Path) -> Counter:
    """Lines and nodes of one file."""
    text = path.read_text()
    tree = ast.parse(text)
    docstrings: set[int] = set()
    n_docstrings = 0
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            n_docstrings += 1
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = [line.strip() for i, line in enumerate(text.splitlines(), 1) if i not in docstrings]
    n_lines = sum(bool(line) and not line.startswith("#") for line in lines)
    n_nodes = sum(1 for _ in ast.walk(WithoutAnnotations().visit(tree))) - 2 * n_docstrings
    return Counter(lines=n_lines, nodes=n_nodes)


def main() -> int:
    """Print the table; 1 if there are more nodes than written down."""
    package = ROOT / "src/mercerless"
    rooms: dict[str, Counter] = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).parts
        rooms.setdefault(parts[0] if len(parts) > 1 else "(top)", Counter()).update(measure(path))
    total = sum(rooms.values(), Counter())
    for name, sums in [*sorted(rooms.items()), ("library", total)]:
        print(f"{name:12} {sums['lines']:6} lines {sums['nodes']:7} nodes")
    most = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mass"]["nodes"]
    if total["nodes"] <= most:
        return 0
    print(
        f"The library has {total['nodes']} nodes, more than the {most} in pyproject.toml: make it "
        "smaller, or raise tool.mass.nodes in the commit and say why."
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
