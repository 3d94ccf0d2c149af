"""The power drill on the command line: `python -m tests.power.power_drill --states 20000`."""

import argparse
import sys

from tests.support.power_drill import run_power_drill

PROBLEMS_SHOWN = 20


def main(arguments: list[str]) -> int:
    """Cut the power as often as asked; 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="power_drill", description=__doc__)
    parser.add_argument("--states", type=int, default=20_000, help="how many power cuts")
    parser.add_argument("--seed", type=int, default=0, help="the first history to cut")
    asked = parser.parse_args(arguments)
    report = run_power_drill(asked.states, asked.seed)
    print(report)
    for problem in report.problems[:PROBLEMS_SHOWN]:
        print(" ", problem)
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
