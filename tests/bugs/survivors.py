"""Bugs that no test caught when they were drawn at random, or thought of by an auditor; each has its test now."""

from bugs import Bug

BUGS = [
    Bug(
        "left-paired-weights",
        "np.sqrt((weight**2) @ (difference - mean) ** 2)",
        "np.sqrt(weight @ (difference - mean) ** 2)",
        "test_similarity_solvers.py -k paired_z_of_weighted",
    ),
    Bug(
        "left-cross-calibration-weights",
        "calibration = calibrate_scores(scores[train], labels[train], weight[train])",
        "calibration = calibrate_scores(scores[train], labels[train])",
        "test_conformal.py -k cross_calibration_never",
    ),
    Bug(
        "left-constant-scores-weights",
        "shift = np.average(scores.mean(axis=2), axis=1, weights=weight)\n    bias =",
        "shift = scores.mean(axis=(1, 2))\n    bias =",
        "test_krein.py -k constant_scores_give",
    ),
    Bug(
        "left-shares-without-weight",
        "spread = solution * self.spread[members]",
        "spread = 1.0 * self.spread[members]",
        "test_averaging.py -k dropped_by_their_part",
    ),
    Bug(
        "left-ridge-grid-targets",
        "Z = root[:, None] * rows.Y\n    points",
        "Z = root[:, None] / rows.Y\n    points",
        "test_lab_solver.py -k ridge_grid_chooses",
    ),
]
