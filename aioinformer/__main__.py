"""`python -m aioinformer` is the command `aioinformer`."""

from aioinformer.cli import main

if __name__ == "__main__":
    main()
