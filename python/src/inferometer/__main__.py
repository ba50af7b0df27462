"""`python -m inferometer` is the program."""

import os
import sys

from inferometer import program

if __name__ == "__main__":
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
