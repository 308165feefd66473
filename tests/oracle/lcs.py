"""The longest common subsequence by the textbook's table (Wagner and Fischer 1974); shares no code with the kernels."""


def lcs(a, b):
    """Length of the longest common subsequence of two sequences."""
    row = [0] * (len(b) + 1)
    for x in a:
        before, row, length = row, [0], 0
        for j, y in enumerate(b):
            if x == y:
                length = before[j] + 1
            elif before[j + 1] > length:
                length = before[j + 1]
            row.append(length)
    return row[-1]


def fewest_runs(a, b):
    """The position in a that each item of b is matched with, or None: of the longest common subsequences the one in the
    fewest runs, read from the ends as neardup/partition/README.md, step 6, says.
    """
    nothing = (-1, 0)
    best = [[(0, 0)] * (len(b) + 1) for _ in range(len(a) + 1)]  # (length, -runs)
    matched = [[nothing] * (len(b) + 1) for _ in range(len(a) + 1)]  # the same, of those that end with a match
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                fresh, longer = best[i - 1][j - 1], matched[i - 1][j - 1]
                matched[i][j] = (fresh[0] + 1, fresh[1] - 1)
                if longer != nothing:
                    matched[i][j] = max(matched[i][j], (longer[0] + 1, longer[1]))
            best[i][j] = max(best[i - 1][j], best[i][j - 1], matched[i][j])
    partner = [None] * len(b)
    i, j, need = len(a), len(b), None  # need: what the rest of a run must reach
    while i and j:
        if need is not None or matched[i][j] == best[i][j]:
            here = matched[i][j]
            partner[j - 1] = i - 1
            i, j = i - 1, j - 1
            need = (here[0] - 1, here[1]) if matched[i][j] == (here[0] - 1, here[1]) else None
        elif best[i - 1][j] == best[i][j]:
            i -= 1
        else:
            j -= 1
    return partner
