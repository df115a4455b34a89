"""The vote of the three best: honest scores, the same predictions as the estimator to copy, recommended by its rule."""

from dataclasses import replace

import numpy as np
import pytest

from mercerless.comparison import scoring
from mercerless.comparison.learners import Terms, select_learners
from mercerless.comparison.problem import make_problem
from mercerless.comparison.records import Record, Task
from mercerless.comparison.result import Comparison, compare
from mercerless.comparison.scoring import make_split
from mercerless.comparison.vote import best_three, chosen_records, joint_vote, vote_records
from mercerless.datasets import load_digit_shapes

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
NOISE = RNG.normal(size=80)
CLASSES = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + 0.7 * NOISE, [-0.5, 0.5])]
THREE = ["dummy", "linear", "neighbors", "ridge-gaussian"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(scoring, "SIZES", replace(scoring.SIZES, parts=()))
        how = {"repeats": 2, "learners": THREE}
        return {
            "classes": compare(X[:60], CLASSES[:60], X_test=X[60:], y_test=CLASSES[60:], **how),
            "numbers": compare(
                X[:60], (X[:, 0] + NOISE)[:60], X_test=X[60:], y_test=(X[:, 0] + NOISE)[60:], **how
            ),
        }


def test_joint_vote():
    predicted = np.array([[0, 0, 2, 1], [1, 0, 1, 2], [1, 2, 0, 1]])
    # two beat the first; where all differ, it decides
    assert joint_vote(predicted, True).tolist() == [1, 0, 2, 1]
    np.testing.assert_allclose(joint_vote(predicted, False), predicted.mean(axis=0))


def test_the_members_of_a_split_are_chosen_by_the_other_splits_of_its_repeat():
    scores = {
        "dummy": [0.9, 0.9],
        "a": [1.0, 0.0],
        "b": [0.5, 0.6],
        "c": [0.4, 0.5],
        "d": [0.3, 0.4],
    }
    records = {
        name: {
            (0, k): Record(Task(name, 0, k), 80, {"accuracy": value})
            for k, value in enumerate(values)
        }
        for name, values in scores.items()
    }
    # a is best on the split that is left out only
    assert best_three(records, [(0, 1)], "accuracy") == ["b", "c", "d"]
    assert best_three(records, [(0, 0)], "accuracy") == ["a", "b", "c"]


@pytest.mark.parametrize("repeat", [0, 1])
def test_the_tested_split_does_not_choose_its_members(found, repeat):
    """A learner that is lucky on the tested items, in this split or in another repeat, must not vote on them."""
    result = found["classes"]
    lucky = result.splits[0]
    good = (
        {lucky} if repeat == lucky[0] else {split for split in result.splits if split[0] == repeat}
    )
    records = {
        name: {
            split: record._replace(scores={"accuracy": 0.5}) for split, record in of_name.items()
        }
        for name, of_name in result._single.items()
    }
    records["lucky"] = {
        split: record._replace(
            scores={"accuracy": 1.0 if split in good else 0.49},
            predicted=(record.predicted + 1) % 3,
        )
        for split, record in records["linear"].items()
    }
    votes = vote_records(result.problem, records, result.splits, "accuracy")["vote"]
    honest = [records[name][lucky].predicted for name in records if name not in ("dummy", "lucky")]
    with_lucky = [records["lucky"][lucky].predicted, *honest[:2]]
    np.testing.assert_array_equal(votes[lucky].predicted, joint_vote(np.array(honest), True))
    # it would have shown
    assert (joint_vote(np.array(with_lucky), True) != votes[lucky].predicted).any()


def test_scores_by_hand(found):
    result = found["classes"]
    for repeat, fold in result.splits:
        others = [(repeat, other) for other in range(5) if other != fold]
        members = best_three(result._single, others, "accuracy")
        votes = np.array([result._single[name][repeat, fold].predicted for name in members])
        record = result.results["vote"][repeat, fold]
        np.testing.assert_array_equal(record.predicted, joint_vote(votes, True))
        assert record.scores["accuracy"] == pytest.approx(
            np.mean(np.equal(record.predicted, record.target))
        )
        assert record.fit_time == sum(
            result._single[name][repeat, fold].fit_time for name in members
        )


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_the_estimator_does_what_was_scored(found, task):
    result = found[task]
    y = CLASSES if task == "classes" else X[:, 0] + NOISE
    model = result.estimator("vote").fit(X[:60], y[:60])
    row = next(row for row in result.table if row["learner"] == "vote")
    assert row["test_score"] == pytest.approx(model.score(X[60:], y[60:]))
    assert [name for name, _ in model.estimators] == result.members
    code = result.code("vote").replace("X, y = ...  # your data", "X, y = data")
    names = {"data": (X[:60], y[:60])}
    exec(code, names)
    np.testing.assert_array_equal(names["estimator"].predict(X[60:]), model.predict(X[60:]))


def test_it_is_recommended_where_no_single_learner_wins(found):
    result = found["numbers"]
    assert (
        not result.has_winner
        and result.recommended == "vote" == result.names[0] == result.table[0]["learner"]
    )
    assert (
        "of the single learners" in result.verdict[0] and "there is no winner" in result.verdict[0]
    )
    assert result.verdict[1].startswith("The vote of the three best is recommended, ")
    assert "vote" not in result.python_command and "vote" not in result.curves
    assert "Vote of the three best" in str(result)


def test_a_winner_needs_no_vote():
    result = compare(
        X, X[:, 0] * X[:, 1], learners=["linear", "neighbors", "ridge-gaussian"], repeats=1
    )
    assert result.has_winner and result.recommended == "ridge-gaussian" and "vote" in result.names
    assert "is better than every other learner compared" in result.verdict[0]


def test_a_vote_that_a_bad_member_spoils_is_not_recommended():
    y = X[:, 0] + 0.3 * np.sin(X[:, 1])
    result = compare(X, y, learners=["dummy", "linear", "svm-gaussian", "neighbors"], repeats=1)
    assert result.recommended == result._ranked[0] != "vote"


def test_no_vote_where_there_is_nothing_to_choose_or_a_stack_of_its_own():
    shapes = load_digit_shapes(60)
    assert not compare(X, CLASSES, learners=["dummy", "linear", "neighbors"], repeats=1).members
    matrix = compare(
        shapes.D, shapes.target % 2, learners=["neighbors", "krein-ridge", "svm-clip"], repeats=1
    )
    assert not matrix.members and matrix.recommended == matrix._ranked[0]


def made_up(wrong):
    """A comparison on 80 items of two classes of learners that are wrong on these items, by name."""
    y = np.arange(80) % 2
    problem = make_problem(X, y)
    learners = select_learners(problem, list(wrong))[0]
    records = []
    for fold in range(5):
        test = make_split(problem, 0, fold, 0)[1]
        for name, items in wrong.items():
            is_wrong = np.isin(test, items)
            predicted = np.where(is_wrong, 1 - y[test], y[test])
            score = {"accuracy": float(np.mean(~is_wrong))}
            task = Task(name, 0, fold)
            records.append(Record(task, 64, score, target=y[test], predicted=predicted))
    return Comparison(Terms(problem, "accuracy"), learners, records)


def test_a_learner_far_ahead_is_not_outvoted_by_the_next_two():
    """As on monks1: 95 % alone, 84 % with two that are wrong together, and too few items for a winner."""
    together = np.arange(20, 34)
    wrong = {"table": np.arange(4), "linear": together, "neighbors": together}
    result = made_up({**wrong, "dummy": np.arange(40)})
    assert not result.has_winner
    assert result.recommended == "table" and result.names[1:2] != ["table"]
    assert "there is no winner" in result.verdict[0]
    assert not any(
        sentence.startswith("The vote of the three best is") for sentence in result.verdict
    )


def test_a_learner_that_is_ahead_by_luck_is_outvoted():
    """Each of three is wrong on other items: whoever is chosen by some splits is not better on the next one."""
    wrong = {"table": np.arange(8), "linear": np.arange(8, 18), "neighbors": np.arange(18, 28)}
    result = made_up({**wrong, "dummy": np.arange(40)})
    assert result.recommended == "vote"


def test_three_learners_without_a_mistake_need_no_vote():
    result = made_up({"linear": [], "neighbors": [], "table": [], "dummy": np.arange(40)})
    assert not result.has_winner and result.recommended == "neighbors"


def test_what_a_choice_is_worth_is_scored_by_splits_that_had_no_say():
    records = made_up({"linear": [0], "neighbors": [1], "table": [2]})._single
    splits = [(0, fold) for fold in range(5)]
    for fold, split in enumerate(splits):
        for name, of_name in records.items():
            lucky = fold if name == "table" else -1
            of_name[split] = of_name[split]._replace(scores={"accuracy": 0.5})
            if lucky == 2:
                of_name[split] = of_name[split]._replace(scores={"accuracy": 1.0})
    records["linear"][0, 0] = records["linear"][0, 0]._replace(scores={"accuracy": 0.9})
    chosen = chosen_records(records, splits, "accuracy")
    # by the others, the table learner is best, but on the split that made it so
    assert chosen[0, 1].task.learner == "table" and chosen[0, 2].task.learner == "linear"
