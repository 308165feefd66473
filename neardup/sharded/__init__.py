"""The matcher in two parts: shards, which find and score candidates, and a judge, which decides in the log's order.

A decider names the number of shards V (`Decider.shards`) and the epoch E (`Decider.epoch`, in offsets of the sketch
log). E = 0: one matcher, no parts. Otherwise a verdict is a function of the log and of (V, E); the number of processes,
their speed, their crashes and repeated answers change nothing. See `Sharding` for the arithmetic.

    sketch log ----+--> shard 0 .. V - 1  (`Shard`: posting lists, sketches) --- Candidates of each message --+
                   |          ^                                                                               |
                   |          +---------------- Effects of each message <---------------+                     v
                   +------------------------------------------------------------------ judge (URLs, clusters, members,
                                                                                       digests, namings, window)

A shard keeps the sketches of the log's offsets that are its own, and the postings of those that represent a cluster. It
answers each message of the log (`Candidates`) from the *stable view*: the index after the effects of all messages
before `Sharding.stable_to(offset)`, no more and no fewer. What happened since, the judge finds in its window: the
sketches and postings of the last two epochs.

The judge is the matcher of `streams.pipeline.matcher` with a decider whose epoch is not 0: `Matcher.prepare` then takes
one message at a time, with the V answers to it (`answers=`), and `Prepared.effects` are the `Effects` of this message.
Shards answer every message, and every message has effects, also a control record, and also where nothing changes. The
judge stores no sketch: of each live page it keeps the header and the texts of the record. It keeps the effects of the
last two epochs among its rows. After a restart it must be given the messages of the log from
`Matcher.window.restore_from` up to `next_offset` once more, for its window (`Matcher.restore_window`).

`Shard` has two positions. `log_position`: the offset of the log behind the last message that it read.
`effects_position`: the offset behind the last message whose effects are in its rows. Rows are a function of
`effects_position` alone; they are written together with it. After a restart a shard must be given the log from
`effects_position` on, and effects from there on. Effects and messages before its positions are ignored, so both may be
given again. Answers may be repeated; the judge uses the first of an offset and shard.

What (V, E) changes, compared with one matcher. All else is the same; with an epoch longer than the log, everything is.

* A member that is promoted, and whose sketch is older than the window, becomes a candidate two epochs later. Until then
  a page that is like it founds a cluster of its own.
* A URL is compared with its held fetch and its cluster's founding sketch through the shards that hold them. Where that
  is not possible (the founding sketch has changed since and is no candidate; or both fetches are younger than two
  epochs, and the founding sketch is older and is no candidate), the fetch is judged as a new page. Likewise a URL
  reclaims a cluster only if the cluster's founding sketch is a candidate of it, follows it, or is in the window.
* A fetch with unchanged content is verified against a new founding sketch by its own record, not by the held one.
* A key turns hot in each shard by itself, and in the window by itself, so that there may be more candidates. No verdict
  says `turned_hot`.
* Each shard answers with its best `candidates_max` candidates, before those that were retired since are left out.
"""
