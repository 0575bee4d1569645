// Package das is the robot's event manager: it numbers events, keeps them on disk until the cloud has said "stored", and sends them in
// batches (part of VEC-DAS-05, VEC-FLE-03). Days offline, reboots and kills at any moment lose nothing within the quotas.
//
//	Emit -> memory -> segment file -> fsync            an event is durable within a second, with EmitDurable on return
//	segment -> batch -> up/das -> down/ack: stored     the position is written durably, then whole files go
//	                               refused             the bad events go to quarantine, the rest is a new batch
//	                               retry_after         nothing is sent until then
//
// Segments are NDJSON files das-<number>.ndjson below storage_path, of one boot each, in ascending order. When storage is full the oldest
// move to backup_path; when that is full too the oldest are dropped, counted and reported as das.dropped. Nothing is sent before it is in a
// file, so a restart within one boot continues with the number after the highest found in files or in the state file, which is written before
// any file goes: no number is used twice. A line torn by a kill or a power cut was never durable; it is cut off and counted.
//
// If storage_path is a memory file system, as on the original, a power cut loses the events that were not moved to backup_path; call Backup
// before an orderly reboot, or choose a storage_path on flash.
package das
