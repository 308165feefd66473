"""The rules on labelled pairs: side by side, tuned, and audited in a live run."""
