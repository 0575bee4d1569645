// Package events holds a robot's reports about its life: the DAS event, and the batch that carries events from the robot's disk to the cloud.
//
// An event is one JSON object. Keys and their order are those of the original's event manager (VEC-DAS-01, peer-facts section 5):
//
//	source ts seq level robot_id robot_version boot_id profile_id feature_type feature_run_id
//	[ble_conn_id] [wifi_conn_id] event [s1] [s2] [s3] [s4] [i1] [i2] [i3] [i4] uptime_ms [unsynced]
//
// Those in brackets are left out when unused; an integer that was set to 0 is written, one that was never set is not. profile_id,
// feature_type and feature_run_id are always written, as the original does. unsynced is ours: the robot had not yet learned the time, ts
// is a guess, and only uptime_ms can be trusted (VEC-BOOT-14). Unknown keys are ignored, so that an older cloud takes a newer robot's events;
// the raw batch keeps them.
//
// A batch is one line of JSON, a newline and gzip'ed NDJSON, events of one boot in ascending order of seq (design section 4):
//
//	{"v":1,"batch":"01K…","robot_id":"00e20100","boot_id":"…","first":17,"last":40,"count":24}\n<gzip>
//
// seq restarts with each boot, so an event's identity is (thing, boot_id, seq).
package events
