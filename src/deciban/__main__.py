"""`python -m deciban` is the command `deciban`."""

from deciban.cli import main

main()
