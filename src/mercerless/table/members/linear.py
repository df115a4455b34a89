"""Penalized multinomial logistic regression on the encoded columns, which competes for classes."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mercerless.core.choice import cross_chosen
from mercerless.core.folds import Split
from mercerless.table.members.candidate import Candidate, Contest
from mercerless.table.weighing import Labeled, as_scores


@dataclass(frozen=True)
class LinearLimits:
    """When a linear model competes, and its penalties."""

    #: Rows x features x functions at most.
    work: float = 2e6
    #: Inverse penalties per row, the strongest penalty first; features are scaled.
    inverse_penalties: tuple[float, ...] = tuple(np.logspace(0.0, 4.5, 7))
    #: Its name among the members.
    name: str = "linear"


LIMITS = LinearLimits()


class LinearClasses:
    """Logistic regression of classes, with the penalty of the smallest held-out log-loss."""

    def candidates(self, contest: Contest, tried: Sequence[Candidate]) -> list[Candidate]:
        n, d = contest.rows.X.shape
        n_functions = contest.rows.Y.shape[1]
        if contest.classes is None or not contest.folds or n * d * n_functions > LIMITS.work:
            return []
        if any(len(np.unique(contest.classes[train])) < 2 for train, _ in contest.folds):
            return []
        return [linear_candidate(contest.labeled, contest.folds)]


class Linear(NamedTuple):
    """Log-odds that are linear in the scaled features, as a member of a fitted model.

    Attributes
    ----------
    name : str
        "linear".
    coef : ndarray of shape (n_features, n_functions)
        The slopes.
    intercept : ndarray of shape (n_functions,)
        The constants.
    weight : float
        The weight in the average.
    scaling : callable
        Scales features.
    """

    name: str
    coef: NDArray
    intercept: NDArray
    weight: float
    scaling: Any

    def __call__(self, X: NDArray) -> NDArray:
        """One column per class, or one for two classes: log-odds."""
        Z = X
        if self.scaling is not None:
            Z = self.scaling(X, X.dtype)
        return Z @ self.coef + self.intercept

    def in_units(self, center: NDArray, scale: NDArray) -> "Linear":
        """``scale * self(X) + center``."""
        return self._replace(coef=self.coef * scale, intercept=self.intercept * scale + center)


def linear_path(given: Labeled, inverse_penalties: Sequence[float]) -> list[Linear]:
    """Logistic regressions with these inverse penalties per row; each starts from the one before."""
    place, labels, weight = given.observed
    X = given.rows.X[place]
    n_functions = given.rows.Y.shape[1]
    model = LogisticRegression(warm_start=True)
    path = []
    for inverse in inverse_penalties:
        model.set_params(C=inverse / weight.sum())
        with warnings.catch_warnings():
            # weak penalties compete as far as a hundred steps go
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, labels, sample_weight=weight)
        path.append(_as_member(model, n_functions))
    return path


def _as_member(model: LogisticRegression, n_functions: int) -> Linear:
    """The functions of all classes; one that was not seen is constant, and lower than the others."""
    functions = np.vstack([model.intercept_, model.coef_.T])
    if functions.shape[1] < n_functions:
        if functions.shape[1] == 1:
            functions = as_scores(functions)
        seen = functions
        functions = np.zeros((len(seen), n_functions))
        functions[0] = seen[0].min() - 2.0
        functions[:, model.classes_] = seen
    return Linear(LIMITS.name, functions[1:], functions[0], 1.0, None)


def linear_candidate(known: Labeled, folds: Sequence[Split]) -> Candidate:
    """Logistic regression with the penalty that is best on held-out rows, for those of a fold on the others."""
    predictions = []
    for train, valid in folds:
        path = linear_path(known.take(train), LIMITS.inverse_penalties)
        predictions.append([model(known.rows.X[valid]) for model in path])
    settings = [np.concatenate(of_folds) for of_folds in zip(*predictions)]
    held = known.take(np.concatenate([valid for _, valid in folds]))
    losses = [held.losses(setting) for setting in settings]
    best = int(np.argmin([loss.sum() for loss in losses]))
    chosen = cross_chosen(settings, losses, folds)
    return Candidate(LIMITS.name, chosen, partial(_fit_again, known, best))


def _fit_again(known: Labeled, best: int) -> Linear:
    """The model of all rows with the best of the penalties."""
    return linear_path(known, LIMITS.inverse_penalties[: best + 1])[-1]
