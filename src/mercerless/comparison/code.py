"""Code to copy: the data, the imports, the estimator, a fit."""

import importlib
from typing import Any

from sklearn import config_context
from sklearn.base import BaseEstimator

from mercerless.comparison.problem import Problem

#: Public modules below which the classes of estimators are looked for.
PUBLIC = ("mercerless", "mercerless.spectra", "mercerless.comparison.baselines")


def code_for(problem: Problem, estimator: BaseEstimator, takes: str) -> str:
    """A script that fits an estimator to the data of a problem."""
    imports = sorted({f"from {home} import {name}" for home, name in classes_of(estimator)})
    with config_context(print_changed_only=True):
        expression = estimator.__repr__(N_CHAR_MAX=10**6)
    lines = [*loading(problem, takes, imports), f"model = {expression}", "model.fit(X, y)"]
    return "\n".join([*sorted(imports), "", *lines])


def loading(problem: Problem, takes: str, imports: list[str]) -> list[str]:
    """Lines that read the data into X and y; what they import is added."""
    if not problem.path:
        if problem.name == "digit shapes":
            imports.append("from mercerless.datasets import load_digit_shapes")
            return ["shapes = load_digit_shapes()", "X, y = shapes.D, shapes.target"]
        shape = "rows of a table" if problem.is_table else "comparisons of all pairs of items"
        return [f"# X: {shape}; y: the labels"]
    imports.append("from mercerless.comparison import read_problem")
    said = {name: value for name, value in problem.options.as_dict().items() if value}
    arguments = "".join(f", {name}={value!r}" for name, value in said.items())
    lines = [f"problem = read_problem({problem.path!r}{arguments})"]
    X = "problem.X" if takes in ("table", "hits") else "problem.matrix"
    if takes == "matrix" and problem.is_directed:
        imports.append("from mercerless.spectra import symmetrize")
        X = f"symmetrize({X})"
    return [*lines, f"X, y = {X}, problem.y"]


def classes_of(value: Any) -> list[tuple[str, str]]:
    """Homes and names of the classes in the representation of an estimator."""
    found = []
    is_named = type(value).__module__.startswith(("mercerless", "sklearn.model_selection"))
    if isinstance(value, BaseEstimator) or is_named:
        found.append((home_of(type(value)), type(value).__name__))
    if isinstance(value, BaseEstimator):
        for inner in value.get_params(deep=False).values():
            found += classes_of(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            found += classes_of(inner)
    return found


def home_of(kind: type) -> str:
    """The public module of a class."""
    for module in PUBLIC:
        if getattr(importlib.import_module(module), kind.__name__, None) is kind:
            return module
    parts = kind.__module__.split(".")
    public = parts[: next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))]
    return ".".join(public)
