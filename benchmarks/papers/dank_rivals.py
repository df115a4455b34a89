"""The rivals of Tables 2, 4 and 6 of Liu et al. (2020), as plain scikit-learn estimators.

`LogDetMachine`: Jain, Kulis, Davis, Dhillon (2012), metric and kernel learning by the LogDet divergence.
`BayesianMKL`: Goenen (2012), Bayesian efficient multiple kernel learning, the variational algorithm.
`AlignedFeatures`: Sinha and Duchi (2016), learning kernels with random features ("RF" in the table).
`BayesianMKLRegressor`: the same for numbers, with noise that is learned.
`AlignedMachine`, `DistributedBMKL`: the same features and the same learner as in the tables of the hyper-kernel paper.
`MetricNadarayaWatson`: Noh et al. (2017), a weighted mean whose local metric comes from a Gaussian model.

KNPL, the fourth of Table 2, is the authors' earlier conference method; the journal paper says only how it differs (no
bound, no low rank, an alternating semi-definite program), which is not enough to rebuild it.
"""

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from sklearn.utils import check_random_state


class AlignedFeatures(TransformerMixin, BaseEstimator):
    """Random cosine features, weighted to align with the labels within a chi-square ball around equal weights."""

    def __init__(self, gamma=1.0, radius=1.0, n_features=1000, random_state=0):
        self.gamma = gamma
        self.radius = radius
        self.n_features = n_features
        self.random_state = random_state

    def _features(self, X):
        return np.sqrt(2.0) * np.cos(X @ self.directions_ + self.phases_)

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        self.directions_ = np.sqrt(2 * self.gamma) * rng.standard_normal(
            (X.shape[1], self.n_features)
        )
        self.phases_ = rng.uniform(0, 2 * np.pi, self.n_features)
        signs = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
        alignment = ((self._features(X).T @ signs) ** 2).sum(axis=1)

        def weights(level):
            q = np.maximum(alignment - level, 0.0)
            return q / q.sum()

        # maximize q @ alignment: q = (alignment - level)_+, with the level at which the ball's boundary is met
        low, high = alignment.min() - 1e3 * np.ptp(alignment), np.partition(alignment, -2)[-2]
        for _ in range(80):
            level = (low + high) / 2
            if self.n_features * np.sum(weights(level) ** 2) - 1 > self.radius:
                high = level
            else:
                low = level
        self.weights_ = weights(low)
        return self

    def transform(self, X):
        return self._features(X) * np.sqrt(self.weights_)


class LogDetMachine(ClassifierMixin, BaseEstimator):
    """A support vector machine on the kernel nearest to a Gaussian, in LogDet divergence, that obeys pairs.

    Rows of the same class are to be nearer than the 5 % quantile of the Gaussian's distances, rows of different classes
    farther than the 95 % quantile, with slack; cyclic Bregman projections. The learned kernel is
    ``k(x, z) + k(x, X) S k(X, z)``, so new points need no more than the Gaussian.
    """

    def __init__(self, gamma=1.0, C=1.0, slack=1.0, n_sweeps=20, random_state=0):
        self.gamma = gamma
        self.C = C
        self.slack = slack
        self.n_sweeps = n_sweeps
        self.random_state = random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        K = rbf_kernel(X, gamma=self.gamma)
        self.classes_ = np.unique(y)
        count = 20 * len(self.classes_) ** 2
        pairs = rng.integers(len(y), size=(2, 4 * count))
        pairs = pairs[:, pairs[0] != pairs[1]][:, :count]
        same = y[pairs[0]] == y[pairs[1]]
        near, far = np.quantile(2 - 2 * K[np.triu_indices(len(y), 1)], [0.05, 0.95])
        sign, bound = np.where(same, 1.0, -1.0), np.where(same, near, far)
        dual, S = np.zeros(count), np.zeros_like(K)
        for _ in range(self.n_sweeps):
            for c, (i, j) in enumerate(pairs.T):
                z = S @ (K[:, i] - K[:, j])  # K_learned e = K z with z = (I + S K) e, e = e_i - e_j
                z[i] += 1.0
                z[j] -= 1.0
                kz = K @ z
                distance = max(kz[i] - kz[j], 1e-12)
                step = min(dual[c], sign[c] / 2 * (1 / distance - self.slack / bound[c]))
                beta = sign[c] * step / (1 - sign[c] * step * distance)
                bound[c] = self.slack * bound[c] / (self.slack + sign[c] * step * bound[c])
                dual[c] -= step
                S += beta * np.outer(z, z)
        self.X_, self.S_ = X, S
        self.machine_ = SVC(kernel="precomputed", C=self.C).fit(K + K @ S @ K, y)
        self.middle_ = S @ K
        return self

    def predict(self, X):
        K = rbf_kernel(X, self.X_, gamma=self.gamma)
        return self.machine_.predict(K + K @ self.middle_)


