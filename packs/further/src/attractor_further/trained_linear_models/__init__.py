"""Linear attention on finite prompts: its best head and its training, from two papers."""

from attractor.papers import Paper

TRAINED_LINEAR_MODELS = Paper(
    "trained-linear-models",
    "Trained Transformers Learn Linear Models In-Context",
    "Zhang, Ruiqi and Frei, Spencer and Bartlett, Peter L.",
    2023,
    "2306.09927",
)
PRECONDITIONED_DESCENT = Paper(
    "preconditioned-descent",
    "Transformers Learn to Implement Preconditioned Gradient Descent for In-Context Learning",
    "Ahn, Kwangjun and Cheng, Xiang and Daneshmand, Hadi and Sra, Suvrit",
    2023,
    "2306.00297",
)
