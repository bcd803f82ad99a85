"""A client of Ember, the face-swap function: `Client` for threads, `AsyncClient` for asyncio."""

from ember_client import problems, results
from ember_client.async_client import AsyncClient
from ember_client.client import Client
from ember_client.errors import EmberError, Problem, UnexpectedAnswer, Unreachable
from ember_client.options import CallOptions, JobOptions, SwapOptions
from ember_client.photos import Photo
from ember_client.results import Face, Faces, File, Job, Swap, Verification
from ember_client.webhooks import InvalidSignature, Webhook, open_webhook

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "CallOptions",
    "Client",
    "EmberError",
    "Face",
    "Faces",
    "File",
    "InvalidSignature",
    "Job",
    "JobOptions",
    "Photo",
    "Problem",
    "Swap",
    "SwapOptions",
    "UnexpectedAnswer",
    "Unreachable",
    "Verification",
    "Webhook",
    "open_webhook",
    "problems",
    "results",
]
