"""Which relation holds between two nodes of a graph?"""
