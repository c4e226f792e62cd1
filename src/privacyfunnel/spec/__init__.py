"""The one request: what the owner asks of a release, for Python, the command line, the studio, Spark and files."""

from privacyfunnel.spec.fields import SpecField
from privacyfunnel.spec.release_spec import FIELDS, ReleaseSpec

__all__ = ["FIELDS", "ReleaseSpec", "SpecField"]
