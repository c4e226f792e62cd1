"""The pages: the steps in order, and two pages for whoever receives a release."""

from privacyfunnel.studio.pages.page_definition import StudioPage
from privacyfunnel.studio.pages.promise_pages import COST_PAGE, PAGE, PROMISE_PAGE, TODAY_PAGE
from privacyfunnel.studio.pages.receiver_pages import ANALYST_PAGE, AUDIT_PAGE
from privacyfunnel.studio.pages.table_pages import ROLES_PAGE, TABLE_PAGE

WAY: tuple[StudioPage, ...] = (TABLE_PAGE, ROLES_PAGE, TODAY_PAGE, PROMISE_PAGE, COST_PAGE, PAGE)
OTHERS: tuple[StudioPage, ...] = (ANALYST_PAGE, AUDIT_PAGE)
PAGES = {page.name: page for page in (*WAY, *OTHERS)}
