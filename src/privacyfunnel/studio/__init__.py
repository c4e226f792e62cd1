"""The studio: a page in the browser for whoever holds the table. It shows what other rooms compute.

place      where uploads wait, which nobody else can read, and which is gone afterwards
guard      who may speak to the server: this machine, this browser, this page
choices    what the owner has chosen so far; and the order that comes of it
repeat     the same as a command, a script and a notebook
crew       processes that do the work, which can be watched and stopped
tasks/     what they do
sessions   a tab of the browser each
pages/     a step each: what is asked, and what is shown
server     all of these together
"""
