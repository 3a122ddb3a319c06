"""Does the continuation change as an edit of the roles says?"""
