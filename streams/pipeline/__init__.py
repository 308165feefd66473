"""The fold of the sketch log, shared by scan and stream: accounting, deciders, takedowns, expiry, audit, matcher."""
