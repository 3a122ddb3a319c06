"""Text as tokens: tokenizers, encoding on several processes, shards."""
