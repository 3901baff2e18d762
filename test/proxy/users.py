"""What the proxy and the doors do about users and services, as raw requests: python users.py CASE URL…"""
import base64
import http.client
import json
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


class Session:
    """A session of an older revision that alice has begun."""

    def __init__(self, t):
        self.t, self.id = t, None
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "users", "version": "1"}}
        status, header = self.request("alice", "POST", {"id": 1, "method": "initialize", "params": params})
        self.id = header["Mcp-Session-Id"]
        assert status == 200 and self.id, (status, header)
        assert self.request("alice", "POST", {"method": "notifications/initialized"})[0] == 202

    def request(self, user, method, message=None):
        """Returns the status and the headers of the answer to a request on the session."""
        headers = {"X-User": user, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.id:
            headers |= {"Mcp-Session-Id": self.id, "Mcp-Protocol-Version": "2025-11-25"}
        connection = http.client.HTTPConnection(self.t.url.hostname, self.t.url.port, timeout=20)
        try:
            connection.request(method, self.t.url.path, json.dumps({"jsonrpc": "2.0", **message}) if message else None, headers)
            response = connection.getresponse()
            return response.status, response.headers
        finally:
            connection.close()

    def every(self, user):
        """Returns the statuses of a call, of a stream that is opened, and of the session's end."""
        listed = {"id": 2, "method": "tools/list", "params": {}}
        return [self.request(user, *what)[0] for what in [("POST", listed), ("GET",), ("DELETE",)]]


def stolen(t):
    """The id of alice's session is worth nothing to others."""
    session = Session(t)
    for user in ["bob", ""]:
        assert session.every(user) == [404, 404, 404], user
    call, stream, end = session.every("alice")
    assert call == stream == 200 and end in (200, 204), (call, stream, end)


def shared(t):
    """Without protection, everybody who has the id of alice's session uses it."""
    call, stream, end = Session(t).every("bob")
    assert call == stream == 200 and end in (200, 204), (call, stream, end)


case, *urls = sys.argv[1:]
cases = [two, untrusted, headers, once, services, unreadable, ask, stolen, shared]
{f.__name__: f for f in cases}[case](*(Target(url, "") for url in urls))
if case not in ("ask", "shared"):
    print(f"users, {case}: as promised")
