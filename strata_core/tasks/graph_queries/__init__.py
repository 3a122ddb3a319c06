"""What is the answer to a query over a small graph of its own?"""
