"""Rivals of LAB's Table 1: ridge regression with two kernels, Falkon's and EigenPro's solvers, two networks.

    MERCERLESS_DATA=... python benchmarks/papers/rivals.py [--sets yacht airfoil] [--splits 3] [--methods ResNet]

80 % of the rows to train, features standardized; widths and penalties are chosen on a fifth of the training rows from a
small grid, since the paper does not say how it scales features or what its sigma divides. Numbers of centers, widths of
the networks, batches and learning rates are the paper's. ResNet needs PyTorch (``pip install torch``) and is left out
without it. Not here: support vector regression with EasyMKL's weights, which are defined for classes; the paper does
not say what it did for numbers.
Writes results/rivals.csv: mean R2 over the splits, its deviation, processor seconds, and the paper's R2.
"""

import argparse
import copy
import csv
import importlib.util
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from paper_sets import load
from scipy.linalg import cholesky, eigh, solve, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from mercerless.kernels import TL1, Gaussian

RESULTS = Path(__file__).parent / "results" / "rivals.csv"
CENTERS = {"yacht": 200, "airfoil": 900, "sml2010": 2000}
HIDDEN = {"yacht": 500, "airfoil": 6000, "sml2010": 1500}
RESIDUAL = {  # widths of the blocks, and rows of a batch
    "yacht": ((500, 50), 32),
    "airfoil": ((1000, 100, 100, 100), 128),
    "sml2010": ((1000, 100, 100, 100), 128),
}
PAPER = {
    ("Gaussian ridge", "yacht"): 0.9889, ("Gaussian ridge", "airfoil"): 0.8634, ("Gaussian ridge", "sml2010"): 0.9779,
    ("TL1 ridge", "yacht"): 0.9705, ("TL1 ridge", "airfoil"): 0.9464, ("TL1 ridge", "sml2010"): 0.9947,
    ("Falkon", "yacht"): 0.9982, ("Falkon", "airfoil"): 0.9377, ("Falkon", "sml2010"): 0.9960,
    ("EigenPro", "yacht"): 0.9944, ("EigenPro", "airfoil"): 0.9262, ("EigenPro", "sml2010"): 0.9934,
    ("wide network", "yacht"): 0.9924, ("wide network", "airfoil"): 0.9128, ("wide network", "sml2010"): 0.9926,
    ("ResNet", "yacht"): 0.9940, ("ResNet", "airfoil"): 0.9538, ("ResNet", "sml2010"): 0.9976,
}  # fmt: skip
WIDTHS, PENALTIES = (0.25, 0.5, 1.0, 2.0), (1e-6, 1e-4, 1e-2)


def ridge(kernel, X, y, penalty):
    """(K + n penalty I) a = y, whatever the signs of the eigenvalues of K."""
    return X, solve(kernel(X) + len(X) * penalty * np.eye(len(X)), y, assume_a="sym")


def flipped(kernel, X, y, penalty):
    """The same with the absolute eigenvalues, the norm of both parts as penalty: no eigenvalue meets a pole."""
    values, vectors = eigh(kernel(X))
    return X, vectors @ (np.sign(values) * (vectors.T @ y) / (np.abs(values) + len(X) * penalty))


def falkon(kernel, X, y, penalty, centers, steps=30):
    """``min |K_nm a - y|^2 / n + penalty a' K_mm a`` by preconditioned conjugate gradients.

    The preconditioner is that of Rudi, Carratino and Rosasco (NIPS 2017):
    K_nm' K_nm is replaced by n / m K_mm^2, of which two Cholesky factors are known.
    """
    n, m = len(X), len(centers)
    K, M = kernel(X, centers), kernel(centers)
    outer = cholesky(M + 1e-10 * m * np.eye(m))
    inner = cholesky(outer @ outer.T / m + penalty * np.eye(m))

    def back(v):
        return solve_triangular(outer, solve_triangular(inner, v)) / np.sqrt(n)

    def forth(v):
        return solve_triangular(inner, solve_triangular(outer, v, trans=1), trans=1) / np.sqrt(n)

    def product_(v):
        u = back(v)
        return forth(K.T @ (K @ u) + n * penalty * (M @ u))

    system = LinearOperator((m, m), product_, dtype=float)
    return centers, back(cg(system, forth(K.T @ y), rtol=1e-8, maxiter=steps)[0])


