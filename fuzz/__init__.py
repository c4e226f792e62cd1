"""Fuzzing: inputs that a machine makes up, led by which lines they reach, for whatever reads what others wrote.

`make fuzz`, or `python -m fuzz protocol --seconds 300`. A target takes bytes and may raise nothing but our own errors.
What is in `corpus/` begins every run, and the test suite goes through it; the input of a crash belongs there once it is
mended.
"""
