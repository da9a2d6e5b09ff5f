"""`python -m console.gateway`."""

import sys

from console.gateway.command import main

sys.exit(main())
