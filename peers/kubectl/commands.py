"""The groups of checks, in the order in which they run. A group makes what it needs itself, so each can be run alone."""

import applying
import changing
import creating
import custom
import operating
import reading
import removing

GROUPS = {
    "discovery": reading.discovery,
    "generators": creating.generators,
    "workloads": creating.workloads,
    "access": creating.access,
    "files": creating.files,
    "get": reading.get,
    "table": reading.table,
    "watch": reading.watch,
    "describe": reading.describe,
    "explain": reading.explain,
    "apply": applying.client_side,
    "diff": applying.diff,
    "server-side-apply": applying.server_side,
    "custom": custom.resources,
    "edit": changing.edit,
    "patch": changing.patch,
    "metadata": changing.metadata,
    "scale": changing.scale,
    "set": changing.set_fields,
    "replace": changing.replace,
    "rollout": operating.rollout,
    "auth": operating.auth,
    "nodes": operating.nodes,
    "delete": removing.delete,
    "wait": removing.wait,
    "owners": removing.owners,
}
