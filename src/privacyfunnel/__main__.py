"""`python -m privacyfunnel` is `privacyfunnel`."""

from privacyfunnel.cli import program

if __name__ == "__main__":
    program()
