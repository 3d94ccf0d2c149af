"""What a disk may contain after a power cut.

Owns:  crash states: a moment in the log of a disk, and one of the ways the disk may look then.
Rule 1: what was synced before the moment is there, in full. Of everything later any part may be
        there: each operation whole, not at all, or torn between sectors, in any combination.
Rule 2: a state is drawn from a seed, so that a number replays it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, assert_never

from tests.support.power_vfs import DiskOperation, Link, Sync, SyncNames, Truncate, Unlink, Write

SECTOR_BYTES: Final = 512
_KEEP_SHARES: Final = (0.0, 0.3, 0.7, 0.95, 1.0)
_TEAR_SHARES: Final = (0.0, 0.1, 0.6)


@dataclass(frozen=True, slots=True)
class CrashState:
    """The files of one directory after a power cut."""

    number: int
    moment: int  # so many operations had been asked of the disk
    files: dict[str, bytes]


@dataclass(slots=True)
class _File:
    """What a file surely holds, and what it may hold besides."""

    synced: bytearray = field(default_factory=bytearray)
    loose: list[Write | Truncate] = field(default_factory=list)


class _Disk:
    """A disk while its log is played forwards."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._names: dict[str, int] = {}
        self._loose_names: list[Link | Unlink] = []

    def do(self, operation: DiskOperation) -> None:
        """Play one operation."""
        match operation:
            case Write(file=file) | Truncate(file=file):
                self._files[file].loose.append(operation)
            case Sync(file=file):
                known = self._files[file]
                for loose in known.loose:
                    _perform(known.synced, loose)
                known.loose.clear()
            case Link(file=file):
                self._files[file] = _File()
                self._loose_names.append(operation)
            case Unlink():
                self._loose_names.append(operation)
            case SyncNames():
                for change in self._loose_names:
                    _rename(self._names, change)
                self._loose_names.clear()
            case _:
                assert_never(operation)

    def lose_power(self, chance: Random) -> dict[str, bytes]:
        """Draw one of the ways the disk may look when it comes back."""
        keep, tear = chance.choice(_KEEP_SHARES), chance.choice(_TEAR_SHARES)
        names = dict(self._names)
        for change in self._loose_names:
            if chance.random() < keep:
                _rename(names, change)
        return {
            name: _survivor(self._files[file], chance, keep=keep, tear=tear)
            for name, file in names.items()
        }


def _survivor(file: _File, chance: Random, *, keep: float, tear: float) -> bytes:
    image = bytearray(file.synced)
    for loose in file.loose:
        if chance.random() >= keep:
            continue
        if isinstance(loose, Write) and chance.random() < tear:
            for part in _torn(loose, chance):
                _perform(image, part)
        else:
            _perform(image, loose)
    return bytes(image)


def _torn(write: Write, chance: Random) -> Iterator[Write]:
    """Yield the sectors of a write that made it."""
    begin, end = write.offset, write.offset + len(write.data)
    while begin < end:
        until = min(end, (begin // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if chance.random() < 0.5:
            at = begin - write.offset
            yield Write(write.file, begin, write.data[at : at + until - begin])
        begin = until


def _perform(image: bytearray, operation: Write | Truncate) -> None:
    match operation:
        case Write(offset=offset, data=data):
            if len(image) < offset:
                image.extend(bytes(offset - len(image)))
            image[offset : offset + len(data)] = data
        case Truncate(size=size):
            if size < len(image):
                del image[size:]
            else:
                image.extend(bytes(size - len(image)))


def _rename(names: dict[str, int], change: Link | Unlink) -> None:
    match change:
        case Link(name=name, file=file):
            names[name] = file
        case Unlink(name=name):
            names.pop(name, None)


def draw_states(
    log: Sequence[DiskOperation], numbers: range, *, seed: int, moments: range | None = None
) -> Iterator[CrashState]:
    """Yield one state for each number, ordered by the moment the power goes."""
    moments = moments if moments is not None else range(len(log) + 1)
    drawn = []
    for number in numbers:
        chance = Random(f"{seed}:{number}")
        drawn.append((chance.choice(moments), number, chance))
    disk, done = _Disk(), 0
    for moment, number, chance in sorted(drawn, key=lambda each: each[:2]):
        for operation in log[done:moment]:
            disk.do(operation)
        done = moment
        yield CrashState(number, moment, disk.lose_power(chance))
