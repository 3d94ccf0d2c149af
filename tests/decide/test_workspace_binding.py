"""What attaching, leaving and forgetting a workspace come to, decision by decision."""

import msgspec
import pytest

from holon.decide.workspaces import (
    AlreadyEntered,
    AttachTarget,
    Detach,
    Enter,
    Exit,
    HostRoots,
    agent_home_of,
    attach_target_of,
    decide_attach,
    decide_detach,
    decide_exit,
    enter_changes,
    place_of,
    refuse_form,
    refuse_private,
    refuse_problem,
    workspace_id_of,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.limits import WORKSPACE_PATH_CHARS_MAX, WORKSPACES_ATTACHED_COUNT_MAX
from holon.model.values import RECORD_ID_PATTERN, AgentId, WorkspaceId
from holon.model.workspaces import (
    AccessMode,
    AttachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    PathProblem,
    ProjectionKind,
    ResolvedDirectory,
    WorkspaceBindings,
    WorkspaceOccupancy,
)
from tests.support.builders import MAIN, START

OTHER = AgentId("other")
PLAIN = ResolvedDirectory(path="/srv/plain")
REPO = ResolvedDirectory(path="/srv/site/docs", repository_root="/srv/site")
TREE = ResolvedDirectory(path="/srv/tree/docs", repository_root="/srv/tree", main_root="/srv/site")
NOWHERE = WorkspaceBindings()


def aimed(found: ResolvedDirectory, bindings: WorkspaceBindings = NOWHERE) -> AttachTarget:
    return attach_target_of(found, bindings, now=START)


def having(*found: ResolvedDirectory, active: ResolvedDirectory | None = None) -> WorkspaceBindings:
    known = WorkspaceBindings(attached=tuple(aimed(each).entry for each in found))
    if active is None:
        return known
    return msgspec.structs.replace(known, active=aimed(active, known).place)


def held(found: ResolvedDirectory, mode: AccessMode, by: AgentId = OTHER) -> WorkspaceOccupancy:
    place = aimed(found, having(REPO)).place
    return WorkspaceOccupancy(
        occupancy_id="occ_1",
        execution_root_id=place.execution_root_id,
        workspace_id=place.workspace_id,
        holder_agent_id=by,
        access_mode=mode,
        acquired_at=START,
    )


@pytest.mark.requirement("workspace:anchor-is-identity")
@pytest.mark.parametrize(
    ("found", "anchor", "name"),
    [
        pytest.param(PLAIN, "/srv/plain", None, id="a directory"),
        pytest.param(REPO, "/srv/site", "site", id="inside a repository"),
        pytest.param(TREE, "/srv/tree", "tree", id="a worktree of a repository nobody attached"),
        pytest.param(
            ResolvedDirectory(path="/", repository_root="/"), "/", None, id="the whole disk"
        ),
    ],
)
def test_a_workspace_is_the_repository_or_the_directory(
    found: ResolvedDirectory, anchor: str, name: str | None
) -> None:
    aim = aimed(found)
    assert (aim.entry.workspace_anchor, aim.entry.repo_name) == (anchor, name)
    assert aim.entry.workspace_id == aim.place.workspace_id == workspace_id_of(anchor)
    assert RECORD_ID_PATTERN.fullmatch(aim.entry.workspace_id)
    assert (aim.place.execution_root, aim.place.cwd) == (anchor, found.path)
    assert aim.place.projection_kind is ProjectionKind.CANONICAL_ROOT
    assert aim.place.access_mode is AccessMode.SHARED_READ


@pytest.mark.requirement("workspace:worktree-keeps-its-project")
def test_a_worktree_of_an_attached_repository_is_another_root_of_it() -> None:
    aim = aimed(TREE, having(REPO))
    assert aim.entry.workspace_anchor == "/srv/site"
    assert (aim.place.execution_root, aim.place.cwd) == ("/srv/tree", "/srv/tree/docs")
    assert aim.place.projection_kind is ProjectionKind.GIT_WORKTREE_ROOT
    assert aim.place.access_mode is AccessMode.EXCLUSIVE_WRITE
    assert aim.place.execution_root_id != aimed(REPO).place.execution_root_id


def test_the_id_of_a_workspace_depends_on_nothing_but_its_anchor() -> None:
    assert workspace_id_of("/srv/site") != workspace_id_of("/srv/site2")


FULL = WorkspaceBindings(
    attached=tuple(
        aimed(ResolvedDirectory(path=f"/srv/{number}")).entry
        for number in range(WORKSPACES_ATTACHED_COUNT_MAX)
    )
)
SHARED, ALONE = AccessMode.SHARED_READ, AccessMode.EXCLUSIVE_WRITE


@pytest.mark.requirement("workspace:attach-binds")
@pytest.mark.parametrize(
    ("bindings", "found", "leaves", "attaches"),
    [
        pytest.param(NOWHERE, PLAIN, None, True, id="the first"),
        pytest.param(having(PLAIN), PLAIN, None, False, id="known, and at home"),
        pytest.param(having(PLAIN, active=PLAIN), REPO, PLAIN, True, id="from one to another"),
        pytest.param(
            having(REPO, active=REPO),
            ResolvedDirectory(path="/srv/site", repository_root="/srv/site"),
            REPO,
            False,
            id="to another directory of the same",
        ),
        pytest.param(having(REPO, active=REPO), TREE, REPO, False, id="into a worktree"),
    ],
)
def test_an_agent_goes_where_it_is_sent(
    bindings: WorkspaceBindings,
    found: ResolvedDirectory,
    leaves: ResolvedDirectory | None,
    attaches: bool,
) -> None:
    aim = aimed(found, bindings)
    decision = decide_attach(MAIN, bindings, aim, occupants=())
    assert isinstance(decision, Enter)
    assert decision.place == aim.place
    assert decision.leaves == (None if leaves is None else aimed(leaves).place.workspace_id)
    assert decision.attaches == (aim.entry if attaches else None)


def test_an_agent_that_is_there_stays() -> None:
    bindings = having(REPO, active=REPO)
    taken = held(REPO, ALONE)
    assert (
        decide_attach(MAIN, bindings, aimed(REPO, bindings), occupants=[taken]) == AlreadyEntered()
    )


@pytest.mark.requirement("workspace:occupancy")
@pytest.mark.parametrize(
    ("found", "occupant", "enters"),
    [
        pytest.param(REPO, held(REPO, SHARED), True, id="shared by two"),
        pytest.param(REPO, held(REPO, ALONE), False, id="held alone by another"),
        pytest.param(TREE, held(TREE, SHARED), False, id="shared, and wanted alone"),
        pytest.param(TREE, held(TREE, ALONE), False, id="wanted alone by two"),
        pytest.param(TREE, held(TREE, ALONE, MAIN), True, id="held by the same agent"),
    ],
)
def test_a_root_is_shared_unless_somebody_has_it_alone(
    found: ResolvedDirectory, occupant: WorkspaceOccupancy, enters: bool
) -> None:
    bindings = having(REPO)
    decision = decide_attach(MAIN, bindings, aimed(found, bindings), occupants=[occupant])
    assert isinstance(decision, Enter) is enters
    if isinstance(decision, Refusal):
        assert decision.code is RefusalCode.WORKSPACE_OCCUPIED
        assert "other" in str(decision.hint)


def test_there_is_a_bound_to_what_may_be_attached() -> None:
    refused = decide_attach(MAIN, FULL, aimed(PLAIN), occupants=())
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.QUOTA_REACHED
    known = aimed(ResolvedDirectory(path="/srv/7"))
    assert isinstance(decide_attach(MAIN, FULL, known, occupants=()), Enter)


@pytest.mark.requirement("workspace:always-one-active")
def test_home_cannot_be_left() -> None:
    refused = decide_exit(MAIN, having(PLAIN))
    assert isinstance(refused, Refusal)
    assert (refused.code, bool(refused.hint)) == (RefusalCode.AT_AGENT_HOME, True)
    left = decide_exit(MAIN, having(PLAIN, active=PLAIN))
    assert left == Exit(workspace_id=workspace_id_of("/srv/plain"))


@pytest.mark.requirement("workspace:detach")
@pytest.mark.parametrize(
    ("bindings", "workspace_id", "code"),
    [
        pytest.param(having(PLAIN), workspace_id_of("/srv/plain"), None, id="attached"),
        pytest.param(
            having(PLAIN, REPO, active=REPO), workspace_id_of("/srv/plain"), None, id="elsewhere"
        ),
        pytest.param(
            having(PLAIN, active=PLAIN),
            workspace_id_of("/srv/plain"),
            RefusalCode.WORKSPACE_ACTIVE,
            id="active",
        ),
        pytest.param(having(PLAIN), "ws_none", RefusalCode.WORKSPACE_NOT_FOUND, id="unknown"),
        pytest.param(NOWHERE, "agent_home", RefusalCode.AT_AGENT_HOME, id="home"),
        pytest.param(NOWHERE, "workspace_root", RefusalCode.AT_AGENT_HOME, id="the host's root"),
    ],
)
def test_only_a_workspace_that_is_attached_and_left_can_be_forgotten(
    bindings: WorkspaceBindings, workspace_id: str, code: RefusalCode | None
) -> None:
    decision = decide_detach(MAIN, bindings, WorkspaceId(workspace_id))
    if code is None:
        assert decision == Detach(workspace_id=WorkspaceId(workspace_id))
    else:
        assert isinstance(decision, Refusal)
        assert (decision.code, bool(decision.hint)) == (code, True)


@pytest.mark.requirement("workspace:bad-input")
@pytest.mark.parametrize("path", ["", ".", "srv", "~/site", "./x", "C:\\x", "\ud800"])
def test_a_path_that_is_not_absolute_is_refused(path: str) -> None:
    refused = refuse_form(path)
    assert refused is not None
    assert (refused.code, refused.field) == (RefusalCode.WORKSPACE_PATH_INVALID, "path")
    refused.message.encode()


def test_a_path_has_a_bound() -> None:
    assert refuse_form("/" + "x" * WORKSPACE_PATH_CHARS_MAX) is not None
    assert refuse_form("/" + "x" * (WORKSPACE_PATH_CHARS_MAX - 1)) is None


@pytest.mark.requirement("workspace:bad-input")
@pytest.mark.parametrize("problem", list(PathProblem))
def test_every_problem_with_a_path_has_words_and_a_way_out(problem: PathProblem) -> None:
    refused = refuse_problem("/srv/x", problem)
    assert "/srv/x" in refused.message
    assert refused.hint


@pytest.mark.requirement("workspace:bad-input")
@pytest.mark.requirement("own-commands:state-is-no-workspace")
@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/h", True),
        ("/h/run", True),
        ("/h/state", True),
        ("/h/state/backups", True),
        ("/h/run/deep", True),
        ("/h/commands", True),
        ("/h/agents/main", True),
        ("/h/runs", False),
        ("/h/projects", False),
        ("/h2", False),
        ("/", False),
    ],
)
def test_what_holon_keeps_for_itself_is_no_workspace(path: str, refused: bool) -> None:
    assert (refuse_private(ResolvedDirectory(path=path), "/h/") is not None) is refused


