"""Readable ids that never come twice, also after a restart."""

from holon.model.values import IdPrefix, parse_record_id
from tests.support.sequential_ids import SequentialIds


def test_each_kind_counts_by_itself() -> None:
    ids = SequentialIds()
    made = [ids.fresh(p) for p in (IdPrefix.MESSAGE, IdPrefix.TURN, IdPrefix.MESSAGE)]
    assert made == ["msg_1", "turn_1", "msg_2"]
    assert parse_record_id(made[0], what="message id") == "msg_1"


def test_a_restarted_source_reuses_nothing() -> None:
    first = SequentialIds()
    before = [first.fresh(IdPrefix.MESSAGE) for _ in range(3)] + [first.fresh(IdPrefix.WAIT)]
    second = SequentialIds(after=first.highest)
    after = [second.fresh(p) for p in (IdPrefix.MESSAGE, IdPrefix.WAIT)]
    assert after == ["msg_4", "wait_4"]
    assert not set(before) & set(after)
    assert SequentialIds(after=second.highest).highest == 4
