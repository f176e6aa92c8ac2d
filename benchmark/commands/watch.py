"""`watch`: follow a run in the browser: every job, the time left, learning curves, tables as far as they are known.

Start it beside the run, in a second terminal, with the same --results. The page renews itself as results come in. This
command only reads: it can be started and stopped at any time, and Ctrl-C ends it.

The page is for this machine alone. To see it from another one, make a tunnel (ssh -L 8321:localhost:8321 MACHINE), or
let it listen to others with --host 0.0.0.0: then only those can read it who have the address with its token. It is
not encrypted, so do that in a network that you trust.
"""

import argparse
from pathlib import Path

from benchmark.base.files import say
from benchmark.commands.options import add_plugins, add_results, make_options, whole
from benchmark.library.watch_options import PORT, WatchOptions

HELP = "follow a run in the browser: jobs, time left, learning curves, tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    port = "where the page is served (default: 8321); 0: any port that is free"
    parser.add_argument("--port", type=whole(PORT), default=WatchOptions.port, metavar="N", help=port)
    host = "address to listen to (default: 127.0.0.1, this machine alone); any other one needs the token"
    parser.add_argument("--host", default=WatchOptions.host, metavar="H", help=host)
    token = "what a reader must know, 16 or more letters and digits (default: a new one, where it is needed)"
    parser.add_argument("--token", metavar="TEXT", help=token)
    add_plugins(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.watch import address_of, open_watch

    options = make_options(WatchOptions, arguments)
    with open_watch(options) as server:
        if "://" not in options.results and not Path(options.results).exists():
            say(f"'{options.results}' is not there yet; the page shows it as soon as it is")
        print(f"{address_of(server)}\nCtrl-C ends it.", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
