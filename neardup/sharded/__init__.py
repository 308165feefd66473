"""The matcher in two parts: shards, which find and score candidates, and a judge, which decides in the log's order.

The decider sets the number of shards V (`Decider.shards`) and the epoch E (`Decider.epoch`, in offsets of the sketch
log). If E is 0, one matcher does both parts. Otherwise a verdict is a function of the log and of (V, E): the number of
processes, their speed, their crashes and repeated answers do not change it. `Sharding` has the arithmetic.

    sketch log ----+--> shard 0 .. V - 1  (`Shard`: posting lists, sketches) --- Candidates of each message --+
                   |          ^                                                                               |
                   |          +---------------- Effects of each message <---------------+                     v
                   +------------------------------------------------------------------ judge (URLs, clusters, members,
                                                                                       digests, namings, window)

Each offset of the log belongs to one shard. A shard keeps the sketches of its own offsets, and postings of those
sketches that represent a cluster. It answers each message of the log (`Candidates`) from the *stable view*: the index
after the effects of exactly the messages before `Sharding.stable_to(offset)`. The judge finds later representatives in
its window: the sketches and postings of the last two epochs.

The judge is the matcher of `streams.pipeline.matcher` with a decider whose epoch is not 0: `Matcher.prepare` then takes
one message at a time, with the V answers to it (`answers=`), and `Prepared.effects` are the `Effects` of this message.
Shards answer every message, and every message has `Effects`, also a control record and a message that changes nothing.
The judge stores no sketch: of each live page it keeps the header and the texts of the record. It keeps the effects of
the last two epochs among its rows. After a restart the caller must pass it the messages of the log from
`Matcher.window.restore_from` up to `next_offset` again, so that it can rebuild its window (`Matcher.restore_window`).

`Shard` has two positions. `log_position`: the offset of the log behind the last message that it read.
`effects_position`: the offset behind the last message whose effects are in its rows. Rows are a function of
`effects_position` alone; they are written together with it. After a restart the caller must pass a shard the log and
the effects from `effects_position` on. The shard ignores effects and messages before its positions, so both may be
repeated. Answers may be repeated, too: the judge uses the first answer of a shard to an offset.

Verdicts differ from those of one matcher in the following cases only. With an epoch longer than the log none of them
occurs.

* If a member is promoted, and its sketch is older than the window, it becomes a candidate two epochs later. Until then
  a page that is similar to it founds a cluster of its own.
* A URL that is fetched again is compared with its held fetch and with its cluster's founding sketch by the shards that
  hold these sketches. Two cases prevent that: the founding sketch has changed since, and the new one is no candidate;
  or both fetches are younger than two epochs, and the founding sketch is older and no candidate. Then the fetch is
  judged as a new page. Likewise a URL reclaims a cluster only if the cluster's founding sketch is a candidate for it,
  follows it (`EffectKind.FOLLOW`), or is in the window.
* If a cluster has a new founding sketch, a fetch with unchanged content is verified against it by the fetch's own
  record, not by the held one.
* Each shard and the window count the postings of a key separately, so a key turns hot later, and there may be more
  candidates. No verdict contains `turned_hot`.
* Each shard answers with its best `candidates_max` candidates. Those that were retired since are removed afterwards.
"""
