"""Bugs in the learners on hits (leaks, directions, views, weights, numbers, checks) and in landmarks by time."""

from bugs import Bug

HITS = "test_hits.py"
LANDMARKS = "test_landmarks.py"
KIND = "test_hit_kind.py"

BUGS = [
    Bug(
        "hits-sets-forget-groups",
        "stack.out_of_fold, given[stack.held_out], groups",
        "stack.out_of_fold, given[stack.held_out]",
        "test_hits.py -k sets_of_a_model_with_groups",
    ),
    Bug(
        "hits-missing-groups",
        "check_groups(groups, n) group_of = column_or_1d",
        "group_of = column_or_1d",
        "test_hits.py -k missing_groups",
    ),
    Bug(
        "hits-folds-of-used-items",
        "self.cv, every, every, groups=data.all_groups, used=data.used, **options",
        "self.cv, targets, targets, groups=data.groups, **options",
        "test_hits.py -k count_all_items",
    ),
    Bug(
        "hits-unit-of-all-items",
        "if len(used) < n: hits = csr_array(hits[used][:, used])",
        "whole = hits\n        hits = csr_array(hits[used][:, used])\n"
        "        _unit_of = lambda _, kind: float(np.median(whole.data))",
        "test_hits.py -k without_weight_do_not_count",
    ),
    Bug(
        "hits-own-label-comes-back",
        "            returned[view] = [_returning(P, step)[:, None] * self.ballots.sums for step in steps]",
        "            returned[view] = [0.0 * self.ballots.sums for step in steps]",
        f"{HITS} -k 'own_label or against_dense'",
    ),
    Bug(
        "hits-returning-without-transpose",
        "P.multiply(csr_array(Q.T)).sum(axis=1)",
        "P.multiply(csr_array(Q)).sum(axis=1)",
        f"{HITS} -k against_dense",
    ),
    Bug(
        "hits-held-out-columns-not-turned",
        "return ItemHits.of(rows, csr_array(self.matrix[known][:, items].T))",
        "return ItemHits.of(rows, csr_array(self.matrix[items][:, known]))",
        f"{HITS} -k 'new_items_do or better_than_one'",
    ),
    Bug(
        "hits-reverse-ignored",
        'columns = self._new_hits(reverse, "reverse")',
        'columns = self._new_hits(X, "reverse")',
        f"{HITS} -k 'better_than_one or reverse'",
    ),
    Bug(
        "hits-either-is-rows",
        "either = csr_array(rows + columns)",
        "either = csr_array(rows + rows)",
        f"{HITS} -k 'new_items_do or against_dense'",
    ),
    Bug(
        "hits-worst-are-best",
        'order = np.argsort(-S.data, kind="stable")',
        'order = np.argsort(S.data, kind="stable")',
        f"{HITS} -k best_hits",
    ),
    Bug(
        "hits-votes-without-weights",
        "weighted = targets * weight[:, None]\n        mean = weighted.sum",
        "weighted = 1.0 * targets\n        mean = weighted.sum",
        f"{HITS} -k means_of_numbers",
    ),
    Bug(
        "hits-columns-without-weight",
        "return csr_array(_similarities(hits, self.unit_)[:, self.used_])",
        "return csr_array(_similarities(hits, self.unit_)[:, : len(self.used_)])",
        f"{HITS} -k weight_zero",
    ),
    Bug(
        "hits-diagonal-counts",
        "kept = rows != hits.indices",
        "kept = rows >= 0",
        f"{HITS} -k own_hit",
    ),
    Bug(
        "hits-average-knows-the-fold",
        "            scores[:, others], truth[others], held_weight[others], family_of, classify\n",
        "            scores, truth, held_weight, family_of, classify\n",
        f"{HITS} -k weights_from_other_folds",
    ),
    Bug(
        "hits-time-of-one-direction",
        "* n * n_directions * n_compared",
        "* n * n_compared",
        f"{LANDMARKS} -k by_time",
    ),
    Bug(
        "hits-time-of-pursuit",
        'n_compared = 2 if requested.method == "pursuit" else 1',
        "n_compared = 1",
        f"{LANDMARKS} -k by_time",
    ),
    Bug(
        "hits-all-when-dearer",
        "fits and n - 1 <= 2 * n_compared",
        "fits and n - 1 <= 3 * n_compared",
        f"{LANDMARKS} -k cheaper",
    ),
    Bug(
        "hits-silent-hours",
        "if (self.verbose or is_long) and perf_counter()",
        "if self.verbose and perf_counter()",
        f"{LANDMARKS} -k show_their_progress",
    ),
    Bug(
        "hits-distances-as-scores",
        '    if trend >= 0:\n        return "similarity"\n',
        '    if trend >= -1:\n        return "similarity"\n',
        f"{KIND} -k 'nearest or within'",
    ),
    Bug(
        "hits-removed-diagonal-is-zero",
        'if diagonal == "smallest" and trend == 0 and not _are_links(hits):',
        'if diagonal == "smallest" and not _are_links(hits):',
        f"{KIND} -k cosines",
    ),
    Bug(
        "hits-trend-upside-down",
        "        values = hits.data[entries][is_other]\n",
        "        values = -hits.data[entries][is_other]\n",
        f"{KIND} -k 'trend_against or cosines'",
    ),
]
