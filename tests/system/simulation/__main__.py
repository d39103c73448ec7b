"""`python -m tests.system.simulation`: plays seeds, and prints the log of those that fail.

```
python -m tests.system.simulation --seed 123              the log of one seed
python -m tests.system.simulation --seed 123 --shrink     the same, reduced to what the failure needs
python -m tests.system.simulation --seeds 10000 --first 1 --jobs 2
python -m tests.system.simulation --bugs                  plants each bug, and searches for a seed that finds it
```
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.system.simulation.campaign import hunt_all, many, one


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.simulation", description="Plays informers on virtual time."
    )
    parser.add_argument("--seed", type=int, help="tell the story of this one")
    parser.add_argument("--shrink", action="store_true", help="leave out whatever the failure does not need")
    parser.add_argument("--seeds", type=int, default=300, help="play so many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="in so many processes")
    parser.add_argument("--bugs", action="store_true", help="look for the planted bugs, and write their table")
    options = parser.parse_args()
    if options.bugs:
        return hunt_all(options.jobs, Path(__file__).parents[3] / "docs" / "simulation.md")
    if options.seed is not None:
        return one(options.seed, shrink=options.shrink)
    return many(options.first, options.seeds, options.jobs)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set of strings is random, too
        again = [sys.executable, "-m", "tests.system.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
