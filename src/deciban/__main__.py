"""`python -m deciban` is the command `deciban`."""

from deciban.command import main

main()
