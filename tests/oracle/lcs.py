"""The longest common subsequence by the textbook's table (Wagner and Fischer 1974); shares no code with the kernels."""


def lcs(a, b):
    """Length of the longest common subsequence of two sequences."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return row[-1]
