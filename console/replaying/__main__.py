"""`python -m console.replaying TRACE --sockets DIR`: what `specdeck replay` starts."""

from __future__ import annotations

import sys

from console.replaying.command import main

sys.exit(main())
