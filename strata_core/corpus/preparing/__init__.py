"""From files to the directory of a corpus of text and annotated sentences."""
