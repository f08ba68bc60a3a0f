"""Parts of the segmentation's training: the C kernels against PyTorch, losses, scoring, the renderer against numpy,
two processes against one, and training on a GPU if there is one.
"""

import os
import socket
import tempfile
import unittest
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from torch import nn

from segmentation.evaluate import score
from segmentation.frontend import HOP_SAMPLES, mel_power
from segmentation.kernels import Depthwise, bidirectional_gru, library
from segmentation.losses import permutation_loss, side_losses, soft_label_loss
from segmentation.model import CLASS_SPEAKERS, Segmentation, load_weights
from segmentation.prepare_voices import SAMPLE_SCALE
from segmentation.render import Renderer, drawn_responses
from segmentation.together import Together
from segmentation.train import shortened

TOLERANCE = 2e-3
"""Relative."""


def _gradients(module: nn.Module, x: torch.Tensor, weight: torch.Tensor, run) -> dict[str, torch.Tensor]:
    module.zero_grad()
    x.grad = None
    out = run()
    (out * weight).sum().backward()
    return {"out": out.detach(), "x": x.grad.clone(), **{name: p.grad.clone() for name, p in module.named_parameters()}}


def _compare(name: str, expected: dict[str, torch.Tensor], got: dict[str, torch.Tensor]) -> None:
    for key, value in expected.items():
        difference = float((value - got[key]).abs().max() / value.abs().max())
        if difference > TOLERANCE:
            raise AssertionError(f"{name}, {key}: {difference:.1e}")


def _one_of_two(number: int, port: int, results) -> None:
    os.environ.update(WORLD_SIZE="2", RANK=str(number), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    together, parameter = Together(), nn.Parameter(torch.zeros(2, 3))
    parameter.grad = torch.full((2, 3), float(number + 1))
    together.average_gradients([parameter, nn.Parameter(torch.zeros(4))])
    results.put((float(parameter.grad.min()), float(parameter.grad.max()), together.of_first(10.0 + number)))
    together.close()


def _check_rendered(device: str) -> None:
    """Speech that is mixed on a device, in rooms, equals numpy's mixture."""
    rng = np.random.default_rng(6)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "index.csv").write_text("file,kind\n")
        samples = rng.normal(0, 300, (500, HOP_SAMPLES)).astype("<i2")
        samples.tofile(folder / "waves.i16")
        renderer = Renderer(folder, folder).to(device)
        source, response = np.full((1, 5, 500), -1, np.int32), np.full((1, 5), -1, np.int32)
        source[0, 0, 20:120], source[0, 3, 60:400] = np.arange(100), np.arange(150, 490)
        gain, equaliser, share = np.ones((1, 5, 500)), np.zeros((1, 5, 64)), np.tile(np.float32([1, 0]), (1, 5, 1))
        gain[0, 3], equaliser[0, 0], response[0, 3], share[0, 3] = 0.5, 6, 7, (0.6, 0.8)
        echo = np.zeros((1, 5, 2), np.float32)
        echo[0, 3] = 4000, 0.4
        got = (
            renderer.speech(
                *(torch.from_numpy(part).to(device) for part in (source, gain, equaliser, response, share, echo))
            )[0]
            .cpu()
            .numpy()
        )
    mixed, other = np.zeros(500 * HOP_SAMPLES), np.zeros(500 * HOP_SAMPLES)
    mixed[20 * HOP_SAMPLES : 120 * HOP_SAMPLES] = samples[:100].ravel() * 10 ** (6 / 20)
    other[60 * HOP_SAMPLES : 400 * HOP_SAMPLES] = samples[150:490].ravel() * 0.5
    response = 0.8 * drawn_responses()[7]
    response[0] += 0.6
    response[4000:] += 0.4 * response[:-4000]
    expected = mel_power(((mixed + np.convolve(other, response)[: len(other)]) / SAMPLE_SCALE).astype(np.float32))
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-6)


