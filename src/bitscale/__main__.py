"""python -m bitscale, and torchrun -m bitscale: the command line."""

from bitscale.cli import main

main()
