"""Raw text cut into sentences, tokens and words by a model of its characters."""