def eigenpro(kernel, X, y, steps, directions=60):
    """Steps of gradient descent on ``|K a - y|^2`` in which the first eigenvalues are made equal to the next one.

    After Ma and Belkin (NIPS 2017), with all rows in every step and no
    penalty but the number of steps.
    """
    n = len(X)
    K, top = kernel(X), min(directions, n - 1)
    values, vectors = eigh(K, subset_by_index=(n - top - 1, n - 1))
    damped = (1 - values[0] / values[1:]) * vectors[:, 1:]  # P = I - damped @ vectors'
    a = np.zeros(n)
    for _ in range(steps):
        gap = y - K @ a
        a += (gap - damped @ (vectors[:, 1:].T @ gap)) / values[0]
    return X, a


def residual_network(n_features, widths, normalized):
    """Blocks of Chen et al. (2020): ``relu(s(x) + c(relu(b(relu(a(x))))))`` with linear a, b, c, batches normalized.

    The shortcut s is linear where the width changes (a dense block) and else the identity. A linear layer ends it.
    The first weights are PyTorch's, drawn as He et al. (2015) have it.
    """
    from torch import nn

    def linear(before, width):
        return nn.Sequential(
            nn.Linear(before, width), nn.BatchNorm1d(width) if normalized else nn.Identity()
        )

    class Block(nn.Module):
        def __init__(self, before, width):
            super().__init__()
            self.path = nn.Sequential(
                linear(before, width),
                nn.ReLU(),
                linear(width, width),
                nn.ReLU(),
                linear(width, width),
            )
            self.shortcut = nn.Identity() if before == width else linear(before, width)

        def forward(self, x):
            return (self.path(x) + self.shortcut(x)).relu()

    blocks = [Block(before, width) for before, width in zip((n_features, *widths), widths)]
    return nn.Sequential(*blocks, nn.Linear(widths[-1], 1), nn.Flatten(0))


