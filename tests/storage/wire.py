# SPDX-License-Identifier: Apache-2.0
"""A proxy between S3A and its server that drops replies, rejects or delays requests.

It forwards requests unchanged, so signatures stay valid, and records them. Rules select the requests that meet a fault.
"""

from __future__ import annotations

import http.client
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

UPSTREAM_SECONDS = 120
# Of one hop alone: see RFC 9110, section 7.6.1. The proxy answers an expectation itself.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect", "content-length", "te", "trailer", "upgrade"}


class Fault(Enum):
    """A fault of a request."""

    LOSE_REPLY = "the server handles it, and the connection is cut before it answers"
    RESET = "the connection is cut before the server sees it"
    SLOW_DOWN = "503 SlowDown"
    TOO_MANY = "429 TooManyRequests"
    EXPIRED = "400 ExpiredToken"
    DENIED = "403 AccessDenied"
    GONE = "404 NoSuchBucket"
    FULL = "507 Insufficient Storage, as servers on a full disk answer"
    HELD = "the server sees it after a while"


_ANSWERS = {
    Fault.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
    Fault.TOO_MANY: (429, "TooManyRequests", "Too many requests."),
    Fault.EXPIRED: (400, "ExpiredToken", "The provided token has expired."),
    Fault.DENIED: (403, "AccessDenied", "Access Denied."),
    Fault.GONE: (404, "NoSuchBucket", "The specified bucket does not exist."),
    Fault.FULL: (507, "InsufficientStorage", "There is no space left on the device."),
}


@dataclass
class Rule:
    """Selects the requests that meet a fault: by method and target, a share of them, up to a limit.

    `held_seconds` is the delay of `HELD`.
    """

    fault: Fault
    methods: str = "PUT|POST"
    target: str = ""
    ratio: float = 1.0
    limit: int | None = None
    held_seconds: float = 0.0
    met: int = 0


@dataclass(frozen=True)
class Seen:
    """A request: method, path with query, the status that the client got (0: none) and the fault that it met.

    `at` is the time of the answer, in seconds since the epoch.
    """

    method: str
    target: str
    status: int
    fault: Fault | None
    at: float = field(default_factory=time.time)


@dataclass
class Wire:
    """A running proxy, on `port` of the loopback interface.

    With `lifetime`, in seconds, every new connection is reset at that age.
    """

    port: int
    upstream: int
    lifetime: float | None = None
    rules: list[Rule] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    # Connections that reached their lifetime, open connections, and their maximum.
    expired: int = 0
    open: int = 0
    most_open: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
        """The endpoint for clients."""
        return f"http://127.0.0.1:{self.port}"

    def count(self, opened: int) -> None:
        """Count an opened (1) or closed (-1) connection."""
        with self.lock:
            self.open += opened
            self.most_open = max(self.open, self.most_open)

    def begin(self, rules: Iterable[Rule]) -> None:
        """Replace the rules, and drop recorded requests."""
        with self.lock:
            self.rules[:] = [replace(rule) for rule in rules]
            self.seen.clear()

    def has_seen(self, target: str) -> bool:
        """Return whether there was a request with a matching target."""
        with self.lock:
            return any(re.search(target, one.target) for one in self.seen)

    def fault(self, method: str, target: str) -> Rule | None:
        """Return the rule that applies to a request, and count it."""
        with self.lock:
            for rule in self.rules:
                due = rule.limit is None or rule.met < rule.limit
                matches = re.fullmatch(rule.methods, method) and re.search(rule.target, target)
                if due and matches and self.chance.random() < rule.ratio:
                    rule.met += 1
                    return rule
        return None

    def note(self, seen: Seen) -> None:
        """Record a request."""
        with self.lock:
            self.seen.append(seen)

    def met(self, *faults: Fault) -> list[Seen]:
        """Return the requests that met one of these faults, or any."""
        with self.lock:
            return [one for one in self.seen if one.fault is not None and (not faults or one.fault in faults)]


