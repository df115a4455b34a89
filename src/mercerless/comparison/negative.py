"""Is the negative part of a similarity matrix useful or harmful? Held-out labels decide, not its size.

The words are those of `negative_spectrum_.verdict`: useful, harmful, undecided, absent.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mercerless.core.folds import Split, make_folds
from mercerless.core.threads import one_blas_thread
from mercerless.similarity.estimators import SimilarityClassifier, SimilarityRegressor
from mercerless.similarity.families import Comparisons, Spectral
from mercerless.similarity.stack import out_of_fold_scores, verdict_on
from mercerless.spectra import Indefiniteness, decompose


class NegativePart(NamedTuple):
    """Effect of the negative eigenvalues on held-out predictions.

    ``z`` is the number of standard errors by which the calibrated out-of-fold loss is lower with the negative part,
    as the automatic stack measures it (`SimilarityClassifier.negative_spectrum_`).
    """

    # out-of-fold squared error of a ridge that uses the negative part, relative to that of the mean
    flip_loss: float
    clip_loss: float  # of one that leaves it out
    z: float
    p_value: float  # share of shuffled copies that help as much, by squared error
    n_permutations: int
    n_items: int
    verdict: str  # "useful" or "harmful" if z is beyond 2, else "undecided"
    loss: str = "log-loss"  # whose standard errors z counts


@one_blas_thread()  # many small decompositions: threads would only wait for each other
def judge_negative_part(
    K: NDArray,
    y: NDArray,
    classification: bool,
    random_state: int = 0,
    *,
    n_permutations: int = 39,
    n_folds: int = 5,
    most_items: int = 1000,
    most_shuffled: int = 250,
) -> NegativePart:
    """Compare flip with clip out of fold, and the negative part with shuffled copies of itself.

    Of more than ``most_items`` items, so many are drawn for the first, and ``most_shuffled`` for the second.
    """
    rng = check_random_state(random_state)
    targets = (
        (y[:, None] == np.unique(y)).astype(float) if classification else y[:, None].astype(float)
    )
    K, y, targets = _thin(K, y, targets, most_items, rng)
    folds = make_folds(
        n_folds, K, y, classify=classification, precomputed=True, random_state=random_state
    )
    clip, flip = _out_of_fold(K, targets, folds, ("clip", "flip"))
    base = float(((targets - targets.mean(axis=0)) ** 2).sum(axis=1).mean())
    n_items = len(K)
    automatic = SimilarityClassifier if classification else SimilarityRegressor
    model = automatic(kernel="precomputed", kind="similarity", random_state=random_state)
    z = float(model.fit(K, y).negative_spectrum_.z)
    K, y, targets = _thin(K, y, targets, most_shuffled, rng)
    folds = make_folds(
        n_folds, K, y, classify=classification, precomputed=True, random_state=random_state
    )
    as_good = _count_as_good(K, targets, folds, n_permutations, rng)
    return NegativePart(
        float(flip.mean() / base),
        float(clip.mean() / base),
        z,
        (1 + as_good) / (n_permutations + 1),
        n_permutations,
        n_items,
        verdict_on(z),
        "log-loss" if classification else "squared error",
    )


def _count_as_good(
    K: NDArray, targets: NDArray, folds: list[Split], n_permutations: int, rng
) -> int:
    """How many copies of the negative part that were shuffled among the items predict as well as it does."""
    s, V, _ = decompose(K)
    negative = (V * np.minimum(s, 0.0)) @ V.T
    loss = _out_of_fold(K, targets, folds, ("flip",))[0].mean()
    as_good = 0
    for _ in range(n_permutations):
        order = rng.permutation(len(K))
        shuffled = K - negative + negative[np.ix_(order, order)]
        as_good += bool(_out_of_fold(shuffled, targets, folds, ("flip",))[0].mean() <= loss)
    return as_good


def _thin(K, y, targets, most: int, rng):
    """Keep a random part of the items if there are more than `most`."""
    if len(K) <= most:
        return K, y, targets
    keep = np.sort(rng.choice(len(K), most, replace=False))
    return K[np.ix_(keep, keep)], y[keep], targets[keep]


def _out_of_fold(
    K: NDArray, targets: NDArray, folds: list[Split], modes: tuple[str, ...]
) -> list[NDArray]:
    """Squared error of every held-out item, for each mode at the penalty with the smallest mean."""
    ridge = Spectral()
    ridge = ridge.keep([setting for setting in ridge.settings if setting.family in modes])
    comparisons = Comparisons.of(K)
    weight = np.ones(len(K))
    losses = np.empty((len(ridge.settings), len(K)))
    for split in folds:
        scores = out_of_fold_scores(comparisons, comparisons, targets, [ridge], weight, split)
        losses[:, split[1]] = ((scores - targets[split[1]]) ** 2).sum(axis=2)
    by_mode = losses.reshape(len(modes), -1, len(K))
    return [of_mode[of_mode.mean(axis=1).argmin()] for of_mode in by_mode]


def negative_sentences(spectrum: Indefiniteness, judged: NegativePart | None) -> list[str]:
    """Sentences on whether the negative part of the spectrum is useful, harmful, undecided or absent."""
    if spectrum.is_psd:
        return [
            "The negative part of the spectrum is absent: the similarities are positive "
            "semi-definite, and any kernel machine is sound on them."
        ]
    if judged is None:
        return [
            "The similarities are indefinite; the run ended before the negative part was judged."
        ]
    if round(judged.z, 1) == 0.0:
        amount = f"using it and leaving it out do equally well on held-out labels, by {judged.loss}"
    else:
        better, worse = ("using it", "leaving it out")[:: 1 if judged.z > 0 else -1]
        amount = (
            f"{better} beats {worse} by {abs(judged.z):.1f} standard errors of the {judged.loss} "
            "on held-out labels"
        )
    first = {
        "useful": f"The negative part of the spectrum is useful: {amount}.",
        "harmful": f"The negative part of the spectrum is harmful with these labels: {amount}.",
        "undecided": "Whether the negative part of the spectrum helps is undecided: "
        f"{amount}, too little to tell.",
    }[judged.verdict]
    as_good = round(judged.p_value * (judged.n_permutations + 1)) - 1
    counted = (
        f"{as_good} of {judged.n_permutations} copies of it, shuffled among the items, predicted "
        "as well"
    )
    if judged.verdict == "useful":
        second = f"By squared error, {counted} (p = {judged.p_value:.3g})."
    elif judged.p_value <= 0.05:
        second = (
            f"It is related to the labels, since by squared error only {counted} (p = "
            f"{judged.p_value:.3g}); whether it adds anything to the positive part is another "
            "question."
        )
    else:
        second = (
            f"It cannot be told from noise: by squared error, {counted} (p = {judged.p_value:.3g})."
        )
    return [first, second]
