"""The C kernels of `kernels.c` as autograd functions, compiled on first use with the system's C compiler."""

import ctypes
import hashlib
import os
import platform
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SOURCE = Path(__file__).with_name("kernels.c")
COMPILER_FLAGS = ["-O3", "-march=native", "-ffast-math", "-fPIC"]
LINKER_FLAGS = ["-shared", "-lm"]
"""Without -ffast-math: a library that is linked with it makes the process treat denormal numbers as zero."""


def _own_folder() -> Path:
    """A folder in which only this user can write libraries that this process loads."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollcall-kernels"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) != 0o700:
        raise PermissionError(
            f"{folder} must be a folder of yours with mode 0700: remove it, or name another folder in XDG_CACHE_HOME"
        )
    return folder


@cache
def library() -> ctypes.CDLL:
    """The compiled kernels, cached in a private folder under a hash of the source, the flags and the machine."""
    key = hashlib.sha256(
        SOURCE.read_bytes() + " ".join([*COMPILER_FLAGS, *LINKER_FLAGS, platform.node()]).encode()
    ).hexdigest()[:16]
    target = _own_folder() / f"segmentation-{key}.so"
    if not target.exists():
        compiler = os.environ.get("CC", "cc")
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            compiled, linked = Path(folder) / "kernels.o", Path(folder) / target.name
            subprocess.run([compiler, *COMPILER_FLAGS, "-c", str(SOURCE), "-o", str(compiled)], check=True)
            subprocess.run([compiler, str(compiled), *LINKER_FLAGS, "-o", str(linked)], check=True)
            os.replace(linked, target)
    return ctypes.CDLL(str(target))


def _pointer(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _float(tensor: Tensor) -> Tensor:
    return tensor.float().contiguous()


class Recurrence(torch.autograd.Function):
    """GRU over time: input gates [B,T,192], recurrent weights [192,64] and bias [192] -> hidden [B,T,64]."""

    @staticmethod
    def forward(context, gates: Tensor, weights: Tensor, bias: Tensor, reverse: bool) -> Tensor:
        gates, weights, bias = _float(gates), _float(weights), _float(bias)
        batch, time, _ = gates.shape
        hidden, saved, scratch = torch.empty(batch, time, 64), torch.empty(batch, time, 256), torch.empty(batch * 256)
        turned = weights.t().contiguous()
        pointers = [_pointer(t) for t in (gates, turned, bias, hidden, saved, scratch)]
        library().gru_forward(*pointers, batch, time, int(reverse))
        context.save_for_backward(weights, hidden, saved)
        context.reverse = reverse
        return hidden

    @staticmethod
    def backward(context, d_hidden: Tensor):
        weights, hidden, saved = context.saved_tensors
        d_hidden = _float(d_hidden)
        batch, time, _ = hidden.shape
        d_inputs, d_gates, scratch = (
            torch.empty(batch, time, 192),
            torch.empty(batch, time, 192),
            torch.empty(batch * 448),
        )
        pointers = [_pointer(t) for t in (d_hidden, weights, hidden, saved, d_inputs, d_gates, scratch)]
        library().gru_backward(*pointers, batch, time, int(context.reverse))
        previous = torch.zeros_like(hidden)
        if context.reverse:
            previous[:, :-1] = hidden[:, 1:]
        else:
            previous[:, 1:] = hidden[:, :-1]
        flat = d_gates.view(-1, 192)
        d_weights = flat.t() @ previous.view(-1, 64)
        return d_inputs, d_weights, flat.sum(0), None


def bidirectional_gru(gru: nn.GRU, x: Tensor) -> Tensor:
    """Equals gru(x)[0] for one bidirectional layer of 64 units, x [B,T,D] -> [B,T,128]."""
    sides = []
    for reverse, suffix in ((False, ""), (True, "_reverse")):
        gates = F.linear(x, getattr(gru, "weight_ih_l0" + suffix), getattr(gru, "bias_ih_l0" + suffix))
        sides.append(
            Recurrence.apply(gates, getattr(gru, "weight_hh_l0" + suffix), getattr(gru, "bias_hh_l0" + suffix), reverse)
        )
    return torch.cat(sides, -1)


class Depthwise(torch.autograd.Function):
    """Depthwise convolution over time, zero padding: x [B,T,128], weights [128,1,15], bias [128] -> [B,T,128]."""

    @staticmethod
    def forward(context, x: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
        x, bias = _float(x), _float(bias)
        batch, time, _ = x.shape
        turned, out = _float(weights[:, 0].t()), torch.empty_like(x)
        library().depthwise_forward(_pointer(x), _pointer(turned), _pointer(bias), _pointer(out), batch, time, 0)
        context.save_for_backward(x, turned)
        return out

    @staticmethod
    def backward(context, d_out: Tensor):
        x, turned = context.saved_tensors
        d_out = _float(d_out)
        batch, time, _ = x.shape
        d_x, d_weights, d_bias = torch.empty_like(x), torch.empty(15, 128), torch.empty(128)
        library().depthwise_forward(_pointer(d_out), _pointer(turned), None, _pointer(d_x), batch, time, 1)
        library().depthwise_weights(_pointer(x), _pointer(d_out), _pointer(d_weights), _pointer(d_bias), batch, time)
        return d_x, d_weights.t()[:, None].contiguous(), d_bias
