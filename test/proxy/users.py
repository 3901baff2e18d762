"""What the proxy does about users and services, as raw requests: python users.py CASE URL…"""
import base64
import sys

from attacks import MULTI, STATE, YES, Target, call

REJECTED = '"code":-32602'


def rejected(status, text):
    assert status == 200 and REJECTED in text.replace(" ", "") and "result" not in text, (status, text)


def two(t):
    """A state and a cursor of one user are worth nothing to another."""
    state = t.token()
    rejected(*t.send("tools/call", call(state), user="bob"))
    assert t.result("tools/call", call(state))["content"][0]["text"] == "Alice likes blue"
    cursor = t.result("tools/list", {})["nextCursor"]
    rejected(*t.send("tools/list", {"cursor": cursor}, user="bob"))
    assert t.result("tools/list", {"cursor": cursor})["tools"]
    for drop, user in [(("X-User",), ""), ((), "")]:
        status, text = t.send("tools/call", call(None, None), user=user, drop=drop)
        assert status == 401, (status, text)


def untrusted(t):
    """The header counts only if a trusted peer sent it."""
    status, text = t.send("tools/call", call(None, None))
    assert status == 401 and "requestState" not in text, (status, text)


def headers(t):
    """A header that names another call than the body is refused, also next to a genuine state."""
    state = t.token()
    for name, value in [("Mcp_Name", STATE), ("Mcp_Method", "tools/list"), ("Mcp_Name", "=?base64?b3RoZXI=?=")]:
        status, text = t.send("tools/call", call(state), **{name: value})
        assert status == 400 and '"code":-32020' in text, (name, status, text)
    encoded = "=?base64?" + base64.b64encode(MULTI.encode()).decode() + "?="
    assert t.result("tools/call", call(state), Mcp_Name=encoded)["content"][0]["text"] == "Alice likes blue"


def once(t):
    """With --single-use a state works once."""
    state = t.ask(STATE)
    assert t.result("tools/call", call(state, YES, STATE))["content"][0]["text"] == "state-ok: asked, true"
    rejected(*t.send("tools/call", call(state, YES, STATE)))


def services(t, other):
    """A state of one service is worth nothing to another with the same keys."""
    state = t.token()
    rejected(*other.send("tools/call", call(state)))
    assert t.result("tools/call", call(state))["content"][0]["text"] == "Alice likes blue"


def unreadable(t):
    """An answer that the proxy cannot read does not leave it."""
    status, text = t.send("tools/call", call(None, None, MULTI))
    assert status == 502 and "requestState" not in text, (status, text)


def ask(t):
    assert t.token()


case, *urls = sys.argv[1:]
{"two": two, "untrusted": untrusted, "headers": headers, "once": once, "services": services, "unreadable": unreadable, "ask": ask}[case](*(Target(url, "") for url in urls))
if case != "ask":
    print(f"users, {case}: as promised")
