"""Serve a page that follows the commands of a results folder. Nothing is written there."""

import secrets
import socket
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.library.registry import load_plugins
from benchmark.library.watch_options import WatchOptions
from benchmark.live.content import Content
from benchmark.live.server import Guard, Server, is_loopback
from benchmark.paper.assemble import MAKERS
from benchmark.store.mirror import folder_or_url, local_copy
from benchmark.store.read_only import ReadOnlyStore

EVERY_ADDRESS = ("0.0.0.0", "::")


def open_watch(options: WatchOptions) -> Server:
    """Return the server of a results folder's page. It listens, and answers once it is told to serve."""
    load_plugins(options.plugin)
    content = Content(ReadOnlyStore(watched_folder(options.results)), MAKERS)
    only_here = is_loopback(options.host)
    token = options.token or (None if only_here else secrets.token_urlsafe(24))
    try:
        return Server(options.host, options.port, content, Guard(only_here, token))
    except OSError as error:
        raise UserError(
            f"cannot listen to {options.host}, port {options.port}: {error.strerror or error}; "
            "name another with --port N (0: any that is free), or with --host"
        ) from None


def watched_folder(results: str) -> Path:
    """Return the folder to read. Of results at a URL it is the copy into which commands on this machine write."""
    place = folder_or_url(results)
    folder = place if isinstance(place, Path) else local_copy(place)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"'{folder}' is a file; name a results folder with --results DIR")
    if not isinstance(place, Path) and not folder.exists():
        raise UserError(f"no command on this machine writes to '{place}'; call `watch` where the run was started")
    return folder


def address_of(server: Server) -> str:
    """Return the address of the page, as people open it."""
    host = str(server.server_address[0])
    name = "localhost" if is_loopback(host) else socket.gethostname() if host in EVERY_ADDRESS else host
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{server.server_port}/" + (f"?token={server.guard.token}" if server.guard.token else "")
