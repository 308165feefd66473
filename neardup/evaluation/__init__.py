"""What rules and runs are worth: labelled pairs, the tables of three papers beside ours, and labelling by people."""
