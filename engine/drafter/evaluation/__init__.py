"""What a head is worth, measured on the engine that serves: acceptance from the recorder's rows, and tokens/s of
engines that take turns. `evaluate.evaluate` is the way in."""
