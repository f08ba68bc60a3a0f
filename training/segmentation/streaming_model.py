"""The streaming form of the network: nothing in it looks ahead but convolutions, 0.44 s in all, so that its state can be carried on.

Same parts and almost the same weights as `model.Segmentation`. The two sides of a GRU both run forwards, attention sees what came before, and a depthwise
convolution has four taps to its right instead of seven. A state lives for `LIFE_SECONDS`, as long as a training sequence; in live use a second one starts in
the middle of its life and takes over at the end, so that between the half and the whole of it has always been heard.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .kernels import Depthwise, Recurrence
from .model import GRU_UNITS, HEADS, TAPS, WIDTH, AttentionBlock, GruBlock, Segmentation, SelfAttention

LIFE_SECONDS = 16
RIGHT_TAPS = 4
LEFT_TAPS = TAPS // 2
KEPT_TAPS = LEFT_TAPS + 1 + RIGHT_TAPS


class CausalAttention(SelfAttention):
    """Multi-head attention of every frame to itself and those before it, [B,T,128] -> [B,T,128]."""

    def forward(self, x: Tensor) -> Tensor:
        batch, time, _ = x.shape
        query, key, value = self.qkv(x).reshape(batch, time, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).reshape(batch, time, WIDTH))


class CausalAttentionBlock(AttentionBlock):
    """`AttentionBlock` whose convolution sees four frames ahead, and whose attention none."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = CausalAttention()
        self.register_buffer("kept", (torch.arange(TAPS) < KEPT_TAPS).float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        y = Depthwise.apply(self.norm_conv(x), self.depthwise.weight * self.kept, self.depthwise.bias)
        x = x + self.pointwise(torch.relu(y))
        x = x + self.attention(self.norm_attention(x))
        return x + self.narrow(torch.relu(self.widen(self.norm_forward(x))))


class CausalGruBlock(GruBlock):
    """Residual pair of GRUs of 64 units, both forwards: the parameters of the backward side make the second of them."""

    def forward(self, x: Tensor) -> Tensor:
        y, gru, sides = self.norm(x), self.gru, []
        for suffix in ("", "_reverse"):
            gates = F.linear(y, getattr(gru, "weight_ih_l0" + suffix), getattr(gru, "bias_ih_l0" + suffix))
            sides.append(Recurrence.apply(gates, getattr(gru, "weight_hh_l0" + suffix), getattr(gru, "bias_hh_l0" + suffix), False))
        return x + torch.cat(sides, -1)


class StreamingSegmentation(Segmentation):
    """[N,64,F100] -> [N,F50,7] over a whole life of a state at once, for training; `streaming_export.py` runs it piece by piece."""

    kinds = (CausalAttentionBlock, CausalGruBlock)
