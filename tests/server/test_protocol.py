"""uvicorn's protocol as we bound it: what is no HTTP gets an answer of the one shape, and then the connection ends."""

import json

from bitscale.server.protocol import Protocol


class Line:
    """A connection that keeps what is sent."""

    def __init__(self):
        self.sent, self.open = b"", True

    def write(self, data):
        assert self.open
        self.sent += data

    def close(self):
        self.open = False


def test_what_is_no_http_is_refused_in_the_one_shape():
    protocol = Protocol.__new__(Protocol)
    protocol.transport = Line()
    protocol.send_400_response("Invalid HTTP request received.")
    assert not protocol.transport.open
    head, _, body = protocol.transport.sent.partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    assert status == "HTTP/1.1 400 Bad Request"
    table = dict(line.split(": ", 1) for line in headers)
    assert int(table["content-length"]) == len(body)
    assert (table["content-type"], table["connection"]) == ("application/json", "close")
    assert table["x-content-type-options"] == "nosniff"
    error = json.loads(body)["error"]
    assert (error["status"], error["type"]) == (400, "BadRequest")
