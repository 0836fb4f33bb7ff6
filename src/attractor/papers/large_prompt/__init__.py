"""*Softmax as Linear Attention in the Large-Prompt Regime*."""
