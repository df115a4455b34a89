"""An estimator as code to copy."""

from collections.abc import Iterator

from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier, VotingRegressor

import mercerless
from mercerless.comparison.learners import Learner
from mercerless.comparison.problem import Problem


def code_for(problem: Problem, learner: Learner, estimator: BaseEstimator) -> str:
    """Return a program that loads the data, in the form that `learner` takes, fits `estimator` and predicts."""
    loading = problem.loading
    preparation = []
    if problem.items is not None and "read_problem(" not in loading:
        similarity = problem.similarity
        name = similarity.__name__ if callable(similarity) else repr(similarity)
        loading = loading.replace("X, y", "items, y")
        preparation.append(
            f"X = item_similarities(items, items, {name})  # new items: the rows of new, items"
        )
    if (
        any(guess.what == "missing entries" for guess in problem.guesses)
        and "read_problem(" not in loading
    ):
        preparation.append("X = fill_gaps(X).X")
    is_mixed = problem.preprocessor is not None
    if is_mixed and "read_problem(" not in loading:
        preparation.append(f"X = coerce(X, {problem.roles})  # the columns in use, new items too")
    if problem.others:
        preparation.append(_choose_matrix(problem, learner, "read_problem(" in loading))
    if problem.asymmetry and learner.takes in ("symmetric", "distances"):
        preparation.append("X = symmetrize(X)  # new items: the mean of both directions")
    if problem.kind == "dissimilarity" and learner.takes == "distances":
        preparation.append("X = X - X.min()  # new items: their rows minus the same minimum")
    elif problem.is_matrix and not problem.small_is_like and learner.takes == "distances":
        preparation.append("X = X.max() - X  # new items: the same maximum minus their rows")
    body = "\n".join([loading, *preparation])
    rows = (
        "one row per new item, against the training items"
        if problem.is_matrix
        else "the same columns"
    )
    if learner.takes == "both":
        rows += "; reverse=, as many rows, how the training items see them"
    fit = f"{assignment(estimator)}\nestimator.fit(X, y)\n# estimator.predict(X_new): {rows}"
    return f"{imports_for(body, estimator)}\n\n{body}\n\n{fit}\n"


def _choose_matrix(problem: Problem, learner: Learner, is_read: bool) -> str:
    """Return the line that takes one of several matrices, or all."""
    matrices = "problem.matrices" if is_read else "X"
    if learner.takes == "several":
        return f"X = {matrices}  # new items: a dict of the same names"
    name = learner.takes.removeprefix("matrix ")
    if name not in problem.others:
        name = problem.array
    return f"X = {matrices}[{name!r}]"


def assignment(estimator: BaseEstimator) -> str:
    """Return the lines that make `estimator`; the members of a vote have lines of their own."""
    if not isinstance(estimator, (VotingClassifier, VotingRegressor)):
        return f"estimator = {describe(estimator)}"
    lines = []
    pairs = []
    for name, member in estimator.estimators:
        variable = name.replace("-", "_")
        lines.append(f"{variable} = {describe(member)}")
        pairs.append(f'("{name}", {variable})')
    arguments = f"[{', '.join(pairs)}]"
    if estimator.weights is not None:
        arguments += f", weights={estimator.weights}"
    lines.append(f"estimator = {type(estimator).__name__}({arguments})")
    return "\n".join(lines)


def describe(estimator: BaseEstimator) -> str:
    """Return the constructor call of an estimator, complete and valid."""
    return estimator.__repr__(N_CHAR_MAX=10**6)


def imports_for(body: str, estimator: BaseEstimator) -> str:
    """Return the import lines that `body` and the constructor call need."""
    imports = {
        (public_module(type(inner)), type(inner).__name__) for inner in nested_estimators(estimator)
    }
    helpers = {
        "read_problem(": "mercerless.comparison",
        "coerce(": "mercerless.comparison.columns",
        "item_similarities(": "mercerless.comparison.problem",
        "symmetrize(": "mercerless.spectra",
        "fill_gaps(": "mercerless.core.gaps",
    }
    imports |= {(module, call.rstrip("(")) for call, module in helpers.items() if call in body}
    lines = ["import mercerless"] if "mercerless." in body else []
    return "\n".join(
        [*lines, *(f"from {module} import {name}" for module, name in sorted(imports))]
    )


def nested_estimators(value: object) -> Iterator[BaseEstimator]:
    """Yield an estimator and every estimator or kernel inside it, also in grids and steps."""
    if isinstance(value, BaseEstimator):
        yield value
        for inner in value.get_params(deep=False).values():
            yield from nested_estimators(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from nested_estimators(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from nested_estimators(inner)


def public_module(cls: type) -> str:
    """Return the module to import a class from."""
    names = cls.__module__.split(".")
    if names[0] == "mercerless":
        if names[1] == "comparison":
            return cls.__module__
        is_public = cls.__name__ in mercerless.__all__
        return "mercerless" if is_public else ".".join(names[:2])
    return ".".join(name for name in names if not name.startswith("_"))
