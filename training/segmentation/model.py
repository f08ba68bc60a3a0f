"""The network: log-mel features [N,64,frames at 100 Hz] -> log-probabilities of seven powerset classes at 50 Hz.

Convolutions to 25 Hz, then two pairs of an attention block and a bidirectional GRU, then back to 50 Hz with a skip
connection. Two heads (speaker embeddings of frames) are used only in the training and dropped at export. On the CPU it
is trained with the C kernels, on a GPU with PyTorch's operations.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .frontend import BANDS, FEATURE_SCALE, POWER_FLOOR
from .kernels import Depthwise, bidirectional_gru

CLASSES = "none,1,2,3,1+2,1+3,2+3"
CLASS_SPEAKERS = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]])
"""The local speakers of each class, [7,3]."""

WIDTH, HEADS, FEED_FORWARD, GRU_UNITS, TAPS, SKIP = 128, 4, 192, 64, 15, 96
BLOCKS = 4
"""Alternating attention and GRU; networks may have more (`load_weights`)."""
IDENTITY_SIZE, PAIR_SIZE = 64, 48
TRAINING_ONLY = ("identity_head", "pair_head", "pair_scale", "identity_centres")


def features_of(power: Tensor) -> Tensor:
    """Mel power of windows [N,64,F] -> log features of the same shape, equal to `frontend.log_features`."""
    logs = torch.log(power / (power.mean((1, 2), keepdim=True) + POWER_FLOOR) + POWER_FLOOR)
    return (logs - logs.mean(2, keepdim=True)) * FEATURE_SCALE


class SelfAttention(nn.Module):
    """Multi-head attention without a position code, [B,T,128] -> [B,T,128]."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, _ = x.shape
        size = WIDTH // HEADS
        query, key, value = self.qkv(x).reshape(batch, -1, 3, HEADS, size).permute(2, 0, 3, 1, 4).unbind(0)
        if x.is_cuda:
            mixed = F.scaled_dot_product_attention(query, key, value)
        else:
            weights = torch.matmul(query * size**-0.5, key.transpose(2, 3)).softmax(-1)
            mixed = torch.matmul(weights, value)
        return self.out(mixed.transpose(1, 2).reshape(batch, -1, WIDTH))


class AttentionBlock(nn.Module):
    """Pre-norm residual block: depthwise convolution + pointwise, self-attention, feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_conv, self.norm_attention, self.norm_forward = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, TAPS, padding=TAPS // 2, groups=WIDTH)
        self.pointwise = nn.Linear(WIDTH, WIDTH)
        self.attention = SelfAttention()
        self.widen, self.narrow = nn.Linear(WIDTH, FEED_FORWARD), nn.Linear(FEED_FORWARD, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm_conv(x)
        if self.training and not x.is_cuda:
            y = Depthwise.apply(y, self.depthwise.weight, self.depthwise.bias)
        else:
            y = self.depthwise(y.transpose(1, 2)).transpose(1, 2)
        x = x + self.pointwise(torch.relu(y))
        x = x + self.attention(self.norm_attention(x))
        return x + self.narrow(torch.relu(self.widen(self.norm_forward(x))))


class GruBlock(nn.Module):
    """Residual bidirectional GRU of 64 units a side."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.gru = nn.GRU(WIDTH, GRU_UNITS, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        if not x.is_cuda:
            return x + (bidirectional_gru(self.gru, y) if self.training else self.gru(y)[0])
        # In float32: autocast makes a GRU of cuDNN one of float16, whose gradients would have to be scaled.
        with torch.autocast("cuda", enabled=False):
            return x + self.gru(y.float())[0]


