"""Measure how long listing 100,000 pods takes, as a streaming list and in pages, compared with the floor."""

from harness import run
from initial_list import question

QUESTION = question("initial_list_large", 100_000, 3)

if __name__ == "__main__":
    run(QUESTION)
