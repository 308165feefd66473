"""What is evaluated: pages, pairs of them, their labels and graphs, what runs decided, and measures with intervals."""