def trained(network, training, held_out, batch, patience=30):
    """The network after the epoch of least held-out loss, by Adam and then, from its best, by SGD; and that loss."""
    import torch

    loss, (A, a), (B, b) = torch.nn.functional.mse_loss, training, held_out
    state, lowest = copy.deepcopy(network.state_dict()), np.inf
    for optimizer in (torch.optim.Adam, torch.optim.SGD):
        network.load_state_dict(state)
        steps, waited = optimizer(network.parameters(), lr=1e-3), 0
        while waited < patience:
            for rows in torch.randperm(len(A)).split(batch)[: max(1, len(A) // batch)]:
                steps.zero_grad()
                loss(network.train()(A[rows]), a[rows]).backward()
                steps.step()
            with torch.no_grad():
                found = loss(network.eval()(B), b).item()
            waited = 0 if found < lowest else waited + 1
            if found < lowest:
                state, lowest = copy.deepcopy(network.state_dict()), found
    network.load_state_dict(state)
    return network.eval(), lowest


def resnet(X, y, widths, batch, seed):
    """A residual network that a tenth of the rows stopped.

    The text leaves open whether batches are normalized (both are tried, the tenth decides) and when an optimizer
    stops (here when it brought nothing for 30 epochs).
    """
    import torch

    A, B, a, b = (
        torch.tensor(part).float()
        for part in train_test_split(X, y, test_size=0.1, random_state=seed)
    )
    networks = []
    for normalized in (True, False):
        torch.manual_seed(seed)
        networks.append(
            trained(residual_network(X.shape[1], widths, normalized), (A, a), (B, b), batch)
        )
    best, _ = min(networks, key=lambda pair: pair[1])
    return lambda T: best(torch.tensor(T).float()).detach().numpy()


def candidates(name, X, seed):
    """Every rival, and functions from training rows to a predictor, among which held-out rows choose."""
    spread = np.sqrt(X.shape[1])
    centers = np.random.RandomState(seed).permutation(len(X))[: CENTERS[name]]

    def machine(solver, kernel, *settings):
        def fit(A, a):
            support, coefficients = solver(kernel, A, a, *settings)
            return lambda T: kernel(T, support) @ coefficients

        return fit

    def with_centers(kernel, penalty):
        def fit(A, a):
            support, coefficients = falkon(kernel, A, a, penalty, A[centers[centers < len(A)]])
            return lambda T: kernel(T, support) @ coefficients

        return fit

    gaussians = [Gaussian(width * spread) for width in WIDTHS]
    truncated = [TL1(width * X.shape[1]) for width in (0.7, 1.5, 3.0)]
    yield "Gaussian ridge", [machine(ridge, k, p) for k, p in product(gaussians, PENALTIES)]
    yield "TL1 ridge", [machine(ridge, k, p) for k, p in product(truncated, PENALTIES)]
    yield (
        "TL1 ridge, flipped",
        [machine(flipped, k, p) for k, p in product(truncated, (1e-5, 1e-4, 1e-3))],
    )
    yield "Falkon", [with_centers(k, p) for k, p in product(gaussians, PENALTIES)]
    yield "EigenPro", [machine(eigenpro, k, steps) for k, steps in product(gaussians, (30, 300))]
    settings = {
        "early_stopping": True,
        "n_iter_no_change": 30,
        "max_iter": 400,
        "random_state": seed,
    }
    network = MLPRegressor(hidden_layer_sizes=(HIDDEN[name],), **settings)
    yield "wide network", [lambda A, a: network.fit(A, a).predict]
    if importlib.util.find_spec("torch"):
        yield "ResNet", [lambda A, a: resnet(A, a, *RESIDUAL[name], seed)]


def score(fits, train, test):
    """R2 on test rows of the candidate that is best on a fifth of the training rows, fitted on all of them."""
    (X, y), (T, t) = train, test
    if len(fits) > 1:
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=0)
        fits = [max(fits, key=lambda fit: r2_score(b, fit(A, a)(B)))]
    return r2_score(t, fits[0](X, y)(T))


def split(name, seed):
    data = load(name)
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target, dtype=float)
    X, T, y, t = train_test_split(X, y, test_size=0.2, random_state=seed)
    scaler = StandardScaler().fit(X)
    center, unit = y.mean(), y.std()
    return (scaler.transform(X), (y - center) / unit), (scaler.transform(T), (t - center) / unit)


def write(rows):
    """Put rows in place of those of the same set and method."""
    RESULTS.parent.mkdir(exist_ok=True)
    old = {}
    if RESULTS.exists():
        with open(RESULTS, newline="") as file:
            old = {tuple(row[:2]): row for row in list(csv.reader(file))[1:]}
    old |= {row[:2]: row for row in rows}
    with open(RESULTS, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows(
            [("set", "method", "splits", "r2", "deviation", "cpu_seconds", "paper"), *old.values()]
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["yacht", "airfoil"], choices=sorted(CENTERS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--methods", nargs="*", help="only these")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if not importlib.util.find_spec("torch"):
        print("ResNet is left out: it needs PyTorch, pip install torch")
    rows = []
    for name in options.sets:
        found = {}
        for seed in range(options.splits):
            train, test = split(name, seed)
            for method, fits in candidates(name, train[0], seed):
                if options.methods and method not in options.methods:
                    continue
                start = time.process_time()
                found.setdefault(method, []).append(
                    (score(fits, train, test), time.process_time() - start)
                )
        for method, values in found.items():
            r2, seconds = np.transpose(values)
            numbers = (f"{r2.mean():.4f}", f"{r2.std():.4f}", f"{seconds.mean():.2f}")
            rows.append((name, method, options.splits, *numbers, PAPER.get((method, name), "")))
            print(*rows[-1], flush=True)
        write(rows)


if __name__ == "__main__":
    main()
