"""VBx on local speakers: the mixture form of `src/diarization/clustering/vbx.ts`, with a weight for every item.

Landini et al., "Bayesian HMM clustering of x-vector sequences (VBx) in speaker diarization", 2022; no transition model. An item counts as often as
it has distinct seconds of speech: windows overlap, and what several of them hear is one piece of evidence.
"""
import numpy as np


def vbx(features, phi, initial, weights, statistics_scale, speaker_regularisation, smoothing=7.0, iterations=40, epsilon_per_second=1e-5):
    """Responsibilities [items, speakers] and priors [speakers]; features [items, d] in the PLDA space, weights [items]."""
    fa, fb = statistics_scale, speaker_regularisation
    count, speakers = len(features), int(initial.max()) + 1
    gamma = np.exp(smoothing * np.eye(speakers)[initial])
    gamma /= gamma.sum(1, keepdims=True)
    pi = np.full(speakers, 1 / speakers)
    scale = fa * weights[:, None]
    constant = -0.5 * ((features**2).sum(1) + len(phi) * np.log(2 * np.pi))
    rho = features * np.sqrt(phi)
    last = -np.inf
    for iteration in range(iterations):
        precision = 1 / (1 + (gamma.T @ scale) / fb * phi)
        alpha = precision / fb * (gamma.T @ (scale * rho))
        score = scale * (rho @ alpha.T - 0.5 * (precision + alpha**2) @ phi + constant[:, None]) + np.log(pi + 1e-8)
        largest = score.max(1, keepdims=True)
        evidence = largest[:, 0] + np.log(np.exp(score - largest).sum(1))
        gamma = np.exp(score - evidence[:, None])
        pi = (weights[:, None] * gamma).sum(0)
        pi /= pi.sum()
        bound = evidence.sum() + fb * 0.5 * (np.log(precision) - precision - alpha**2 + 1).sum()
        if iteration and bound - last < epsilon_per_second * weights.sum():
            break
        last = bound
    return gamma, pi
