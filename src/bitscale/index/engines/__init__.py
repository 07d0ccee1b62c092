"""Indexes in an engine elsewhere, behind the same promises as the embedded one; FAISS as a format to hand over.

postgresql://   codes as bit(n), exact by SQL
milvus://       codes as sign vectors, weights in the query
"""
