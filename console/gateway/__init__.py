"""The gateway: the one public port, a small process of its own between clients and vLLM's unix socket.

Bytes in, bytes out, and a clear answer when there is no engine. Of a request that generates text it reads the workload
tag and `disable_speculation`, puts into the body what vLLM would not see otherwise, and chooses the engine. It outlives
the station with the lane table it was last sent. Prompts and answers pass through unread, but while a recording with
text asks for them (`texts`). Imports stay small (no store, no Textual): it must start at once.
"""
