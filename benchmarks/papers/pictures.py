"""Pictures of the papers' figures from fitted models: each function draws on given axes and returns its numbers."""

import numpy as np
from sklearn.utils import Bunch

BLUE, VERMILION, GRAY = "#0072B2", "#D55E00", "#7F7F7F"


def draw_convergence(model, ax, pair=0):
    """DANK, Figure 4: relative gap, missing objective and rank of a DANK model after every outer step."""
    objective, gap, rank = (np.array(column) for column in zip(*model.history_[pair]))
    steps = np.arange(len(gap))
    missing = objective.max() - objective
    ax.semilogy(steps, np.maximum(gap, 1e-16), "o-", color=BLUE, label="relative gap")
    if missing.max() > 0:
        size = max(abs(objective.max()), np.finfo(float).tiny)
        shown = missing > 0
        ax.semilogy(
            steps[shown], missing[shown] / size, "s--", color=VERMILION, label="missing objective"
        )
    ax.set(xlabel="outer step (repeated if the working set grew)", title="DANK's convergence")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    rank_ax = ax.twinx()
    rank_ax.step(steps, rank, where="mid", color=GRAY, alpha=0.8)
    rank_ax.set_ylabel("rank of the adaptation", color=GRAY)
    rank_ax.set_ylim(0, 1.3 * rank.max())
    return Bunch(objective=objective, gap=gap, rank=rank)


