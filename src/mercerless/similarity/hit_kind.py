"""Whether stored hits are similarities or distances, inferred without labels."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import rankdata

from mercerless.core.validation import check_option, warn


@dataclass(frozen=True)
class KindRules:
    """When entries of hits count as distances.

    Chosen on graphs of nearest neighbors, of neighbors within a radius, of cosines above a threshold, of alignment
    scores and of counts: distances have mean correlations of -.08 to -.98, similarities of .15 to .99.
    """

    #: Rows that are used, evenly spaced.
    rows: int = 1000
    #: Fewest hits of a row for a correlation of entries and common hits.
    fewest_hits: int = 3
    #: Mean rank correlation that counts, and by how many standard errors it must differ from 0.
    correlation: float = 0.05
    errors: float = 4.0


RULES = KindRules()


def kind_of_hits(hits: csr_array, kind: str) -> str:
    """The kind as given, or for ``"auto"`` the kind that is inferred from the stored entries.

    There are two tests. Entries on the diagonal, if most rows have one: is an item more like itself than like its
    hits? And the trend: like items have common hits, so that similarities are large, and distances small, for hits
    with many common hits. Zeros on the diagonal alone do not decide, since they also remain if the diagonal of
    similarities is removed. Entries that are all the same are links, which are similarities.

    ==================  =====================  =======================================
    diagonal            entries and common     kind
    ==================  =====================  =======================================
    not the smallest    do not fall            similarity
    not stored          fall                   distance, with a warning
    smallest            fall                   distance
    smallest            grow, or all equal     similarity
    smallest            neither                raises
    largest             fall                   raises
    ==================  =====================  =======================================
    """
    check_option("kind", kind, ("auto", "similarity", "distance"))
    if kind != "auto":
        return kind
    trend = trend_with_common_hits(hits)
    diagonal = _place_of_diagonal(hits)
    if diagonal == "largest" and trend < 0:
        raise ValueError(
            "X is largest on the diagonal, as similarities are, but smaller for hits that have "
            "more hits in common, as distances are; set kind='similarity' or kind='distance'."
        )
    if diagonal == "smallest" and trend == 0 and not _are_links(hits):
        raise ValueError(
            "X is smallest on the diagonal, as distances are, or similarities whose diagonal was "
            "removed; set kind='distance' or kind='similarity'."
        )
    if trend >= 0:
        return "similarity"
    if diagonal == "absent":
        warn(
            "The entries of X are smaller for hits that have more hits in common, so they are "
            "taken as distances; set kind='distance' if that is right, or kind='similarity'."
        )
    return "distance"


def trend_with_common_hits(hits: csr_array) -> int:
    """1 if entries clearly grow with the share of hits that two items have in common, -1 if they fall, else 0.

    Mean over rows of the rank correlation of a row's entries with the numbers of common hits, each divided by the root
    of the number of hits that the other item has.
    """
    n = hits.shape[0]
    links = csr_array((np.ones(hits.nnz), hits.indices, hits.indptr), hits.shape)
    n_hits = np.diff(hits.indptr)
    correlations = []
    for row in np.unique(np.linspace(0, n - 1, min(n, RULES.rows)).astype(int)):
        entries = slice(hits.indptr[row], hits.indptr[row + 1])
        is_other = hits.indices[entries] != row
        others = hits.indices[entries][is_other]
        values = hits.data[entries][is_other]
        if len(others) < RULES.fewest_hits:
            continue
        is_hit = np.zeros(n)
        is_hit[others] = 1.0
        n_common = links[others] @ is_hit
        shares = n_common / np.sqrt(np.maximum(n_hits[others], 1))
        if np.ptp(values) > 0.0 and np.ptp(shares) > 0.0:
            ranks = np.corrcoef(rankdata(values), rankdata(shares))
            correlations.append(ranks[0, 1])
    if len(correlations) < RULES.fewest_hits:
        return 0
    mean = float(np.mean(correlations))
    error = float(np.std(correlations, ddof=1)) / np.sqrt(len(correlations))
    if abs(mean) < max(RULES.correlation, RULES.errors * error):
        return 0
    return int(np.sign(mean))


def _place_of_diagonal(hits: csr_array) -> str:
    """Whether most diagonal entries are below or above all others of their rows: "smallest", "largest" or "absent"."""
    n = hits.shape[0]
    rows = np.repeat(np.arange(n), np.diff(hits.indptr))
    is_own = rows == hits.indices
    smallest = np.full(n, np.inf)
    np.minimum.at(smallest, rows[~is_own], hits.data[~is_own])
    largest = np.full(n, -np.inf)
    np.maximum.at(largest, rows[~is_own], hits.data[~is_own])

    has_others = np.isfinite(largest)
    is_judged = is_own & has_others[rows]
    own = hits.data[is_judged]
    of_row = rows[is_judged]
    half = np.sum(has_others) / 2
    if np.sum(own < smallest[of_row]) > half:
        return "smallest"
    if np.sum(own > largest[of_row]) > half:
        return "largest"
    return "absent"


def _are_links(hits: csr_array) -> bool:
    """Whether all entries that are not 0 are the same."""
    stored = hits.data[hits.data > 0.0]
    return len(stored) == 0 or bool(np.ptp(stored) == 0.0)
