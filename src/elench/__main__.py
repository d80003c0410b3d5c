"""`python -m elench` is the command `elench`."""

from elench.cli import main

if __name__ == "__main__":
    main()
