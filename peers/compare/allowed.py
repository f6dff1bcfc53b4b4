"""Where the embedded server differs on purpose: by the request's title, the places whose differences are accepted, each with
the reason.
"""

ALLOWED = {}
