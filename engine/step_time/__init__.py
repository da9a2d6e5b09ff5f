"""How long a step takes under which load, from counts of steps, and what vanilla would have needed for the same tokens.

`counts.StepTimes` go in, `model.fit_step_model` makes a `StepModel` of them, `load.account` holds a bucket's rows
against it. Definitions: definitions.md, "Step time, vanilla-equivalent, realised speedup". Arithmetic only.
"""
