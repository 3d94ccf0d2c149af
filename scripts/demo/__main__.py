"""`make demo`: a short story with real processes.

Owns:  the order of the chapters. A host is asked, killed in the middle of a turn and started again;
       an agent fixes a bug; a long command outlives the runtime that started it; a service is
       asked, woken from outside, killed and started again; an agent is made from a template, takes
       up a skill and remembers; a real model answers offline.
Rule 1: every line with a mark was checked; the first one that does not hold ends the story with
        exit code 1.
Rule 2: nothing is left behind but the screen: the homes are temporary, the processes are ended.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from scripts.demo.bug_fix import tell_of_a_bug_fix
from scripts.demo.killed_host import tell_of_a_killed_host
from scripts.demo.long_task import nothing_is_left, tell_of_a_long_task
from scripts.demo.looking import end_processes_about
from scripts.demo.mind import tell_of_a_mind
from scripts.demo.narrator import Narrator, StoryBrokenError
from scripts.demo.offline import tell_of_a_real_model
from scripts.demo.service import tell_of_a_service
from tests.support.served_host import HostGoneError


def tell_story(folder: Path, say: Narrator) -> None:
    """Tell the whole story in one folder; raises when a part of it does not hold."""
    print("Holon: an agent runtime that survives being killed.")
    tell_of_a_killed_host(folder / "home", say)
    repository = tell_of_a_bug_fix(_made(folder / "work"), say)
    tell_of_a_long_task(folder / "work", repository, say)
    tell_of_a_service(_made(folder / "service"), say)
    tell_of_a_mind(_made(folder / "mind"), say)
    tell_of_a_real_model(_made(folder / "offline"), say)
    nothing_is_left(folder, say)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def main() -> int:
    """Tell the story; 0 when all of it is true."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no ✓ shows a ?
    folder = Path(tempfile.mkdtemp(prefix="holon-demo-"))
    narrator = Narrator()
    try:
        tell_story(folder, narrator)
    except (StoryBrokenError, HostGoneError) as broken:
        print(f"\nThe story broke: {broken}", file=sys.stderr)
        errors = folder / "stderr"
        sys.stderr.write(errors.read_text(encoding="utf-8") if errors.exists() else "")
        return 1
    finally:
        end_processes_about(folder)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\nThat took {narrator.elapsed()}. Next: make test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
