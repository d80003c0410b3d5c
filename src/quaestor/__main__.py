"""`python -m quaestor` is the command `quaestor`."""

from quaestor.cli import main

if __name__ == "__main__":
    main()
