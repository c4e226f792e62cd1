"""The tasks of worker processes, by name: each takes a progress reporter and returns what a page shows."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from privacyfunnel.studio.tasks.cost_task import cost
from privacyfunnel.studio.tasks.publish_task import publish
from privacyfunnel.studio.tasks.receiver_tasks import analyst, audit, impute
from privacyfunnel.studio.tasks.scan_tasks import edges, look, today

TASKS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {task.__name__: task for task in (look, edges, today, cost, publish, analyst, impute, audit)}
)
