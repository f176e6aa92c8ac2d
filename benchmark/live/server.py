"""Serve the page that follows a run, to this machine alone unless a token guards it. Requests only read."""

import hmac
import json
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmark.live.content import Content, asset
from benchmark.report import page as report

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NONE: Mapping[str, str] = {}
SECONDS = 20.0
"""A request that takes longer to arrive is given up."""


def is_loopback(host: str) -> bool:
    """Tell whether a name means this machine, and cannot mean another one."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_of(header: str) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


@dataclass(frozen=True)
class Guard:
    """Decides who may see the page."""

    only_here: bool
    """Whether the server listens to this machine alone. Then no other name may lead to it, as one of a web page could
    that wants to read ours."""
    token: str | None = None

    def knows_host(self, header: str) -> bool:
        return not self.only_here or is_loopback(host_of(header))

    def admits(self, given: str | None) -> bool:
        """Tell whether a token is the right one. That takes the same time for all wrong ones."""
        return self.token is None or hmac.compare_digest((given or "").encode(), self.token.encode())


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD. It knows four paths, and opens no file."""

    server: "Server"
    timeout = SECONDS
    server_version, sys_version = "selbench", ""

    def do_GET(self) -> None:
        self.answer()

    do_HEAD = do_GET

    def refuse(self) -> None:
        self.send(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered", further={"Allow": "GET, HEAD"})

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = refuse

    def answer(self) -> None:
        """Send what a path names, if whoever asks may see it."""
        guard, url = self.server.guard, urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if not guard.knows_host(self.headers.get("Host", "")):
            self.send(HTTPStatus.FORBIDDEN, "this server is known as localhost, and by no other name")
        elif url.path == "/" and guard.token and "token" in query and guard.admits(query["token"]):
            cookie = f"{self.server.cookie}={guard.token}; HttpOnly; SameSite=Lax; Path=/"
            self.send(HTTPStatus.SEE_OTHER, "", further={"Location": "/", "Set-Cookie": cookie})
        elif not guard.admits(self.own_cookie()):
            self.send(HTTPStatus.FORBIDDEN, "this page needs the address with a token that `watch` has printed")
        else:
            self.send_path(url.path, query)

    def own_cookie(self) -> str | None:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            return None
        return found.value if found else None

    def send_path(self, path: str, query: dict[str, str]) -> None:
        content, javascript = self.server.content, "text/javascript"
        known: dict[str, tuple[str, Callable[[], str | None]]] = {
            "/": ("text/html", content.page),
            "/versions": ("application/json", lambda: json.dumps(content.versions())),
            "/section": ("text/html", lambda: content.sections().get(query.get("name", ""))),
            "/report.js": (javascript, lambda: report.asset("report.js")),
            "/live.js": (javascript, lambda: asset("live.js")),
        }
        kind, make = known.get(path, ("", lambda: None))
        try:
            text = make()
        except Exception as error:  # records that are written while they are read, or of another version
            print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)
            self.send(HTTPStatus.INTERNAL_SERVER_ERROR, "the results cannot be shown now")
            return
        if text is None:
            self.send(HTTPStatus.NOT_FOUND, "there is no such page")
        else:
            self.send(HTTPStatus.OK, text, kind)

    def send(self, status: HTTPStatus, text: str, kind: str = "text/plain", further: Mapping[str, str] = NONE) -> None:
        body = text.encode()
        self.send_response(status)
        about = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in {**about, **further}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def end_headers(self) -> None:
        """End the headers of any answer, also of an error, with those that all have."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: addresses may have a token."""


class Server(ThreadingHTTPServer):
    """The page at an address. It begins to listen when it is made."""

    def __init__(self, host: str, port: int, content: Content, guard: Guard) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.content, self.guard = content, guard
        super().__init__((host, port), Handler)

    def server_close(self) -> None:
        super().server_close()
        self.content.close()

    @property
    def cookie(self) -> str:
        """Return the name of the cookie with the token: browsers keep one set of cookies for all ports of a host."""
        return f"selbench-{self.server_port}"

    def server_bind(self) -> None:
        """Bind, and do not ask the network for the name of this machine: that may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has left, and the rest as ever."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)
