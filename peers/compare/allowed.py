"""Where the embedded server differs on purpose: by the request's title, the places whose differences are accepted, each with
the reason.
"""

#: A real server leaves the reason of an internal error out; clients branch on it, so ours says it.
INTERNAL = {".reason": "InternalError"}

ALLOWED = {
    "ownership: definition": {".status.conditions": "there are none yet, which a real server writes as null"},
    "ownership: no definition": {
        ".status.conditions": "the condition of the deletion comes with the next write",
        ".metadata.managedFields[kube-apiserver": "the server's own writes to a definition aren't tracked",
    },
    "ownership: containers: the same twice": INTERNAL,
    "ownership: custom: unknown field": INTERNAL,
    "ownership: custom: the same item twice": INTERNAL,
}
