"""Worker processes of the preparing steps.

One that is killed ends the step with an error; `multiprocessing.Pool` would wait for its work for ever.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context


@contextmanager
def workers(count: int, start: Callable | None = None, arguments: tuple = (), method: str | None = None) -> Iterator[ProcessPoolExecutor]:
    """`count` processes that call `start(*arguments)` first; `map` of the pool gives results in the order of what it is given."""
    pool = ProcessPoolExecutor(count, get_context(method), start, arguments)
    try:
        yield pool
    except BrokenProcessPool:
        raise SystemExit("a worker process ended early. Where no error stands above, it was killed, probably for memory: run again with fewer --processes") from None
    finally:
        pool.shutdown(cancel_futures=True)
