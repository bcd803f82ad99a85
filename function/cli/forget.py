"""`ember forget`."""

from __future__ import annotations

import asyncio
import json
import os
import secrets

import click

from function.background.jobs.erasure import Erasure, ErasureReceipt
from function.background.records import RecordStoreError
from function.cli.failure import Failure
from function.cli.jobs import opened
from function.exits import Exit
from function.process.wiring.audit import build_audit, kept_of_callers
from function.request_context import Entry, Sender
from function.settings import load

_CLOSE_S = 30.0


@click.command()
@click.option("--subject", required=True, help="Whose data, as in a key's line or a token's `sub`.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(subject: str, *, yes: bool) -> None:
    """Delete all that is stored of a caller, and print the receipt.

    These are its jobs with their photos, results and parts, in the Redis that EMBER_JOBS_REDIS_URL
    or EMBER_REDIS_URL names, and what EMBER_CONSENT_LIST has under its name. The audit keeps its
    lines, which have no picture; EMBER_AUDIT gets one more, about the deletion. Results that were
    written to a bucket are not deleted there.
    """
    if not yes:
        click.confirm(f"Delete all that is stored of {subject} for good?", abort=True)
    try:
        receipt = asyncio.run(_erase(subject))
    except RecordStoreError as error:
        reason = f"Not all could be deleted: {error}. Call it again."
        raise Failure(reason, Exit.UNAVAILABLE) from None
    click.echo(json.dumps(receipt.facts(), indent=2))


async def _erase(subject: str) -> ErasureReceipt:
    settings = load(os.environ)
    audit = build_audit(settings.audit, stream=2)
    await audit.start()
    try:
        async with opened() as (store, files):
            more = kept_of_callers(settings.gate)
            erasure = Erasure(store, files, store.end, audit, more)
            return await erasure.erase(subject, Sender(Entry.COMMAND, secrets.token_hex(16)))
    finally:
        await audit.close(_CLOSE_S)
