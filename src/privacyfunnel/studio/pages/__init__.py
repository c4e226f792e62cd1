"""The pages: a step each, in the order of the way; and two for whoever receives or doubts a release."""

from privacyfunnel.studio.pages import (
    analyst_page,
    audit_page,
    cost_page,
    promise_page,
    publish_page,
    roles_page,
    table_page,
    today_page,
)
from privacyfunnel.studio.pages.page_definition import StudioPage

WAY: tuple[StudioPage, ...] = (
    table_page.PAGE,
    roles_page.PAGE,
    today_page.PAGE,
    promise_page.PAGE,
    cost_page.PAGE,
    publish_page.PAGE,
)
OTHERS: tuple[StudioPage, ...] = (analyst_page.PAGE, audit_page.PAGE)
PAGES = {page.name: page for page in (*WAY, *OTHERS)}
