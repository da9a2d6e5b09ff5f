"""The learned drafter: an EAGLE-3 head for a Llama-type target, from prompts to a folder that vLLM loads.

Stages, each a module and a command (`specdeck drafter STAGE`), each resumable, in one working folder:

prompts → answers (by the target itself, through vLLM) → features (its hidden states) → fit → export → evaluate
"""
