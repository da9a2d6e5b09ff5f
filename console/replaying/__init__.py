"""The child process behind `specdeck replay`: a trace or a store under a virtual clock, over the feed."""
