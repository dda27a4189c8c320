"""`python -m evertally.cli` is the same as `evertally`."""

from evertally.cli import main

main()
