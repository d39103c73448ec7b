"""How soon is a cache of 100,000 pods complete, streamed and in pages, beside the simplest loop?"""

from harness import answer
from initial_list import question

QUESTION = question("initial_list_large", 100_000, 3)

if __name__ == "__main__":
    answer(QUESTION)
