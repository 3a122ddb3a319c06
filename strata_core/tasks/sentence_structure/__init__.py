"""Which trees, parts of speech, predicates and roles has a sentence?"""
