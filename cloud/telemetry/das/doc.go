// Package das takes in what robots report about their lives and answers questions about it (VEC-DAS-09).
//
// A batch of events arrives on up/das. The Ingester checks it, puts it with the batches of other robots into one transaction, and only
// after the commit tells each robot "stored": that acknowledgement is the robot's permission to forget (infra/adr/0001). A robot resends
// until it hears an answer, so the same event may arrive any number of times, at several processes at once; a set of received sequence
// numbers per (thing, boot_id), changed in the transaction of the events, lets each in exactly once.
//
//	stored       committed, now or earlier
//	refused      can never be stored; names the bad events so that the rest can be sent again
//	retry_after  not now: the queue is full or the database is away; the pause grows with the outage and is jittered
//
// The batch as it came is kept in S3, at first one object per transaction; package archive joins them. While S3 is away the bytes wait in the database, in that same
// transaction, and are moved later: S3 may be down without holding back events, and no raw batch is missing.
//
// Events lie in partitions by day of receipt, because robot clocks lie; old days are dropped whole.
package das
