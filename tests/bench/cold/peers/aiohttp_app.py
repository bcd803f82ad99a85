"""aiohttp alone: loads when the application starts up, swaps in a thread."""

import asyncio
import os

from aiohttp import web

from tests.bench.cold.swapping import Swap

SWAP = web.AppKey("swap", Swap)


async def load(app):
    app[SWAP] = Swap()


async def healthz(_):
    return web.Response(text="alive")


async def swap(request):
    body = await request.json()
    return web.json_response(await asyncio.to_thread(request.app[SWAP].json, body))


if __name__ == "__main__":
    app = web.Application(client_max_size=64 * 1024**2)
    app.on_startup.append(load)
    app.add_routes([web.get("/healthz", healthz), web.post("/swap", swap)])
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]), print=None)
