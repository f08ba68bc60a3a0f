"""Worker processes of the preparing steps.

If one is killed, the step ends with an error; `multiprocessing.Pool` would wait forever.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context


@contextmanager
def workers(
    count: int, start: Callable | None = None, arguments: tuple = (), method: str | None = None
) -> Iterator[ProcessPoolExecutor]:
    """`count` processes that call `start(*arguments)` first; `map` of the pool gives results in the order of its
    input."""
    pool = ProcessPoolExecutor(count, get_context(method), start, arguments)
    try:
        yield pool
    except BrokenProcessPool:
        raise SystemExit(
            "a worker process ended early. Without an error above, it was killed, "
            "probably for lack of memory: use fewer --processes"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
