"""Pages of HTML about a run or a partition, and the words and pictures of them."""