def base_kernels(X, X_train):
    """Ten Gaussians and three polynomials."""
    gaussians = [rbf_kernel(X, X_train, gamma=0.5 / 4.0**power) for power in range(-5, 5)]
    size = max(float(np.mean(np.sum(X_train**2, axis=1))), 1e-12)
    polynomials = [
        polynomial_kernel(X, X_train, degree=d, gamma=1 / size, coef0=1.0) / 2.0**d
        for d in (1, 2, 3)
    ]
    return np.array(gaussians + polynomials)


class _BinaryBayesianMKL(ClassifierMixin, BaseEstimator):
    """Variational Bayesian multiple kernel learning for two classes, with the author's default priors."""

    def __init__(self, n_iter=100, noise=0.1, margin=1.0, random_state=0):
        self.n_iter = n_iter
        self.noise = noise
        self.margin = margin
        self.random_state = random_state

    def _kernels(self, X):
        return base_kernels(X, self.X_)

    def fit(self, X, y):
        self.X_, self.classes_ = X, np.unique(y)
        rng = np.random.default_rng(self.random_state)
        K = self._kernels(X)
        P, n = K.shape[:2]
        sign = np.where(y == self.classes_[1], 1.0, -1.0)
        squares = sum(matrix @ matrix.T for matrix in K) / self.noise
        a_mean, a_var = rng.standard_normal(n), np.ones(n)
        G = (np.abs(rng.standard_normal((P, n))) + self.margin) * sign
        weights, weights_cov = np.append(0.0, np.ones(P)), np.eye(P + 1)
        f = (np.abs(rng.standard_normal(n)) + self.margin) * sign
        for _ in range(self.n_iter):
            precision = 1.5 / (1 + 0.5 * (a_mean**2 + a_var))
            a_cov = np.linalg.inv(np.diag(precision) + squares)
            a_mean, a_var = a_cov @ np.einsum("pij,pj->i", K, G) / self.noise, a_cov.diagonal()
            e, e_cov = weights[1:], weights_cov[1:, 1:]
            G_cov = np.linalg.inv(np.eye(P) / self.noise + np.outer(e, e) + e_cov)
            pull = np.outer(e, f) - (e * weights[0] + weights_cov[1:, 0])[:, None]
            G = G_cov @ (K @ a_mean / self.noise + pull)
            second = weights**2 + weights_cov.diagonal()
            H = np.diag(1.5 / (1 + 0.5 * second))
            with_bias = np.vstack([np.ones(n), G])
            H += with_bias @ with_bias.T
            H[1:, 1:] += n * G_cov
            weights_cov = np.linalg.inv(H)
            weights = weights_cov @ (with_bias @ f)
            output = with_bias.T @ weights
            # mean of a normal variable that is cut off at the margin, on the label's side
            cut = self.margin - sign * output
            f = output + sign * np.exp(norm.logpdf(cut) - norm.logsf(cut))
        self.coef_, self.weights_ = a_mean, weights
        return self

    def decision_function(self, X):
        return self.weights_[0] + self.weights_[1:] @ (self._kernels(X) @ self.coef_)

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def BayesianMKL():
    """Ten Gaussians and three polynomials, one machine per class."""
    return OneVsRestClassifier(_BinaryBayesianMKL())