def test_a_repository_around_the_home_leaves_its_folders_private() -> None:
    found = ResolvedDirectory(path="/h/run", repository_root="/")
    assert refuse_private(found, "/h") is not None
    whole = ResolvedDirectory(path="/h/projects", repository_root="/h")
    assert refuse_private(whole, "/h") is not None


BOUND = aimed(REPO).place


@pytest.mark.requirement("workspace:always-one-active")
@pytest.mark.parametrize(
    ("roots", "bound", "place"),
    [
        (HostRoots(home="/h"), False, ("agent_home", "/h/agents/main", "/h/agents/main")),
        (HostRoots(home="/h", workspace_root="/w"), False, ("workspace_root", "/w", "/w")),
        (
            HostRoots(home="/h", workspace_root="/w", workspace_cwd="/w/x"),
            False,
            ("workspace_root", "/w", "/w/x"),
        ),
        (HostRoots(home="/h"), True, (BOUND.workspace_id, "/srv/site", "/srv/site/docs")),
        (
            HostRoots(home="/h", workspace_root="/w"),
            True,
            (BOUND.workspace_id, "/srv/site", "/srv/site/docs"),
        ),
        (
            HostRoots(home="/h", workspace_root="/w", overrides=True),
            True,
            ("workspace_root", "/w", "/w"),
        ),
        (
            HostRoots(home="/h", overrides=True),
            True,
            (BOUND.workspace_id, "/srv/site", "/srv/site/docs"),
        ),
    ],
)
def test_an_agent_is_always_in_exactly_one_place(
    roots: HostRoots, bound: bool, place: tuple[str, str, str]
) -> None:
    found = place_of(MAIN, BOUND if bound else None, roots)
    assert (found.workspace_id, found.execution_root, found.cwd) == place


def test_homes_are_told_apart_by_their_agents() -> None:
    assert agent_home_of("/h/", MAIN) == "/h/agents/main"
    assert agent_home_of("", MAIN) == "agents/main"


def test_entering_leaves_the_old_place_first_and_makes_the_new_one_known_once() -> None:
    decision = decide_attach(MAIN, having(PLAIN, active=PLAIN), aimed(REPO), occupants=())
    assert isinstance(decision, Enter)
    changes = enter_changes(MAIN, decision, occupancy_id="occ_9")
    assert [type(change) for change in changes] == [
        ExitWorkspace,
        AttachWorkspace,
        EnterWorkspace,
    ]
    again = decide_attach(MAIN, having(REPO), aimed(REPO, having(REPO)), occupants=())
    assert isinstance(again, Enter)
    known = enter_changes(MAIN, again, occupancy_id="occ_9")
    assert [type(change) for change in known] == [EnterWorkspace]
