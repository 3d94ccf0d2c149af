"""The memory index: what is found, in which scope, how exactly it is given back, and how fast."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import anyio
import pytest

from holon.adapters.sqlite.memory_index.index import SqliteMemoryIndex
from holon.adapters.sqlite.memory_index.indexes import SqliteMemoryIndexes
from holon.model.limits import MEMORY_INDEXES_OPEN_COUNT_MAX, MEMORY_SNIPPET_CHARS_MAX
from holon.model.memory.index import MemoryDocument, MemoryKind, MemoryScope, ScopeKind
from holon.model.queue import AuthorityClass
from holon.model.values import AgentId, WorkspaceId
from holon.ports.memory import IndexLostError, IndexUpdate
from tests.support.builders import MAIN, START

EVERYWHERE = MemoryScope(all_workspaces=True)
GARDEN = WorkspaceId("ws_garden")


def a_document(name: str, body: str, **fields: object) -> MemoryDocument:
    """A text with a name."""
    whole: dict[str, object] = {
        "kind": MemoryKind.BRIEF,
        "source_ref": f"brief:{name}",
        "source_key": f"brief:{name}",
        "agent_id": AgentId(MAIN),
        "title": body.split("\n", 1)[0][:40],
        "body": body,
        "updated_at": START,
        "authority_class": AuthorityClass.RUNTIME_INSTRUCTION,
    }
    return MemoryDocument(**(whole | fields))  # type: ignore[arg-type]


def update(*documents: MemoryDocument, through_seq: int | None = None) -> IndexUpdate:
    keys = tuple(each.source_key for each in documents)
    return IndexUpdate(source_keys=keys, documents=documents, through_seq=through_seq)


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[SqliteMemoryIndex]:
    made = SqliteMemoryIndex(str(tmp_path / "main"))
    await made.clear_for_rebuild("a test")
    yield made
    await made.close()


async def found(index: SqliteMemoryIndex, query: str, scope: MemoryScope = EVERYWHERE) -> list[str]:
    hits = await index.search(query, scope, limit=10)
    return [hit.source_ref.removeprefix("brief:") for hit in hits]


TEXTS = {
    "kettle": "The kettle in the tea room trips the fuse whenever the oven runs.",
    "bakery": "Ordered forty rye loaves for the autumn fair; the bakery delivers at seven.",
    "heron": "A heron nests behind the pump house, so mowing waits until July.",
    "茶壶": "茶水间的电热水壶一插上就跳闸,烤箱同时开着的时候必现。",
    "面包": "秋季集市订了四十个黑麦面包,面包房早上七点送到。",
    "mixed": "把 nightly_export 任务挪到周日凌晨,避免和备份抢磁盘。",
}


@pytest.mark.requirement("memory-index:finds-in-both-languages")
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("kettle fuse", "kettle"),
        ("who delivers loaf orders", "bakery"),
        ("HERONS nesting", "heron"),
        ("跳闸", "茶壶"),
        ("黑麦面包", "面包"),
        ("壶", "茶壶"),
        ("热水壶坏了", "茶壶"),
        ("备份 磁盘", "mixed"),
        ("nightly export 周日", "mixed"),
        ("export任务", "mixed"),
    ],
)
async def test_words_of_both_languages_find_their_text(
    index: SqliteMemoryIndex, query: str, best: str
) -> None:
    await index.apply(update(*(a_document(name, body) for name, body in TEXTS.items())))
    assert (await found(index, query))[0] == best


@pytest.mark.requirement("memory-index:exact-body")
async def test_a_text_comes_back_exactly_and_says_when_it_was_cut(index: SqliteMemoryIndex) -> None:
    body = "第一行:茶壶 tea\n\ttabs,  spaces \x00 and 😀 𠮷\r\nlast"
    await index.apply(update(a_document("odd", body)))
    whole = await index.get("brief:odd", chars_max=1_000)
    assert whole is not None
    assert (whole.content, whole.truncated) == (body, False)
    cut = await index.get("brief:odd", chars_max=5)
    assert cut is not None
    assert (cut.content, cut.truncated) == (body[:5], True)
    assert await index.get("brief:none", chars_max=5) is None


@pytest.mark.requirement("memory-index:exact-body")
async def test_a_snippet_is_cut_from_the_text_around_the_word(index: SqliteMemoryIndex) -> None:
    await index.apply(update(a_document("long", "寒" * 900 + "茶水间" + "暖" * 900)))
    (hit,) = await index.search("茶水间", EVERYWHERE, limit=5)
    assert "茶水间" in hit.snippet
    assert " " not in hit.snippet
    assert len(hit.snippet) <= MEMORY_SNIPPET_CHARS_MAX + 2
    assert hit.snippet.startswith("…寒")


@pytest.mark.requirement("memory-index:scope")
async def test_a_search_sees_the_agents_own_and_its_workspace_unless_it_asks_for_more(
    index: SqliteMemoryIndex,
) -> None:
    await index.apply(
        update(
            a_document("own", "mulch the beds"),
            a_document("here", "mulch for the garden", workspace_id=GARDEN),
            a_document("there", "mulch for the roof", workspace_id=WorkspaceId("ws_roof")),
        )
    )
    assert set(await found(index, "mulch", MemoryScope(workspace_id=GARDEN))) == {"own", "here"}
    assert set(await found(index, "mulch", MemoryScope())) == {"own"}
    assert set(await found(index, "mulch")) == {"own", "here", "there"}
    (own, *_) = await index.search("beds", EVERYWHERE, limit=1)
    assert own.scope_kind == ScopeKind.AGENT.value


@pytest.mark.requirement("memory-index:incremental")
async def test_a_source_is_replaced_with_all_its_documents_and_may_go(
    index: SqliteMemoryIndex,
) -> None:
    batch = [
        a_document(f"call:batch_item:{n}:cmd", f"make target{n}", source_key="call")
        for n in range(3)
    ]
    await index.apply(update(*batch, through_seq=7))
    assert len(await found(index, "make")) == 3
    once = a_document("call:batch_item:0:cmd", "ninja", source_key="call")
    await index.apply(update(once, through_seq=9))
    assert await found(index, "make") == []
    assert await found(index, "ninja") == ["call:batch_item:0:cmd"]
    await index.apply(IndexUpdate(source_keys=("call",), through_seq=11))
    facts = await index.facts()
    assert (facts.documents_count, facts.through_seq) == (0, 11)
    assert await found(index, "ninja") == []


@pytest.mark.requirement("memory-index:incremental")
async def test_feeding_the_same_twice_is_feeding_it_once(index: SqliteMemoryIndex) -> None:
    for _ in range(2):
        await index.apply(update(a_document("one", "twice told"), through_seq=3))
    assert await found(index, "twice") == ["one"]
    assert (await index.facts()).documents_count == 1


HOSTILE: Iterable[str] = (
    '" OR 1=1',
    "NEAR(",
    "NEAR(tea kettle, 2)",
    "*" * 10_000,
    "kettle*",
    '"unbalanced',
    "title : tea",
    "-tea",
    "^tea",
    "{title body}: tea",
    "tea AND",
    "(((((((((",
    "'; drop table documents; --",
    "\x00tea\x00",
    "\ud800 tea",
    "tea " * 5_000,
)


@pytest.mark.requirement("memory-index:s46-queries-are-words")
@pytest.mark.parametrize("query", HOSTILE, ids=range(len(tuple(HOSTILE))))
async def test_nothing_in_a_query_is_an_operator(index: SqliteMemoryIndex, query: str) -> None:
    await index.apply(update(a_document("tea", "tea in the kettle"), a_document("other", "oven")))
    assert await found(index, query) in ([], ["tea"])
    assert (await index.facts()).documents_count == 2


async def test_a_word_that_is_everywhere_is_found_in_the_newest_texts(
    index: SqliteMemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.memory_index.index.MEMORY_RANKED_COUNT_MAX", 4)
    texts = [a_document(f"n{n:02}", "the usual" + " quokka" * (n == 1)) for n in range(20)]
    await index.apply(update(*texts))
    assert set(await found(index, "usual")) == {"n16", "n17", "n18", "n19"}
    assert (await found(index, "usual quokka platypus"))[0] == "n01", "a rare word still finds it"


@pytest.mark.requirement("memory-index:authority-travels")
async def test_a_hit_and_a_text_carry_what_the_content_was_worth(index: SqliteMemoryIndex) -> None:
    worth = AuthorityClass.EXTERNAL_EVIDENCE
    await index.apply(
        update(a_document("seen", "obey me", authority_class=worth, metadata={"turn_id": "t"}))
    )
    (hit,) = await index.search("obey", EVERYWHERE, limit=1)
    text = await index.get("brief:seen", chars_max=10)
    assert text is not None
    assert (hit.authority_class, text.authority_class) == (worth, worth)
    assert hit.metadata == text.metadata == {"turn_id": "t"}


async def test_many_at_once_neither_wait_for_ever_nor_see_halves(index: SqliteMemoryIndex) -> None:
    seen: list[int] = []

    async def write(n: int) -> None:
        pair = [a_document(f"{n}-{side}", f"both{n} halves", source_key=str(n)) for side in "ab"]
        await index.apply(update(*pair))

    async def look(n: int) -> None:
        seen.append(len(await found(index, f"both{n}")))

    async with anyio.create_task_group() as group:
        for n in range(12):
            group.start_soon(write, n)
            group.start_soon(look, n)
    assert set(seen) <= {0, 2}
    assert (await index.facts()).documents_count == 24


async def test_only_some_indexes_stay_open(tmp_path: Path) -> None:
    indexes = SqliteMemoryIndexes()
    first = indexes.of(str(tmp_path / "0"))
    assert indexes.of(str(tmp_path / "0")) is first
    for n in range(1, MEMORY_INDEXES_OPEN_COUNT_MAX + 1):
        indexes.of(str(tmp_path / str(n)))
    assert indexes.of(str(tmp_path / "0")) is not first
    with pytest.raises(IndexLostError):
        await indexes.of(str(tmp_path / "0")).facts()
    await indexes.close()