class BayesianMKLRegressor(RegressorMixin, BaseEstimator):
    """Variational Bayesian multiple kernel learning for numbers.

    ``y ~ N(b + e @ g, 1 / precision)`` and ``g_p ~ N(K_p a, 1 / fit)``, normal priors with gamma-distributed precisions
    (shape and scale 1) on every entry of a, b and e, and gamma-distributed precisions of both noises.
    """

    def __init__(self, n_iter=100):
        self.n_iter = n_iter

    def fit(self, X, y):
        K = base_kernels(X, X)
        self.X_ = X
        P, n = K.shape[:2]
        squares = sum(matrix @ matrix.T for matrix in K)
        coef = np.zeros(n)
        coef_variance = np.ones(n)
        weights = np.append(0.0, np.full(P, 1 / P))
        weights_cov = np.eye(P + 1)
        G = np.tile(y, (P, 1)).astype(float)
        precision = 1.0
        fit = 1.0
        for _ in range(self.n_iter):
            prior = 1.5 / (1 + 0.5 * (coef**2 + coef_variance))
            coef_cov = np.linalg.inv(np.diag(prior) + fit * squares)
            coef_variance = coef_cov.diagonal()
            coef = fit * coef_cov @ np.einsum("pij,pj->i", K, G)
            outputs = K @ coef

            e = weights[1:]
            e_cov = weights_cov[1:, 1:]
            G_cov = np.linalg.inv(fit * np.eye(P) + precision * (np.outer(e, e) + e_cov))
            pull = np.outer(e, y) - (e * weights[0] + weights_cov[1:, 0])[:, None]
            G = G_cov @ (fit * outputs + precision * pull)
            misfit = np.sum((G - outputs) ** 2) + n * np.trace(G_cov) + np.sum(squares * coef_cov)
            fit = (1 + 0.5 * P * n) / (1 + 0.5 * misfit)

            with_bias = np.vstack([np.ones(n), G])
            second = with_bias @ with_bias.T
            second[1:, 1:] += n * G_cov
            prior = 1.5 / (1 + 0.5 * (weights**2 + weights_cov.diagonal()))
            weights_cov = np.linalg.inv(np.diag(prior) + precision * second)
            weights = precision * weights_cov @ (with_bias @ y)
            error = np.sum(y**2) - 2 * weights @ (with_bias @ y)
            error += np.sum(second * (np.outer(weights, weights) + weights_cov))
            precision = (1 + 0.5 * n) / (1 + 0.5 * error)
        self.coef_ = coef
        self.weights_ = weights
        return self

    def predict(self, X):
        return self.weights_[0] + self.weights_[1:] @ (base_kernels(X, self.X_) @ self.coef_)


