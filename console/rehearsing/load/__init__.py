"""The load generator of a rehearsal, a process of its own: sends each request at its intended moment, whatever became
of the others.

`front.send` is the way in; `python -m console.rehearsing.load` is what it starts.
"""
