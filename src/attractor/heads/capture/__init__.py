"""The heads of models of transformers on texts, as the models themselves compute them."""
