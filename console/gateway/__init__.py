"""The gateway: the one public port, a small process of its own between clients and vLLM's unix socket.

A pass-through for now: bytes in, bytes out, and a clear answer when there is no engine. It outlives the station and
keeps the lane table it was last sent. Imports stay small (no store, no Textual): it must start at once.
"""
