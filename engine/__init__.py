"""What touches vLLM, and the pure policy maths beside it. Imports neither `store` nor `console`."""