def _step(device: str, half: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses [3] and all gradients [P] of one batch of random windows."""
    torch.manual_seed(2)
    model = Segmentation(identities=40).train()
    x, labels, mask = torch.randn(8, 64, 1000), torch.rand(8, 3, 20) < 0.4, torch.rand(8, 500) < 0.9
    identities = torch.randint(-1, 40, (8, 3))
    model, x, mask, identities = model.to(device), x.to(device), mask.float().to(device), identities.to(device)
    labels = labels.repeat_interleave(25, 2).float().to(device)
    with torch.autocast(device, dtype=torch.bfloat16, enabled=half):
        logs, first, last = model(x, heads=True)
    losses = torch.stack(
        [permutation_loss(logs, labels, mask).mean(), *side_losses(model, first, last, labels, mask, identities)]
    )
    losses.sum().backward()
    return losses.detach().cpu(), torch.cat([p.grad.flatten() for p in model.parameters()]).cpu()


def _check_device(device: str) -> None:
    """Losses and gradients on a device equal those on the CPU, up to the short mantissas of TF32 and bfloat16."""
    for half, tolerance in ((False, 0.02), (True, 0.1)):
        (expected, slope), (losses, got) = _step("cpu", half=False), _step(device, half)
        apart = float((losses / expected - 1).abs().max()), float((got - slope).norm() / slope.norm())
        if not max(apart) < tolerance:
            raise AssertionError(f"{device}, {half=}: losses differ by {apart[0]:.1e}, gradients by {apart[1]:.1e}")


class SegmentationParts(unittest.TestCase):
    def test_kernels_are_those_of_pytorch(self) -> None:
        library()
        assert np.float32(1e-40) * np.float32(1) != 0, "the kernels have changed the floating-point mode of the process"
        torch.manual_seed(0)
        x, weight = torch.randn(6, 50, 128, requires_grad=True), torch.randn(6, 50, 128)
        gru = nn.GRU(128, 64, batch_first=True, bidirectional=True)
        _compare(
            "GRU",
            _gradients(gru, x, weight, lambda: gru(x)[0]),
            _gradients(gru, x, weight, lambda: bidirectional_gru(gru, x)),
        )
        conv = nn.Conv1d(128, 128, 15, padding=7, groups=128)
        plain = _gradients(conv, x, weight, lambda: conv(x.transpose(1, 2)).transpose(1, 2))
        _compare(
            "depthwise convolution",
            plain,
            _gradients(conv, x, weight, lambda: Depthwise.apply(x, conv.weight, conv.bias)),
        )

    def test_two_processes_average_gradients(self) -> None:
        """Gradients of 1 and 2 are 1.5 in both processes, and both use the clock of the first one."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        context = get_context("spawn")
        results = context.Queue()
        processes = [context.Process(target=_one_of_two, args=(number, port, results)) for number in range(2)]
        for process in processes:
            process.start()
        assert [results.get(timeout=60) for _ in processes] == [(1.5, 1.5, 10.0)] * 2
        for process in processes:
            process.join()

    def test_losses_do_not_depend_on_the_order_of_speakers(self) -> None:
        """Both losses are the same for hard labels in any order of the speakers."""
        rng = torch.Generator().manual_seed(1)
        classes = torch.randint(7, (4, 100), generator=rng)
        logs = torch.randn(4, 100, 7, generator=rng).log_softmax(-1)
        hard = permutation_loss(logs, CLASS_SPEAKERS[classes].permute(0, 2, 1), torch.ones(4, 100))
        for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
            labels = CLASS_SPEAKERS[classes][:, :, order].permute(0, 2, 1)
            assert torch.allclose(permutation_loss(logs, labels, torch.ones(4, 100)), hard, atol=1e-5)
        assert torch.allclose(soft_label_loss(logs, torch.eye(7)[classes], torch.ones(4, 100)), hard, atol=1e-5)

    def test_added_blocks_change_nothing_at_first(self) -> None:
        """Added blocks do not change the output at first, and each has gradients from the first step on."""
        torch.manual_seed(4)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weights.pt"
            torch.save(Segmentation().state_dict(), path)
            shallow, deep = load_weights(path).eval(), load_weights(path, blocks=6).eval()
        x = torch.randn(2, 64, 200)
        assert len(deep.blocks) == 6 and torch.equal(shallow(x), deep(x))
        deep.train()(x)[..., 0].sum().backward()
        for block in deep.blocks[4:]:
            assert any(float(parameter.grad.abs().max()) > 0 for parameter in block.parameters())

    def test_shortened_windows_have_no_mean(self) -> None:
        """A span of a window has a mean of zero over its time, and two feature frames per label."""
        x = shortened(torch.randn(2, 1000, 64) + 3, slice(100, 250))
        assert x.shape == (2, 300, 64) and float(x.mean(1).abs().max()) < 1e-5

    def test_scoring(self) -> None:
        reference, guess = np.zeros((2, 100), np.uint8), np.zeros((3, 100), np.uint8)
        reference[0, :50], reference[1, 40:80] = 1, 1
        guess[2, :45], guess[0, 45:90] = 1, 1
        counts = score(reference, guess)
        expected = dict(
            total=90,
            missed=10,
            false_alarm=10,
            confusion=0,
            overlap=10,
            overlap_found=0,
            speech_missed=0,
            speech_invented=10,
        )
        assert dict(counts) == expected, counts

    def test_rendered_windows_are_those_of_numpy(self) -> None:
        _check_rendered("cpu")

    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")
    def test_gpu(self) -> None:
        _check_device("cuda")
        _check_rendered("cuda")
