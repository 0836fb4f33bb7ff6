"""*Transformers as Support Vector Machines*: data, claims, figures."""
