"""The standing adversary: releases made through the public interface, and their leakage measured from outside.

Nothing here imports a module below `privacyfunnel` other than its public names and the command line, so that an attack
outlives every change inside. `python -m tests.adversary` runs all attacks; a short form is part of the suite.
"""
