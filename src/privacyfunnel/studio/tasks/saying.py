"""How a task says how far it is."""

from collections.abc import Callable
from typing import Any

Say = Callable[[str, Any], None]  # of which kind, and what
