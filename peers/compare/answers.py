"""Compares two answers: what must be the same, without what can't be."""

import json
import re

#: Fields that say nothing about behaviour: how objects are kept, and where a server is.
LEFT_OUT = {"storageVersionHash", "serverAddressByClientCIDRs"}
#: Fields whose value differs between any two servers, wherever they stand.
VARYING = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "storageVersionHash", "selfLink", "time", "clusterIP", "clusterIPs",
           "nodePort", "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "healthCheckNodePort", "continue", "hash", "serverRelativeURL", "serverAddress",
           # Prose: everybody has his own.
           "description"}
LIMIT = 40


def differences(real, ours):
    """Where the answers differ, a line each, at most forty."""
    found = []
    if real[0] != ours[0]:
        found.append(f"status: real {real[0]}, ours {ours[0]}")
    if kind_of(real[1]) != kind_of(ours[1]):
        found.append(f"content-type: real {real[1]!r}, ours {ours[1]!r}")
    found += walk("", parse(real[2]), parse(ours[2]))
    return found[:LIMIT]


def readable(answer):
    return f"{answer[0]} {answer[1]} {answer[2].decode(errors='replace')[:1500]}"


def kind_of(content_type):
    return content_type.replace(" ", "").removesuffix(";charset=utf-8")


def parse(body):
    text = body.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        lines = text.strip().splitlines()
        if len(lines) > 1 and lines[0].startswith("{"):
            with_frames = [json.loads(line) for line in lines if line.startswith("{")]
            return with_frames
        return text.strip()


def normal(text):
    """A string without ages, versions, uids and generated names."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    text = re.sub(r"\bgen-[a-z0-9]{5}\b", "gen-XXXXX", text)
    text = re.sub(r"in record \(\d+\)", "in record (VERSION)", text)
    text = re.sub(r":3[0-2]\d\d\d/", ":PORT/", text)
    text = re.sub(r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS", text)
    return re.sub(r"^\d+[smh]$", "AGE", text)


def walk(path, real, ours):
    if path.rsplit(".", 1)[-1] in VARYING and type(real) is type(ours):
        return
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted((real.keys() | ours.keys()) - LEFT_OUT):
            place = f"{path}.{key}"
            if key not in ours:
                yield f"{place}: ours lacks {short(real[key])}"
            elif key not in real:
                yield f"{place}: only ours has {short(ours[key])}"
            else:
                yield from walk(place, real[key], ours[key])
    elif isinstance(real, list) and isinstance(ours, list):
        yield from walk_list(path, real, ours)
    elif isinstance(real, str) and isinstance(ours, str):
        if normal(real) != normal(ours):
            yield f"{path}: real {short(real)}, ours {short(ours)}"
    elif real != ours or type(real) is not type(ours):
        yield f"{path}: real {short(real)}, ours {short(ours)}"


def walk_list(path, real, ours):
    """Lists of named things are compared by name, so that one too many doesn't shift the rest."""
    named = all(isinstance(item, dict) and name_of(item) for item in real + ours)
    if named and len({name_of(item) for item in real}) == len(real):
        theirs, mine = ({name_of(item): item for item in items} for items in (real, ours))
        for name in theirs:
            if name not in mine:
                yield f"{path}[{name}]: ours lacks {short(theirs[name])}"
            else:
                yield from walk(f"{path}[{name}]", theirs[name], mine[name])
        for name in mine:
            if name not in theirs:
                yield f"{path}[{name}]: only ours has {short(mine[name])}"
        return
    if len(real) != len(ours):
        yield f"{path}: real has {len(real)} items {short(real)}, ours {len(ours)} {short(ours)}"
        return
    for index, (one, other) in enumerate(zip(real, ours)):
        yield from walk(f"{path}[{index}]", one, other)


def name_of(item):
    """By what a thing in a list is told from its neighbours, if by anything."""
    metadata = item.get("metadata") or {}
    if "fieldsV1" in item:
        # Owners are listed by time, which can't be the same.
        return " ".join(str(item.get(field)) for field in ("manager", "operation", "apiVersion", "subresource"))
    candidates = [item.get("name"), item.get("resource"), metadata.get("name"), item.get("groupVersion"), item.get("version"), item.get("subresource")]
    return next((name for name in candidates if name and isinstance(name, str)), None)


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
