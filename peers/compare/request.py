"""A request as a value, and the content types of patches."""

JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


def send(method, path, body=None, **more):
    return {"method": method, "path": path, "body": body, **more}