class Segmentation(nn.Module):
    """See the module's docstring; `identities` is the number of training voices of the identity loss (0: none)."""

    def __init__(self, identities: int = 0, blocks: int = BLOCKS) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv1d(BANDS, WIDTH, 6, stride=2, padding=2, bias=False), nn.BatchNorm1d(WIDTH)
        self.conv2, self.norm2 = nn.Conv1d(WIDTH, WIDTH, 3, padding=1, bias=False), nn.BatchNorm1d(WIDTH)
        self.down = nn.Conv1d(WIDTH, WIDTH, 2, stride=2)
        self.blocks = nn.ModuleList([(AttentionBlock, GruBlock)[number % 2]() for number in range(blocks)])
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.skip = nn.Linear(WIDTH, 2 * SKIP), nn.Conv1d(WIDTH, SKIP, 1)
        self.conv3, self.out = nn.Conv1d(SKIP, 64, 3, padding=1), nn.Linear(64, 7)
        self.identity_head, self.pair_head = nn.Linear(WIDTH, IDENTITY_SIZE), nn.Linear(WIDTH, PAIR_SIZE)
        self.pair_scale = nn.Parameter(torch.tensor([5.0, -2.0]))
        self.identity_centres = nn.Parameter(torch.randn(identities, IDENTITY_SIZE) * 0.1) if identities else None

    def forward(self, x: Tensor, heads: bool = False) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """x [N,64,F100] -> [N,F50,7]; with `heads` also identity embeddings [N,F25,64] and pair embeddings
        [N,F25,48]."""
        fine = torch.relu(self.norm1(self.conv1(x)))
        fine = fine + torch.relu(self.norm2(self.conv2(fine)))
        z = self.down(fine).transpose(1, 2).float()
        first = z
        for number, block in enumerate(self.blocks):
            z = block(z)
            if number == 0:
                first = z
        z = self.norm(z)
        batch = z.shape[0]
        wide = self.up(z).reshape(batch, -1, SKIP).transpose(1, 2)
        wide = torch.relu(wide + self.skip(fine)[:, :, : wide.shape[2]])
        wide = torch.relu(self.conv3(wide)).transpose(1, 2)
        logs = F.log_softmax(self.out(wide).float(), -1)
        if not heads:
            return logs
        return logs, self.identity_head(first).float(), self.pair_head(z).float()


@torch.no_grad()
def silence(block: nn.Module) -> None:
    """Makes a residual block add nothing, so that a deeper network starts equal to its origin; some of the block's
    gradients are not zero."""
    if isinstance(block, GruBlock):
        for parameter in block.gru.parameters():
            parameter[2 * GRU_UNITS :] = 0  # a state of zeros stays zero for all gates
    else:
        for layer in (block.pointwise, block.attention.out, block.narrow):
            layer.weight.zero_()
            layer.bias.zero_()


def blocks_in(state: dict[str, Tensor]) -> int:
    """Number of blocks in a state_dict."""
    return 1 + max(int(name.split(".")[1]) for name in state if name.startswith("blocks."))


def stored_state(path: str) -> dict[str, Tensor]:
    """The averaged weights of a checkpoint ("average" in it), or a plain state_dict."""
    state = torch.load(path, map_location="cpu")
    return state.get("average", state)


def load_weights(path: str, identities: int = 0, blocks: int | None = None) -> Segmentation:
    """A model with the weights of `stored_state`.

    It has the stored blocks; with `blocks`, further ones at the end that initially add nothing.
    """
    state = stored_state(path)
    stored = blocks_in(state)
    if blocks is not None and blocks < stored:
        raise ValueError(f"{path} has {stored} blocks, more than {blocks}")
    model = Segmentation(identities, blocks or stored)
    for block in model.blocks[stored:]:
        silence(block)
    wanted = model.state_dict()
    kept = {
        name: value.to(wanted[name].dtype)
        for name, value in state.items()
        if name in wanted and value.shape == wanted[name].shape
    }
    model.load_state_dict(kept, strict=False)
    missing = [name for name in wanted if name not in kept and not name.endswith("num_batches_tracked")]
    new = tuple(f"blocks.{number}." for number in range(stored, len(model.blocks)))
    missing = [name for name in missing if not name.startswith((*TRAINING_ONLY, *new))]
    if missing:
        raise ValueError(f"{path} lacks {missing}")
    return model