def draw_adaptation(model, y, axes, pair=0, max_rows=400):
    """DANK, Figure 2: the change F - 1 of the kernel matrix as a heat map, and the eigenvalues of F.

    Shows the `max_rows` training rows with the largest dual coefficients, sorted by their target.
    """
    left, right = axes
    y = np.asarray(y)
    adaptation = model.adaptation_[pair]
    size = np.zeros(len(y))
    size[model.support_] = np.abs(model.dual_solution_[pair])
    rows = adaptation.rows[np.argsort(-size[adaptation.rows], kind="stable")[:max_rows]]
    rows = rows[np.argsort(y[rows], kind="stable")]
    F = adaptation.matrix(rows)
    eigenvalues = adaptation.eigenvalues()

    limit = max(float(np.quantile(np.abs(F - 1.0), 0.995)), 1e-12)
    image = left.imshow(F - 1.0, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    counts = np.unique(y[rows], return_counts=True)[1]
    boundaries = np.cumsum(counts)[:-1] if len(counts) <= 20 else np.empty(0, dtype=int)
    for boundary in boundaries:
        left.axhline(boundary - 0.5, color="black", lw=0.6)
        left.axvline(boundary - 0.5, color="black", lw=0.6)
    left.figure.colorbar(image, ax=left, label="F - 1")
    left.set(title="change of the kernel matrix", xlabel="training row", ylabel="training row")

    ranks = np.arange(1, len(eigenvalues) + 1)
    right.semilogy(ranks, np.maximum(eigenvalues, 1e-16), "o-", color=BLUE, ms=4)
    right.set(title=f"eigenvalues of F (rank {len(ranks)})", xlabel="number", ylabel="eigenvalue")
    right.xaxis.get_major_locator().set_params(integer=True)
    return Bunch(F=F, eigenvalues=eigenvalues, boundaries=boundaries)


def draw_kernel_line(kernel, start, end, ax, n_points=200, margin=0.25):
    """Hyper-kernels, Figure 2: k(x, start), k(x, end) and k(x, x) as x moves on a line between two points."""
    start = np.asarray(start, dtype=float)
    end = np.asarray(end, dtype=float)
    if start.ndim != 1 or start.shape != end.shape:
        raise ValueError(
            f"start and end must be vectors of one length, not of shapes {start.shape}, {end.shape}."
        )
    position = np.linspace(-margin, 1 + margin, n_points)
    line = start + position[:, None] * (end - start)
    to_start, to_end = kernel(line, np.stack([start, end])).T
    to_itself = kernel.diag(line)
    ax.plot(position, to_start, color=BLUE, label="k(x, start)", lw=1.6)
    ax.plot(position, to_end, color=VERMILION, label="k(x, end)", lw=1.6)
    ax.plot(position, to_itself, color=GRAY, label="k(x, x)", lw=1.6, ls="--")
    ax.axhline(0, color=GRAY, lw=0.6)
    for x in (0, 1):
        ax.axvline(x, color=GRAY, lw=0.6, ls=":")
    ax.set(xlabel="position on the line (start 0, end 1)", ylabel="kernel value")
    ax.legend(frameon=False)
    return Bunch(position=position, to_start=to_start, to_end=to_end, to_itself=to_itself)


def penalties(model):
    """The penalty of every eigenvalue, by the model's regularizer."""
    values = model.eigenvalues_
    n = model.total_weight_
    if model.regularizer == "components":
        alpha = np.where(values > 0, model.alpha_positive_, model.alpha_negative_)
        return n * alpha / np.abs(values)
    if model.regularizer == "covariance":
        return np.full(len(values), model.alpha_positive_)
    sizes = np.abs(values) if model.regularizer == "strong" else values
    return n * model.alpha_positive_ / sizes


def secular_curve(model, output=0, n_points=2000):
    """The spread of f on the training rows as a function of the multiplier, and where the solution lies.

    The curve is ``sqrt(sum(u^2) / n)`` with ``u = t / (1 + p - multiplier)`` for the penalties p of the eigenvalues.
    Left of the first pole every multiplier is the global minimum for some radius; multiplier 0 is the model without a
    constraint. Curves beyond the first pole belong to other stationary points.
    """
    n = model.total_weight_
    target = np.asarray(model.spectral_target_)
    target = target.reshape(len(target), -1)[:, output]
    if len(target) == 0:
        raise ValueError("The centered kernel matrix is zero, so there is no curve to draw.")
    poles = 1.0 + penalties(model)
    multiplier = float(np.atleast_1d(model.multiplier_)[output])
    first = poles.min()
    width = max(first - min(multiplier, 0.0), abs(first), 1e-12)
    low = min(multiplier, 0.0) - 0.5 * width
    high = first + 0.75 * width
    near_the_pole = first - width * np.logspace(-6, 0, 300)
    points = np.unique(np.r_[np.linspace(low, high, n_points), near_the_pole])
    points = points[(points >= low) & ~np.isin(points, poles)]
    spread = np.sqrt(((target / (poles - points[:, None])) ** 2).sum(axis=1) / n)
    height = float(np.sqrt(np.sum((target / (poles - multiplier)) ** 2) / n))
    radius = None
    if model.radius_ is not None:
        radius = float(np.atleast_1d(model.radius_)[output])
    return Bunch(
        multiplier=points,
        spread=spread,
        poles=np.unique(poles[poles < high]),
        solution=(multiplier, height),
        radius=radius,
    )


def draw_secular_curve(model, ax, output=0):
    """Krein, the sphere's multiplier: `secular_curve` with its poles, the radius and the solution."""
    curve = secular_curve(model, output)
    left = curve.multiplier < curve.poles.min()
    ax.plot(curve.multiplier[left], curve.spread[left], color=BLUE, label="global minima")
    rest = np.where(left, np.nan, curve.spread)
    ax.plot(curve.multiplier, rest, color=GRAY, lw=0.8, label="other stationary points")
    for i, pole in enumerate(curve.poles[:60]):
        ax.axvline(pole, color=GRAY, lw=0.5, ls=":", label="poles" if i == 0 else None)
    top = curve.solution[1]
    if curve.radius is not None:
        ax.axhline(curve.radius, color="black", lw=0.8, ls="--", label=f"radius {curve.radius:.3g}")
        top = max(top, curve.radius)
    ax.plot(*curve.solution, "o", color=VERMILION, ms=8, label="solution", zorder=5)
    ax.axvline(0.0, color="black", lw=0.5)
    ax.set(
        yscale="log",
        ylim=(min(curve.spread[left].min(), curve.solution[1]) / 2, 20 * top),
        xlim=(curve.multiplier[0], curve.multiplier[-1]),
        xlabel="multiplier (0: no constraint)",
        ylabel="standard deviation of f",
    )
    ax.legend(frameon=False, fontsize="small")
    return curve


def draw_descent(model, axes):
    """LAB: the objective after every iteration, and the validation error at the checkpoints."""
    left, right = axes
    left.plot(model.loss_curve_, color=BLUE)
    left.set(xlabel="iteration", ylabel="objective", title="Objective")
    if len(model.validation_curve_):
        iterations, errors = model.validation_curve_.T
        best = errors.argmin()
        right.plot(iterations, errors, "o-", color="C0", markersize=4)
        right.plot(iterations[best], errors[best], "o", color="C0", markersize=10, fillstyle="none")
    right.set(xlabel="iteration", ylabel="mean squared error", title="Validation (ring: chosen)")


def draw_local_fit(model, X, y, axes):
    """LAB, Figure 1: a fit in one dimension, and below the bandwidth of every support point in units of X."""
    top, bottom = axes
    if model.n_features_in_ != 1:
        raise ValueError(f"This picture needs one feature; the model has {model.n_features_in_}.")
    x = np.asarray(X, dtype=float).ravel()
    grid = np.linspace(x.min(), x.max(), 600)
    centers = model.support_vectors_.ravel()
    # from scaled units back to units of X by the local slope of the scaling
    step = 1e-6 * (np.ptp(x) or 1.0)
    above = model.scaling_(centers[:, None] + step)
    below = model.scaling_(centers[:, None] - step)
    slope = (above - below).ravel() / (2 * step)
    widths = model.bandwidths_.ravel() / np.abs(slope)
    top.plot(x, y, ".", color=GRAY, markersize=4, label="data")
    top.plot(grid, model.predict(grid[:, None]), color=BLUE, label="fit")
    top.set(ylabel="y", title=f"{len(centers)} support points, each with its own bandwidth")
    top.legend(frameon=False, ncols=2, loc="lower right")
    bottom.plot(centers, widths, "o", color=VERMILION, markersize=4)
    bottom.set(xlabel="x", ylabel="bandwidth", yscale="log")
    return Bunch(grid=grid, centers=centers, widths=widths)
