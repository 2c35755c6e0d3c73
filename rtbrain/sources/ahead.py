"""Reading ahead: what comes from a disk must not make a stream late."""

from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Final, TypeVar

T = TypeVar("T")

_POLL_S: Final = 0.1
_END: Final = object()


def ahead(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """Give the same items, of which so many are made in a thread before they are asked for.

    An error comes where its item would have come. Closing the iterator ends the thread.
    """
    queue: Queue[object] = Queue(depth)
    stop = Event()

    def put(item: object) -> None:
        while not stop.is_set():
            try:
                queue.put(item, timeout=_POLL_S)
                return
            except Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
            put(_END)
        except BaseException as error:  # whatever it is, it belongs to who reads
            put(_Failure(error))

    thread = Thread(target=work, name="read ahead", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = queue.get(timeout=_POLL_S)
            except Empty:
                continue
            if item is _END:
                return
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        thread.join()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
