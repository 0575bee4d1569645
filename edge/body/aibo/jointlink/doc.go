// Package jointlink is the protocol between an AIBO's joints and the computer that leads them. It is our own, because no public one exists (decision 0051):
// the body says every 8 ms where its joints are, and is told where they shall go.
//
//	A5 5A | type | length | payload ...       | CRC
//	 2 bytes  1       1      length bytes        2 bytes, CRC-16/CCITT-FALSE of type, length and payload
//
//	type       from    payload
//	Ask   01   host    none: asks for an Identity
//	Goals 02   host    count u8, then for each joint: held u8 (0 or 1), position i32
//	Identity 81 body   version u8, model u16 (the number of its ERS), firmware u16, joints u8
//	State 82   body    sequence u32, status u8, battery u16, pitch i16, roll i16, count u8, then for each joint: position i32, load i16
//
// Numbers are little-endian. Positions are micro-radian with AIBO's own signs, the unit and the row of motion files (MTN-33, MTN-54); joints
// have the order of the model's list (aibo.Joints). Battery is in mV, pitch and roll are in mrad, load is in thousandths of what the joint can bear. A body that hears no
// Goals for a quarter of a second takes the power from its joints.
package jointlink
