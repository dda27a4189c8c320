"""How events come in: files, pipes, batches, folders and brokers, all to one form that the doors read.

Whatever is wrong with a single record is settled here without a word; what is refused is an envelope.
"""
