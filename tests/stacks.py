"""Families of the automatic stack with any settings, for tests."""

from copy import copy

import numpy as np

from mercerless.similarity.directions import row_families, with_rows
from mercerless.similarity.families import Comparisons, all_settings, default_families, fit_members


def with_settings(families, settings):
    """The families that these settings name, with these settings in place of their own."""
    chosen = []
    for family in families:
        names = {setting.family for setting in family.settings}
        family = copy(family)
        family.settings = tuple(setting for setting in settings if setting.family in names)
        if family.settings:
            chosen.append(family)
    assert sorted(all_settings(chosen)) == sorted(settings)
    return chosen


def fit_settings(train, Y, settings, weight=None, families=None):
    """Any settings fitted on the comparisons of training items with each other."""
    weight = np.ones(len(Y)) if weight is None else weight
    families = default_families() if families is None else families
    return fit_members(train, Y, with_settings(families, settings), weight)


def scores_of_settings(members, settings, new):
    """Scores in the order of the settings."""
    scores = members.scores(new)
    order = [members.settings.index(setting) for setting in settings]
    return scores[order]


def rows_only(rows):
    """Comparisons whose mean of both directions does not matter."""
    return with_rows(
        Comparisons(rows.out, np.zeros(len(rows.out)), np.zeros(rows.out.shape[1])), rows
    )


def fit_rows(rows, Y, settings, weight):
    """Any settings of families on rows."""
    families = row_families(rows.back is not None)
    return fit_settings(rows_only(rows), Y, settings, weight, families)
