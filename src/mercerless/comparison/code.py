"""Code to copy: the data, the imports, the estimator, a fit."""

import importlib

from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from mercerless.comparison.problem import Problem

#: Public modules below which the classes of estimators are looked for.
PUBLIC = ("mercerless", "mercerless.spectra", "mercerless.comparison.baselines")


def code_for(problem: Problem, estimator: BaseEstimator, takes: str) -> str:
    """A script that fits an estimator to the data of a problem."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    kinds = {type(one) for one in parts if isinstance(one, (BaseEstimator, BaseCrossValidator))}
    imports = [f"from {home_of(kind)} import {kind.__name__}" for kind in kinds]
    with config_context(print_changed_only=True):
        expression = estimator.__repr__(N_CHAR_MAX=10**6)
    lines = [*loading(problem, takes, imports), f"model = {expression}", "model.fit(X, y)"]
    return "\n".join([*sorted(set(imports)), "", *lines])


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


def home_of(kind: type) -> str:
    """The public module of a class."""
    for module in PUBLIC:
        if getattr(importlib.import_module(module), kind.__name__, None) is kind:
            return module
    return kind.__module__.partition("._")[0]
