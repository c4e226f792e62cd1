"""The front door of the library: what Python users call, and what they are told when something does not fit."""
