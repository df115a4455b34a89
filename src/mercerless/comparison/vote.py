"""A vote of the learners that came first, for tables without a clear winner.

Which of several indistinguishable learners comes first is chance, and so its score is too good. The vote of
three of them depends less on that chance. It costs nothing: its predictions follow from theirs. Its score is honest,
since the members for a split are chosen by the other splits of the same repeat.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier, VotingRegressor

from mercerless.comparison.learners import Learner, Terms
from mercerless.comparison.problem import Problem
from mercerless.comparison.records import Record
from mercerless.comparison.scoring import scores_of_predictions

VOTE = "vote"
#: Of the three members, the best first: two that agree outvote the first; if all three differ, the first decides.
WEIGHTS = (3, 2, 2)

SplitKey = tuple[int, int]  # repeat and fold
Records = dict[str, dict[SplitKey, Record]]


def best_three(records: Records, splits: Sequence[SplitKey], metric: str) -> list[str]:
    """Return the three learners with the best mean score over `splits`, the best first, without the constant guess."""
    means = {
        name: np.mean([of_name[split].scores[metric] for split in splits])
        for name, of_name in records.items()
        if name != "dummy"
    }
    return sorted(means, key=lambda name: -means[name])[: len(WEIGHTS)]


def other_splits(split: SplitKey, splits: Sequence[SplitKey]) -> list[SplitKey]:
    """Return the splits of the same repeat that test other items."""
    return [other for other in splits if other[0] == split[0] and other != split]


def chosen_records(
    records: Records, splits: Sequence[SplitKey], metric: str
) -> dict[SplitKey, Record]:
    """Return for every split the record of the single learner that is best on the other splits of its repeat.

    Their mean is an unbiased score of choosing the best learner: unlike the score of the learner that came first, it
    does not gain by the choice, so it can be compared with that of the vote.
    """
    chosen = {}
    for split in splits:
        first = best_three(records, other_splits(split, splits), metric)[0]
        chosen[split] = records[first][split]
    return chosen


def vote_records(
    problem: Problem, records: Records, splits: list[SplitKey], metric: str
) -> Records:
    """Return the records of the vote, one per split; none for matrices, or with too few learners or splits."""
    if problem.is_matrix or len(records.keys() - {"dummy"}) < len(WEIGHTS) or not splits:
        return {}
    votes = {}
    for split in splits:
        others = other_splits(split, splits)
        if not others:
            return {}
        members = [records[name][split] for name in best_three(records, others, metric)]
        record = vote_record(problem, metric, members)
        if record is None:
            return {}
        votes[split] = record
    return {VOTE: votes}


def vote_record(problem: Problem, metric: str, members: list[Record]) -> Record | None:
    """Return the record of the vote of three learners on one split; None if the score needs more than classes."""
    first = members[0]
    predicted = joint_vote(
        np.array([member.predicted for member in members]), problem.is_classification
    )
    scores = scores_of_predictions(problem, first.target, predicted, metric)
    if scores is None:
        return None
    return Record(
        first.task._replace(learner=VOTE),
        max(member.n_train for member in members),
        scores,
        fit_time=sum(member.fit_time for member in members),
        predict_time=sum(member.predict_time for member in members),
        size=sum(member.size for member in members),
        converged=all(member.converged for member in members),
        target=first.target,
        predicted=predicted,
    )


def joint_vote(predicted: NDArray, is_classification: bool) -> NDArray:
    """Return the weighted majority of classes given by number, or the mean of numbers, over the rows."""
    if not is_classification:
        return predicted.mean(axis=0)
    return np.array([np.bincount(column, weights=WEIGHTS).argmax() for column in predicted.T])


def vote_learner(members: list[Learner]) -> Learner:
    """Return the vote of the members as a learner that can be built."""

    def build(terms: Terms) -> BaseEstimator:
        estimators = [(member.name, member.make(terms)) for member in members]
        if terms.problem.is_classification:
            return VotingClassifier(estimators, weights=list(WEIGHTS))
        return VotingRegressor(estimators)

    return Learner(VOTE, "Vote of the three best", "vote", build, kind="table", complexity=3)