class MetricNadarayaWatson(RegressorMixin, BaseEstimator):
    """Nadaraya and Watson's weighted mean with the local metric of Noh et al. (2017).

    To first order the bias at x is ``grad p(x) @ inv(A) @ grad y(x) / p(x)`` for a metric A. With rows and targets
    jointly normal, grad y is the vector of least squares and ``grad p / p = -inv(cov) @ (x - mean)``. A is the sum of
    the two eigendirections of ``grad y grad p' + grad p grad y'``, weighed by the sizes of their eigenvalues, which
    makes this product vanish, and of ``ridge`` times the identity, scaled to determinant one. ``width`` is that of the
    Gaussian weights, in units of the median distance.
    """

    def __init__(self, width=0.3, ridge=0.1):
        self.width = width
        self.ridge = ridge

    def fit(self, X, y):
        self.X_ = X
        self.y_ = y
        self.mean_ = X.mean(axis=0)
        centered = X - self.mean_
        cov = centered.T @ centered / len(X)
        cov += 1e-3 * np.trace(cov) / len(cov) * np.eye(len(cov))
        self.cov_ = cov
        self.slope_ = np.linalg.solve(cov, centered.T @ (y - y.mean()) / len(X))
        sample = X[:500]
        distances = np.sqrt(((sample[:, None] - sample) ** 2).sum(axis=2))
        self.unit_ = np.median(distances[np.triu_indices(len(sample), 1)])
        return self

    def _squares(self, x):
        """Squared distances of all training rows to x in its metric."""
        difference = self.X_ - x
        plain = np.sum(difference**2, axis=1)
        pull = -np.linalg.solve(self.cov_, x - self.mean_)
        sizes = np.linalg.norm(pull) * np.linalg.norm(self.slope_)
        if sizes == 0:
            return plain
        u = pull / np.linalg.norm(pull)
        v = self.slope_ / np.linalg.norm(self.slope_)
        cosine = np.clip(u @ v, -1.0, 1.0)
        # eigenvectors u + v and u - v of u v' + v u' have the eigenvalues cosine + 1 and cosine - 1
        strengths = np.array([1 + cosine, 1 - cosine])
        directions = np.array([u + v, u - v])
        lengths = np.linalg.norm(directions, axis=1)
        kept = lengths > 1e-8
        directions = directions[kept] / lengths[kept, None]
        strengths = strengths[kept]
        metric = self.ridge * plain + strengths @ (directions @ difference.T) ** 2
        d = len(x)
        log_determinant = np.sum(np.log(self.ridge + strengths))
        log_determinant += (d - len(strengths)) * np.log(self.ridge)
        return metric * np.exp(-log_determinant / d)

    def predict(self, X):
        values = np.empty(len(X))
        for i, x in enumerate(X):
            exponent = -self._squares(x) / (2 * (self.width * self.unit_) ** 2)
            weight = np.exp(exponent - exponent.max())
            values[i] = weight @ self.y_ / weight.sum()
        return values


class AlignedMachine(ClassifierMixin, BaseEstimator):
    """RF of Table 2: many random cosine features, weighted to align with the labels, and a support vector machine.

    Sinha and Duchi (2016). The width is given; the radius of the ball of weights and C are chosen by three folds, with
    the weights learned anew in each.
    """

    def __init__(self, gamma=1.0, n_features=10_000, random_state=0):
        self.gamma = gamma
        self.n_features = n_features
        self.random_state = random_state

    def _features(self, radius):
        return AlignedFeatures(self.gamma, radius, self.n_features, self.random_state)

    def fit(self, X, y):
        radii = (0.1, 1.0, 10.0)
        costs = np.logspace(-1, 3, 5)
        scores = np.zeros((len(radii), len(costs)))
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        for train, test in folds.split(X, y):
            for i, radius in enumerate(radii):
                features = self._features(radius).fit(X[train], y[train])
                of_train = features.transform(X[train])
                K = of_train @ of_train.T
                K_test = features.transform(X[test]) @ of_train.T
                for j, C in enumerate(costs):
                    machine = SVC(kernel="precomputed", C=C).fit(K, y[train])
                    scores[i, j] += np.sum(machine.predict(K_test) == y[test])
        best, cost = np.unravel_index(scores.argmax(), scores.shape)
        self.features_ = self._features(radii[best]).fit(X, y)
        self.of_train_ = self.features_.transform(X)
        machine = SVC(kernel="precomputed", C=costs[cost])
        self.machine_ = machine.fit(self.of_train_ @ self.of_train_.T, y)
        return self

    def predict(self, X):
        return self.machine_.predict(self.features_.transform(X) @ self.of_train_.T)


class DistributedBMKL(ClassifierMixin, BaseEstimator):
    """Bayesian multiple kernel learning on random parts of the rows; the mean of the parts' decision values decides."""

    def __init__(self, n_parts=5, random_state=0):
        self.n_parts = n_parts
        self.random_state = random_state

    def fit(self, X, y):
        rows = check_random_state(self.random_state).permutation(len(X))
        self.classes_ = np.unique(y)
        parts = [part for part in np.array_split(rows, self.n_parts) if len(np.unique(y[part])) > 1]
        self.machines_ = [BayesianMKL().fit(X[part], y[part]) for part in parts]
        return self

    def predict(self, X):
        values = np.mean([machine.decision_function(X) for machine in self.machines_], axis=0)
        return self.classes_[(values > 0).astype(int)]
