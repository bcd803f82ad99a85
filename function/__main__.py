"""`python -m function` serves; with further words it is the command `ember`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if sys.argv[1:] in ([], ["serve"]):
        from function.process.start import run

        sys.exit(run())
    from function.command import main

    main()
