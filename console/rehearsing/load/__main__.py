"""`python -m console.rehearsing.load`."""

import sys

from console.rehearsing.load.command import main

sys.exit(main())
