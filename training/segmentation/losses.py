"""Losses of the training: permutation-invariant cross-entropy, same/different speaker on pairs of frames, speaker
identity, soft labels.

The first is that of powerset segmentation (Plaquet and Bredin, Interspeech 2023); the identity loss is a margin softmax
(Wang et al., 2018).
"""

import itertools
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from .model import CLASS_SPEAKERS, Segmentation

CODE = torch.tensor([1, 2, 4])
PERMUTATIONS = torch.tensor(list(itertools.permutations(range(3))))
CLASS_OF_CODE = torch.tensor([0, 1, 2, 4, 3, 5, 6, 0])
"""Class of an activity triple (a, b, c), by its code, CODE times the triple."""
CLASS_PERMUTATIONS = torch.stack([CLASS_OF_CODE[CLASS_SPEAKERS[:, p] @ CODE] for p in PERMUTATIONS])
"""[6,7]: class k of the permuted speakers is class CLASS_PERMUTATIONS[p][k] of the original ones."""

IDENTITY_MARGIN, IDENTITY_SCALE = 0.1, 20.0
MIN_IDENTITY_FRAMES = 20


@cache
def _on(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """CODE, CLASS_OF_CODE and CLASS_PERMUTATIONS on a device, copied there once."""
    return CODE.to(device), CLASS_OF_CODE.to(device), CLASS_PERMUTATIONS.to(device)


def classes_of(labels: Tensor) -> Tensor:
    """Activities [...,3,T] -> classes [...,T]."""
    code, class_of_code, _ = _on(labels.device)
    return class_of_code[(labels.long() * code[:, None]).sum(-2)]


def permutation_loss(logs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Cross-entropy with the best order of the speakers in every window: logs [N,T,7], labels [N,3,T], mask [N,T] ->
    [N]."""
    total = mask.sum(1).clamp(min=1)
    classes, (_, _, orders) = classes_of(labels), _on(labels.device)
    losses = [-(logs.gather(2, order[classes][..., None])[..., 0] * mask).sum(1) / total for order in orders]
    return torch.stack(losses, 1).min(1)[0]


def soft_label_loss(logs: Tensor, soft: Tensor, mask: Tensor) -> Tensor:
    """Cross-entropy against probabilities [N,T,7] under the best order of the speakers, mask [N,T]: -> [N]."""
    total = mask.sum(1).clamp(min=1)
    losses = [-((soft[..., order] * logs).sum(-1) * mask).sum(1) / total for order in _on(logs.device)[2]]
    return torch.stack(losses, 1).min(1)[0]


def pair_loss(model: Segmentation, embeddings: Tensor, alone: Tensor, speakers: Tensor) -> Tensor:
    """Balanced same/different decision on pairs of every fourth frame: embeddings [N,F,48], alone [N,F], speakers
    [N,3,F]."""
    first = int(torch.randint(4, (1,)))
    e = F.normalize(embeddings[:, first::4], dim=-1)
    score = torch.matmul(e, e.transpose(1, 2)) * model.pair_scale[0].clamp(1, 20) + model.pair_scale[1]
    single = alone[:, first::4]
    who = speakers[:, :, first::4] * single[:, None]
    same = torch.matmul(who.transpose(1, 2), who)
    pairs = single[:, :, None] * single[:, None]
    loss = F.binary_cross_entropy_with_logits(score, same, reduction="none")
    positive, negative = pairs * same, pairs * (1 - same)
    halves = [(loss * weight).sum() / weight.sum().clamp(min=1) for weight in (positive, negative)]
    return 0.5 * (halves[0] + halves[1])


def identity_loss(
    model: Segmentation, embeddings: Tensor, alone: Tensor, speakers: Tensor, identities: Tensor
) -> Tensor:
    """Classifies the mean embedding of every local speaker's single-speaker frames as a training voice: embeddings
    [N,F,64], identities [N,3]."""
    weight = speakers * alone[:, None]
    count = weight.sum(2)
    pooled = torch.matmul(weight, embeddings) / count.clamp(min=1)[..., None]
    known = ((count > MIN_IDENTITY_FRAMES) & (identities >= 0)).float().flatten()
    target = identities.clamp(min=0).long().flatten()
    cosine = F.normalize(pooled.flatten(0, 1), dim=-1) @ F.normalize(model.identity_centres, dim=-1).t()
    cosine = cosine - IDENTITY_MARGIN * F.one_hot(target, cosine.shape[1])
    losses = F.cross_entropy(cosine * IDENTITY_SCALE, target, reduction="none")
    # Weights instead of a selection: the number of known voices stays on the GPU, without synchronisation.
    return (losses * known).sum() / known.sum().clamp(min=1)


def side_losses(
    model: Segmentation, first: Tensor, last: Tensor, labels: Tensor, mask: Tensor, identities: Tensor
) -> tuple[Tensor, Tensor]:
    """Pair and identity loss at 25 Hz from labels [N,3,T] at 50 Hz."""
    speakers = ((labels[:, :, 0::2] + labels[:, :, 1::2]) >= 1).float()
    alone = (speakers.sum(1) == 1).float() * mask[:, 0::2]
    return pair_loss(model, last, alone, speakers), identity_loss(model, first, alone, speakers, identities)


def error_rates(logs: Tensor, labels: Tensor, mask: Tensor) -> dict[str, float]:
    """Frame-wise DER with the best mapping per window and its components, in percent of labelled speech; overlap found
    in percent."""
    guess = CLASS_SPEAKERS[logs.argmax(-1)].permute(0, 2, 1)
    labels, mask = labels.long(), mask.long()
    spoken, claimed = labels.sum(1), guess.sum(1)
    right = torch.stack([(guess * labels[:, p] * mask[:, None]).sum((1, 2)) for p in PERMUTATIONS], 1).max(1)[0].sum()
    missed = ((spoken - claimed).clamp(min=0) * mask).sum()
    invented = ((claimed - spoken).clamp(min=0) * mask).sum()
    confused = (torch.minimum(spoken, claimed) * mask).sum() - right
    total = float((spoken * mask).sum())
    overlap = (spoken > 1) & (mask > 0)
    found = 100 * float(((claimed > 1) & overlap).sum()) / max(1.0, float(overlap.sum()))
    parts = {"missed": missed, "false_alarm": invented, "confusion": confused}
    rates = {name: 100 * float(value) / total for name, value in parts.items()}
    return {"der": sum(rates.values()), **rates, "overlap_found": found}
