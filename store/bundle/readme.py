"""The README of a bundle: what is in it, what is missing and why, what was taken out, how to open it."""

from __future__ import annotations

import time
from typing import Final

from store.bundle.contents import PARTS, TRACE, Bundle

_README: Final = """\
A bundle of specdeck for a bug report, of {subject}.
Made {made}.

READ IT BEFORE YOU SEND IT. It was redacted by rules, and rules can miss what they don't know. All of it is plain text
but {trace}, which `zstd -dc` shows.{doubts}

How to open it (FILE is this ZIP as it is)
  specdeck trace info FILE           what was recorded
  specdeck report FILE               figures per bucket
  specdeck alerts FILE               the alerts that it gave
  specdeck replay FILE --headless    the records under a virtual clock

What is in it
{parts}

What is missing
{missing}

What was taken out, and what stands there instead
  <secret>, <credentials>  API keys and passwords: specdeck's own wherever it occurs, and whatever looks like one
  <user>, <host>, ~        names of the user and the machine, and the home directory; of others where an address, a
                           setting or a path names them
  <address>                IP addresses, except for loopback and 0.0.0.0
  <e-mail>                 e-mail addresses
  <request>                vLLM's request ids; in the records they are left out
  <text>                   prompts and answers that vLLM may have been told to log, hints that clients got wrong
{tags}
  operator                 whoever did something, by whatever name
Sequences have numbers instead of their names. Paths of models are reduced to their last part.

specdeck's records never hold a prompt or an answer: they are counts, times and names.
"""
_TAGS_GONE: Final = """\
  tag-1, tag-2, ...        workload tags, each with the same number everywhere; the judge's memory (`state` records) is
                           left out, because it names them in a form of its own"""
_TAGS_KEPT: Final = "  Workload tags were kept as they are (--keep-tags)."


def readme(bundle: Bundle, made: float) -> str:
    """What a reader of the bundle should know."""
    parts = [f"  {name:<16} {what}" for name, what in PARTS.items() if name in bundle.parts]
    missing = [f"  {name:<16} {bundle.missing[name]}" for name in PARTS if name in bundle.missing]
    return _README.format(
        subject=bundle.subject,
        made=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(made)),
        trace=TRACE,
        doubts="".join(f"\n{doubt}" for doubt in bundle.doubts),
        parts="\n".join(parts),
        missing="\n".join(missing) or "  nothing",
        tags=_TAGS_KEPT if bundle.tags_kept else _TAGS_GONE,
    )
