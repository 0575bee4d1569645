// Package corelink joins the real-time core (robotd, the server) with the other processes of a robot (agentd, later mindd) through a local
// socket.
//
//	frame    0  u8   'K'
//	         1  u8   protocol version, now 1
//	         2  u16  message type
//	         4  u32  length of the payload, at most 64 KiB
//	         8       payload
//
// All numbers are little endian. A payload is its message's fields in order: bool and u8 in one byte, u16, u32, u64 and i64 as they are,
// f64 as IEEE bits (finite only), strings and lists behind a u16 count. There is no checksum: a local socket does not damage bytes. Each message
// has a JSON form too, {"type":"state","body":{...}}, and converting either way loses nothing (VEC-ARCH-04).
//
// The protocol's version is the frame's: both ends of a robot are installed together, so a peer of another version is refused with a Bye
// that says so. A type that this version does not know is kept as Raw.
//
// Both sides say Hello first. Then robotd sends State about 5 times a second, LoopStats, LinkStats and Power each second, Inertial and Senses then and when something of theirs changes, Fault when one begins or ends, Firmware when the body's
// own program was looked at; a peer sends SetLights, Halt, Resume, Shutdown, Ping, and what the tree is for: GetTree and GetValues, answered to it alone (Tree, Values); Claim,
// Renew, Release, Wheels, Straight, Turn, Head, Lift, Stop, Calm, Sleep, each answered by a Reply with its Request, and Do, a line of the tree's syntax, by a Did; a motion that began by an Ended as well. What a
// peer claimed is free when its connection ends. Motion comes with State, Absent when a device goes or is back. Each peer has a ring of bounded size in robotd: if a peer does not read, the oldest
// messages are dropped and counted, and after a while of that its connection is closed. Peers come and go at any time; a Client finds robotd again by
// itself, and gets its Hello, the State and the Fault of the moment first.
//
// The socket is dev/socket/kennel_core_ under the robot's root, mode 0600. Roots may be longer than a socket address can hold (108 bytes), so both
// ends go through /proc/self/fd of the folder.
package corelink
