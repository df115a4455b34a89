"""The papers' exponents in the form of their proofs, not of their theorems."""


def krein_from_the_proof(beta, s, gamma, eta, epsilon):
    """Liu et al., (B.3) and (B.4); eta None or >= 1 leaves its terms out."""
    candidates = [gamma * (1 - beta) / 2, (gamma * (1 + s) - 1) * (2 + s) + epsilon]
    rates = [gamma * beta]
    if eta is not None and eta < 1:
        candidates.append((1 - eta) / 2)
        rates.append(gamma + eta - 1)
    return min([*rates, (1 - s * max(candidates)) / (1 + s)])


def lab_from_the_proof(beta, xi):
    """He et al., proof of Theorem 5: q = 1 - xi and tau give error, decay of the penalty and growth."""
    q, tau = 1 - xi, beta / 4 / (xi + beta - xi * beta)
    error = (1 - q * (1 - beta)) * tau - (1 - q)
    decay = 2 * tau / (2 - q)
    return error, decay, decay - error


def hyper_svr_of_a_smooth_kernel(r, theta, alpha):
    """The remark after Theorem 7: the limit s -> 0."""
    return min(alpha * r, 1 / (2 - theta) + (r - 1) / (2 - theta) * alpha)
