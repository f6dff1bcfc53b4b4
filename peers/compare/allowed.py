"""Where the embedded server differs on purpose: by the request's title, the places whose differences are accepted, each with
the reason.
"""

#: A real server leaves the reason of an internal error out; clients branch on it, so ours says it.
INTERNAL = {".reason": "InternalError"}

ALLOWED = {
    "ownership: containers: the same twice": INTERNAL,
    "ownership: custom: unknown field": INTERNAL,
    "ownership: custom: the same item twice": INTERNAL,
}
