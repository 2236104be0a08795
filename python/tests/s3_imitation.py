# SPDX-License-Identifier: Apache-2.0
"""An imitation of S3 in this process."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any


@contextmanager
def s3_imitation() -> Iterator[int]:
    """A server that speaks S3's protocol on the yielded port of the loopback interface.

    All imitations of a process share their buckets.
    """
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    # Otherwise it logs each request.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = _OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _OneAtATime:
    """Answers one request after another: moto looks for an object and creates it in two steps, S3 in one."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._lock = Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        length = environ.get("CONTENT_LENGTH")
        if length:
            # A slow sender keeps no other request waiting.
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))
        with self._lock:
            return list(self._application(environ, start_response))
