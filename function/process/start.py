"""Starting the server: settings, logs, the port; then HTTP takes over.

`python -m function` and `ember serve` both come here. Neither click nor anything heavy is imported.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import sys
from ipaddress import ip_address
from typing import TYPE_CHECKING

from function.exits import Exit
from function.process import garbage
from function.settings import load
from function.telemetry import logs
from warmup.failures import WarmupError
from warmup.settings.variables import SettingsError
from warmup.timeline import Timeline

if TYPE_CHECKING:
    from function.settings.access import AddressSettings

_ADVICE = {
    errno.EADDRINUSE: "Stop what uses it, or choose another with EMBER_PORT.",
    errno.EADDRNOTAVAIL: "Set EMBER_HOST to an address of this machine.",
    errno.EACCES: "Choose one from 1024 on with EMBER_PORT.",
}

_ANYBODY = (
    "EMBER_HOST={host} lets others in, and EMBER_AUTH is none. Set EMBER_AUTH to keys or jwt; or,"
    " where something in front decides who may call, EMBER_ALLOW_ANONYMOUS=true."
)

log = logging.getLogger("ember.startup")


def run() -> int:
    """Serve until told to stop.

    Returns:
        The exit code of the process.
    """
    garbage.hold()
    timeline = Timeline()
    timeline.add("interpreter", 0, timeline.now())
    # Until the server minds its signals: as PID 1 of a container, a process ignores SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        settings = load(os.environ)
    except SettingsError as error:
        return _refuse(str(error), Exit.CONFIG)
    address = settings.address
    if refusal := _refusal(address, settings.access.auth):
        return _refuse(*refusal)
    logs.setup(settings.telemetry.log_format, settings.telemetry.log_level)
    if sys.stderr.isatty() and address.port:
        url = _url(address.host, address.port)
        print(f"Ember is on {url} and loads its models; Ctrl-C ends it.", file=sys.stderr)
    from function.process.server import serve
    from function.runtime import heap, installed

    heap.settle()

    try:
        installed.check()
        installed.check_backends(settings.engines.backends)
        return serve(settings, timeline)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except (SettingsError, WarmupError) as error:
        return _refuse(str(error), error.exit_code)
    except Exception:
        # Not Python's own report, which would be many lines where a log has one for each event.
        log.exception("stopped by an error")
        return Exit.INTERNAL


def _refusal(address: AddressSettings, auth: str) -> tuple[str, Exit] | None:
    """Why the address is not listened on, and the exit code."""
    if reason := _unusable(address.host, address.port):
        return reason, Exit.UNAVAILABLE
    if auth == "none" and not address.allow_anonymous and _exposed(address.host):
        return _ANYBODY.format(host=address.host), Exit.CONFIG
    return None


def _refuse(reason: str, code: int) -> int:
    print(f"Error: {reason}", file=sys.stderr)
    return code


def _unusable(host: str, port: int) -> str | None:
    """Why the address cannot be listened on, and what to do; None when it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except socket.gaierror:
        return f"there is no address {host}; set EMBER_HOST to one of this machine's."
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Choose another with EMBER_HOST or EMBER_PORT.")
        return f"cannot listen on {host}, port {port}: {error.strerror}. {advice}"
    return None


def _exposed(host: str) -> bool:
    """Whether others than this machine can reach an address."""
    found = socket.getaddrinfo(host, None, flags=socket.AI_PASSIVE)
    return not all(ip_address(address[0]).is_loopback for *_, address in found)


def _url(host: str, port: int) -> str:
    """Where a browser on this machine finds the page."""
    shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, host)  # noqa: S104
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
