"""A process that writes an audit as fast as it can and says what it would have answered.

    python -m tests.function.trust.audit.replica PLACE KEYS [SPOOL]

It prints the id of each request when its line is written: from then on it counts as answered.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from function.process.wiring.audit import build_audit
from function.settings.audit import AuditSettings

from .chains import swap

_AT_ONCE = 16


async def main(place: str, keys: str, spool: str) -> None:
    """Write until killed, or until there is no more to read from standard input."""
    settings = AuditSettings(
        audit=place, audit_key=Path(keys), audit_spool=Path(spool or "."), audit_window_s=1.0
    )
    audit = build_audit(settings)
    await audit.start()

    async def ask(caller: int) -> None:
        number = 0
        while True:
            number += 1
            name = f"{os.getpid()}-{caller}-{number}"
            await audit.write(swap(name, target=audit.digest(name.encode())))
            os.write(2, name.encode() + b"\n")

    asking = [asyncio.create_task(ask(caller)) for caller in range(_AT_ONCE)]
    await asyncio.to_thread(sys.stdin.read)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await audit.close(10.0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""))
