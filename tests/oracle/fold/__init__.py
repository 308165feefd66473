"""The slow twin of `neardup.fold`: judges one page after another, in plain Python, and reads each row when it needs it.

Each change is encoded and put over the store at once (`overlay`), so that a page sees the effects of the pages before
it in the bytes that the index would hold. It shares with the compiled fold the codecs of rows, the records of a
batch, the numbers of a pair and the rules, which have twins or tests of their own, and nothing else.
"""
