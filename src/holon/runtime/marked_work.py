"""Work of a turn, marked as such whenever it has the processor.

Owns:  the step by step marking of a coroutine.
Rule 1: the mark stands only while the turn itself runs, never while it waits. Of all turns that are
        open when a process hangs or is killed, the one that had the processor is then known, and
        those that only waited are not blamed for it.
"""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from holon.model.ids import TurnId
from holon.ports.turn_mark import TurnMark

T = TypeVar("T")


class Marked(Generic[T]):
    """Awaiting this awaits the work, and keeps the mark."""

    def __init__(self, work: Coroutine[Any, Any, T], mark: TurnMark, turn_id: TurnId) -> None:
        self._work = work
        self._mark = mark
        self._turn_id = turn_id

    def __await__(self) -> Generator[Any, Any, T]:
        step, thrown = self._work.send, None
        answer: Any = None
        while True:
            self._mark.enter(self._turn_id)
            try:
                awaited = step(answer) if thrown is None else self._work.throw(thrown)
            except StopIteration as ended:
                result: T = ended.value
                return result
            finally:
                self._mark.leave()
            try:
                answer, thrown = (yield awaited), None
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is the work's to take
                answer, thrown = None, error
