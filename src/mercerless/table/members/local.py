"""Machines on few support points with local bandwidths: one candidate per form."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from mercerless.lab.model import Expansion
from mercerless.lab.selection import LocalLearner, Validated
from mercerless.lab.support import fold_supports
from mercerless.table.members.candidate import Candidate, Contest


class LocalMachines:
    """The machines of `LABRegressor`; forms after the first race against the one before."""

    def candidates(self, contest: Contest, tried: Sequence[Candidate]) -> list[Candidate]:
        supports = fold_supports(contest.rows, contest.folds, contest.settings)
        candidates = []
        rival = None
        for form in contest.forms:
            learner = LocalLearner(form, contest.settings, contest.report)
            if contest.folds:
                rival = learner.validate(contest.rows, contest.folds, supports, rival)
                validated = rival
            else:
                validated = learner.without_validation(contest.rows)
            candidates.append(
                Candidate(
                    name=form,
                    out_of_fold=validated.predictions,
                    refit=partial(self._refit, contest, learner, validated),
                    scales=list(learner.shared),
                    curve=np.array(validated.curve).reshape(-1, 2),
                    objective=validated.loss[-1] if len(validated.loss) else np.inf,
                )
            )
        return candidates

    @staticmethod
    def _refit(contest: Contest, learner: LocalLearner, validated: Validated) -> Expansion:
        _, model = learner.finish(
            validated, contest.rows, contest.blocks, contest.held, contest.total
        )
        return model
