"""`python -m console.traffic`."""

import sys

from console.traffic.command import main

sys.exit(main())
