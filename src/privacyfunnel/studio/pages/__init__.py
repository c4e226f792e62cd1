"""The pages: a step each, in the order of the way; and two for whoever receives or doubts a release."""

from privacyfunnel.studio.pages import analyst, audit, cost, promise, publish, roles, table, today
from privacyfunnel.studio.pages.page import Page

WAY: tuple[Page, ...] = (table.PAGE, roles.PAGE, today.PAGE, promise.PAGE, cost.PAGE, publish.PAGE)
OTHERS: tuple[Page, ...] = (analyst.PAGE, audit.PAGE)
PAGES = {page.name: page for page in (*WAY, *OTHERS)}
