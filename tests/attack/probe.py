"""Asks `/healthz` of a port ten times a second until its input ends; prints what came of it."""

from __future__ import annotations

import http.client
import select
import sys
import time

_PAUSE_S = 0.1


def main() -> None:
    port = int(sys.argv[1])
    slowest, wrong = 0.0, 0
    print("asking", flush=True)
    while not select.select([sys.stdin], [], [], _PAUSE_S)[0]:
        began = time.monotonic()
        wrong += not well(port)
        slowest = max(slowest, time.monotonic() - began)
    print(slowest, wrong)


def well(port: int) -> bool:
    """Whether it answers 200, on a connection of its own, as platforms ask."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main()
