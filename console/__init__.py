"""What the operator sees and types: the CLI, the Textual app, and station and gateway as processes of their own."""
