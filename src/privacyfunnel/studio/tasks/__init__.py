"""What the crew does: each task is told how to say how far it is, and answers with what a page shows."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from privacyfunnel.studio.tasks.analyst_task import analyst, impute
from privacyfunnel.studio.tasks.audit_task import audit
from privacyfunnel.studio.tasks.cost_task import cost
from privacyfunnel.studio.tasks.overview_task import edges, look
from privacyfunnel.studio.tasks.publish_task import publish
from privacyfunnel.studio.tasks.today_task import today

TASKS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {task.__name__: task for task in (look, edges, today, cost, publish, analyst, impute, audit)}
)
