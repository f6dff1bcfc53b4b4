"""Where the embedded server may differ: by the request's title, the places whose differences are accepted, each with the
reason. A reason that begins with "gap" is something to mend; the others are on purpose.
"""

WORDS = "the real server's words tell of Go's types or parsers; ours say the same in words of their own"
LEVEL = "a client's mistake, which the real server answers with 500, is answered with 400"
DETAILS = "gap: the real server sends empty details"
ADMISSION = "the real server's admission adds it, for its own controllers"
OWNERSHIP = "gap: the server's own writes aren't owned by a manager"

MESSAGE = {".message": WORDS, ".details.causes": WORDS}

ALLOWED = {
    "namespace: namespace": {".metadata.managedFields": OWNERSHIP},
    "paths: a namespaced object without namespace": {".details": DETAILS},
    "paths: put to a collection": {".details": DETAILS},
    "paths: post to an object": {".details": DETAILS},
    "paths: delete of all namespaces' objects": {".details": DETAILS},
    "paths: accept nothing served": {".details": DETAILS, ".message": "it serves other media types"},
    "paths: accept yaml": {"content-type": "gap: errors are sent as JSON", ": real": "gap: errors are sent as JSON"},
    "bodies: no body": MESSAGE,
    "bodies: malformed JSON": MESSAGE,
    "bodies: not an object": MESSAGE,
    "bodies: another kind": MESSAGE,
    "bodies: another version": MESSAGE,
    "bodies: a long name": MESSAGE,
    "bodies: a service's bad name": MESSAGE,
    "bodies: a bad label": MESSAGE,
    "bodies: a resourceVersion at create": {"status": LEVEL, ".code": LEVEL, ".reason": LEVEL},
    "bodies: a wrong type": MESSAGE,
    "bodies: a wrong type in a deployment": MESSAGE,
    "bodies: malformed yaml": MESSAGE,
    "bodies: not utf-8": {place: "what isn't UTF-8 is refused as such" for place in ("status", ".code", ".details", ".message", ".reason")},
    "bodies: strict unknown field": MESSAGE,
    "bodies: bad dryRun": MESSAGE,
    "bodies: bad fieldValidation": MESSAGE,
    "lists: bad label selector": MESSAGE,
    "lists: garbage continue": MESSAGE,
    "lists: bad limit": MESSAGE,
    "lists: bad version": MESSAGE,
    "lists: watch: bad version": {**MESSAGE, "status": LEVEL, ".code": LEVEL, ".reason": LEVEL},
    "writes: update by another uid": MESSAGE,
    "writes: json patch, failed test": MESSAGE,
    "writes: json patch, missing path": MESSAGE,
    "writes: json patch, unknown op": MESSAGE,
    "writes: json patch, not a list": MESSAGE,
    "writes: merge patch, malformed": MESSAGE,
    "writes: patch of an unknown type": {**MESSAGE, ".details": DETAILS},
    "writes: apply, no kind": MESSAGE,
    "writes: apply, unknown field": {".reason": "an error has a reason"},
    "writes: another finalizer while it's deleted": MESSAGE,
    "defaults: nodes d1": {".spec.taints": ADMISSION},
    "defaults: daemonsets d1 as table": {".rows[0].object.metadata.annotations": "gap: shown in the table's metadata too"},
    "defaults: horizontalpodautoscalers d1": {".status.currentMetrics": "gap: the real server sends null"},
    "defaults: persistentvolumes d1 deleted": {".status.lastPhaseTransitionTime": "gap: not set"},
    "defaults: persistentvolumes d1": {".status.lastPhaseTransitionTime": "gap: not set"},
    "invalid: secret with bad base64": MESSAGE,
    "custom: create": {".status.conditions": "an empty list for null"},
    "custom: established": {".metadata.managedFields": OWNERSHIP},
    "custom: definitions as table": {".rows[0].cells[2]": "gap: the storage version isn't marked", ".rows[0].object.metadata.managedFields": OWNERSHIP},
    "custom: list of none": {".metadata.continue": "an empty continue token is left out"},
    "custom: list": {".metadata.continue": "an empty continue token is left out"},
    "custom: deletecollection": {".metadata.continue": "an empty continue token is left out"},
    # The real server's order changes from call to call.
    "custom: invalid object": MESSAGE,
    "custom: wrong type": MESSAGE,
    "custom: delete the definition": {".metadata.managedFields": OWNERSHIP, ".status.conditions": "its objects are gone at once"},
    "ownership: containers: the same twice": {".reason": "an error has a reason"},
    "ownership: custom: unknown field": {".reason": "an error has a reason"},
    "ownership: custom: the same item twice": {".reason": "an error has a reason"},
    "ownership: definition": {".status.conditions": "an empty list for null"},
    "ownership: no definition": {".metadata.managedFields": OWNERSHIP, ".status.conditions": "its objects are gone at once"},
    "reviews: self access": {".metadata.managedFields": "reviews aren't stored, so nobody owns their fields"},
    "reviews: self access to a path": {".metadata.managedFields": "reviews aren't stored, so nobody owns their fields"},
    "reviews: self access to neither": {".details.group": DETAILS, ".message": WORDS},
    "reviews: access of nobody": {".details.group": DETAILS, ".message": WORDS},
    "reviews: token review": {".metadata.managedFields": "reviews aren't stored, so nobody owns their fields"},
}
