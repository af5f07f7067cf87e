"""Shortens the waits in generated requests; other tests cover long waits."""

import schemathesis

MOMENT_MS = 10


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict) and type(case.body.get("wait_ms")) is int and case.body["wait_ms"] > 0:
        case.body["wait_ms"] %= MOMENT_MS
