"""Risks in closed form: of softmax and linear attention, on finite and infinite prompts."""
