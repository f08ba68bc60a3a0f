"""Simulators in separate processes, which pass batches through shared memory, and the copying of batches to a GPU.

Every worker owns a few slots of the shared memory and one pipe for slot numbers: it fills the slots that the trainer
has returned. If the trainer exits, a worker reads the end of its pipe and stops; if a worker exits, the trainer raises
an error.
"""

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .render import Renderer
from .simulate import Shapes, Simulator

SLOTS = 2
"""Slots of every worker: one is filled while the other one waits."""
READY_BATCHES = 3
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
}
"""The last two keep freed memory in the process: arrays of a window are so large that each would otherwise be mapped
and zeroed again (a seventh of the time)."""


class Slots:
    """Shared memory for batches of the arrays of windows, which any process can open."""

    def __init__(self, context: multiprocessing.context.BaseContext, count: int, batch: int, shapes: Shapes):
        self.shapes = [((count, batch, *shape), kind) for shape, kind in shapes]
        self.memory = [
            context.RawArray("B", int(np.prod(shape)) * np.dtype(kind).itemsize) for shape, kind in self.shapes
        ]

    def arrays(self) -> list[np.ndarray]:
        return [np.frombuffer(memory, kind).reshape(shape) for memory, (shape, kind) in zip(self.memory, self.shapes)]


def _work(pipe: Connection, slots: Slots, make: Callable[[Any], Simulator], seed: list[int]) -> None:
    """Fill slots until the trainer exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            simulator, arrays = make(seed), slots.arrays()
            while True:
                slot = pipe.recv()
                for row in range(arrays[0].shape[1]):
                    for array, part in zip(arrays, simulator.window()):
                        array[slot, row] = part
                pipe.send(slot)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception:
            pipe.send(traceback.format_exc())


class Workers:
    """Processes that simulate. `make` (importable by name) creates a simulator for a seed: that of worker n is [*seed,
    n].

    Batches are returned in the order of completion, which differs between runs.
    """

    def __init__(self, count: int, batch: int, shapes: Shapes, make: Callable[[Any], Simulator], seed: list[int]):
        context = multiprocessing.get_context("spawn")
        slots = Slots(context, count * SLOTS, batch, shapes)
        self.arrays, self.ready = slots.arrays(), deque[tuple[Connection, int]]()
        self.pipes: list[Connection] = []
        self.processes: list[multiprocessing.process.BaseProcess] = []
        before = {name: os.environ.get(name) for name in WORKER_ENVIRONMENT}
        os.environ.update(WORKER_ENVIRONMENT)
        try:
            for number in range(count):
                own, other = context.Pipe()
                process = context.Process(target=_work, args=(other, slots, make, [*seed, number]), daemon=True)
                process.start()
                other.close()
                self.pipes.append(own)
                self.processes.append(process)
                for slot in range(number * SLOTS, (number + 1) * SLOTS):
                    own.send(slot)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def batch(self, take: Callable[[list[np.ndarray]], Any]) -> Any:
        """Returns the result of `take` on the arrays of the next batch. A later batch overwrites the arrays."""
        while not self.ready:
            for pipe in wait(self.pipes):
                try:
                    slot = pipe.recv()
                except (EOFError, ConnectionResetError):
                    raise RuntimeError(f"simulator process {self.pipes.index(pipe)} has died") from None
                if isinstance(slot, str):
                    raise RuntimeError(f"simulator process {self.pipes.index(pipe)} failed:\n{slot}")
                self.ready.append((pipe, slot))
        pipe, slot = self.ready.popleft()
        taken = take([array[slot] for array in self.arrays])
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.send(slot)  # if the worker has died, the next wait reports it
        return taken

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()


def copied(arrays: list[np.ndarray]) -> list[Tensor]:
    return [torch.from_numpy(array.copy()) for array in arrays]


class ToGpu:
    """Batches of workers on the GPU, copied by a separate thread through page-locked memory while the GPU computes."""

    def __init__(self, workers: Workers, device: torch.device):
        self.workers, self.device, self.stopped = workers, device, False
        self.ready: queue.Queue[list[Tensor] | Exception] = queue.Queue(READY_BATCHES)
        self.thread = threading.Thread(target=self._copy, daemon=True)
        self.thread.start()

    def _copy(self) -> None:
        try:
            stream = torch.cuda.Stream(self.device)
            pinned = [torch.from_numpy(array[0].copy()).pin_memory() for array in self.workers.arrays]

            def take(arrays: list[np.ndarray]) -> None:
                for memory, array in zip(pinned, arrays):
                    memory.copy_(torch.from_numpy(array))

            while not self.stopped:
                self.workers.batch(take)
                with torch.cuda.stream(stream):
                    batch = [memory.to(self.device, non_blocking=True) for memory in pinned]
                stream.synchronize()
                self.ready.put(batch)
        except Exception as error:
            self.ready.put(error)

    def batch(self) -> list[Tensor]:
        got = self.ready.get()
        if isinstance(got, Exception):
            raise got
        for tensor in got:  # the copying stream owns the memory and must not reuse it before this stream has finished
            tensor.record_stream(torch.cuda.current_stream(self.device))
        return got

    def close(self) -> None:
        self.stopped = True
        while self.thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self.ready.get(timeout=0.1)


class Source:
    """Features, labels, mask and identities of batches on the device, from workers or from `simulator`.

    renderer: computes the windows if they are plans
    """

    def __init__(
        self,
        simulator: Simulator,
        workers: Workers | None,
        batch: int,
        device: torch.device,
        renderer: Renderer | None = None,
    ):
        self.simulator, self.workers, self.size, self.device, self.renderer = (
            simulator,
            workers,
            batch,
            device,
            renderer,
        )
        self.on_gpu = ToGpu(workers, device) if workers and device.type == "cuda" else None

    def batch(self) -> list[Tensor]:
        drawn = self._drawn()
        return [self.renderer(drawn[:-3]), *drawn[-3:]] if self.renderer else drawn

    def _drawn(self) -> list[Tensor]:
        if self.on_gpu:
            return self.on_gpu.batch()
        if self.workers:
            return self.workers.batch(copied)
        return [torch.from_numpy(part).to(self.device) for part in self.simulator.batch(self.size)]

    def close(self) -> None:
        if self.on_gpu:
            self.on_gpu.close()
        if self.workers:
            self.workers.close()
