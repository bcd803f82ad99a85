"""functions-framework: a global that the first call fills, as its guides advise."""

import functions_framework

from tests.bench.cold.swapping import TUNED, Swap

swapping = Swap() if TUNED else None


@functions_framework.http
def swap(request):
    global swapping  # noqa: PLW0603 (the documented way)
    if request.method == "GET":
        return "alive"
    if swapping is None:
        swapping = Swap()
    return swapping.json(request.get_json())