@contextmanager
def wire(upstream: int) -> Iterator[Wire]:
    """Run a proxy to that port of the loopback interface, until the end of the block."""

    class Handler(_Handler):
        pass

    with _Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Handler.wire = Wire(server.server_address[1], upstream)
        thread = threading.Thread(target=server.serve_forever, name="wire", daemon=True)
        thread.start()
        try:
            yield Handler.wire
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    def shutdown_request(self, request: Any) -> None:
        """Close the connection without a shutdown, which would prevent a reset."""
        self.close_request(request)


class _Handler(BaseHTTPRequestHandler):
    """A client's connection, and the connection to the server for it."""

    wire: ClassVar[Wire]
    protocol_version = "HTTP/1.1"
    # Send an answer in one piece.
    wbufsize = -1
    disable_nagle_algorithm = True
    _upstream: http.client.HTTPConnection | None = None
    _expired = False

    def setup(self) -> None:
        super().setup()
        self.wire.count(1)
        if self.wire.lifetime is not None:
            timer = threading.Timer(self.wire.lifetime, self._expire)
            timer.daemon = True
            timer.start()

    def _expire(self) -> None:
        """Let the connection be closed by a reset: reads end, and no request is answered."""
        self._expired = True
        with suppress(OSError):
            # The kernel resets a connection that is closed with these options.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RD)
            with self.wire.lock:
                self.wire.expired += 1

    def handle_expect_100(self) -> bool:
        """Answer at once: the client waits for it."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def finish(self) -> None:
        self.wire.count(-1)
        if self._upstream is not None:
            self._upstream.close()
        with suppress(OSError):
            super().finish()

    def _handle(self) -> None:
        body = self._chunks() if self._is_chunked else self.rfile.read(int(self.headers.get("Content-Length", "0")))
        rule = self.wire.fault(self.command, self.path)
        fault = None if rule is None else rule.fault
        if rule is not None and fault is Fault.HELD:
            time.sleep(rule.held_seconds)
        if fault is Fault.RESET:
            self._cut(fault)
        elif fault in _ANSWERS:
            self._refuse(fault)
        else:
            self._pass_on(body, fault)

    @property
    def _is_chunked(self) -> bool:
        return "chunked" in self.headers.get("Transfer-Encoding", "")

    def _chunks(self) -> bytes:
        """Read a body of chunks, and leave them as they are: see RFC 9112, section 7.1."""
        read = [self._line()]
        while length := int(read[-1].partition(b";")[0], 16):
            read += [self.rfile.read(length + 2), self._line()]
        # Trailers, up to an empty line.
        while read[-1] != b"\r\n":
            read.append(self._line())
        return b"".join(read)

    def _line(self) -> bytes:
        line = self.rfile.readline()
        if not line:
            raise ConnectionResetError("the client is gone")
        return line

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

    def _pass_on(self, body: bytes, fault: Fault | None) -> None:
        try:
            answer, content = self._ask(body)
        except (OSError, http.client.HTTPException):
            # Without the server, the client's connection is closed.
            self._cut(None)
            return
        if fault is Fault.LOSE_REPLY or self._expired:
            self._cut(fault)
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        self._end(content, answer.status, fault)

    def _ask(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        if self._upstream is None:
            self._upstream = http.client.HTTPConnection("127.0.0.1", self.wire.upstream, timeout=UPSTREAM_SECONDS)
        try:
            self._upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    self._upstream.putheader(name, value)
            if self._is_chunked:
                self._upstream.putheader("Transfer-Encoding", "chunked")
            elif body or self.command in ("PUT", "POST"):
                self._upstream.putheader("Content-Length", str(len(body)))
            self._upstream.endheaders(body or None)
            answer = self._upstream.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException):
            self._upstream.close()
            self._upstream = None
            raise

    def _refuse(self, fault: Fault) -> None:
        status, code, message = _ANSWERS[fault]
        text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
        content = text.encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self._end(content, status, fault)

    def _end(self, content: bytes, status: int, fault: Fault | None) -> None:
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()
        self.wire.note(Seen(self.command, self.path, status, fault))

    def _cut(self, fault: Fault | None) -> None:
        self.wire.note(Seen(self.command, self.path, 0, fault))
        self.close_connection = True
        if self._expired:
            return
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: requests are recorded."""
