"""Where documents come from: finding the files, reading their bytes, and taking the documents out of them."""
